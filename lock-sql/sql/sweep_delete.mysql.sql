-- Deletes a page's idle rows whose tokens the floor covered before this sweep.
--
-- Parameters: the place before the page and that of its last row, in ten each as for sweep_page, microseconds after
--             which a free row is idle, and the floor before this sweep.
-- Answer: none.
--
-- A claim reads the floor before it waits for a row. The floor that counts here is at least a sweep old, and no claim
-- has waited for so long: whoever finds the row gone has read a floor that covers its token.
DELETE FROM leasehold_locks
WHERE
    (
        namespace > ?
        OR (namespace = ? AND family > ?)
        OR (namespace = ? AND family = ? AND name > ?)
        OR (namespace = ? AND family = ? AND name = ? AND slot > ?)
    )
    AND (
        namespace < ?
        OR (namespace = ? AND family < ?)
        OR (namespace = ? AND family = ? AND name < ?)
        OR (namespace = ? AND family = ? AND name = ? AND slot <= ?)
    )
    AND expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) - ?
    AND token <= ?
