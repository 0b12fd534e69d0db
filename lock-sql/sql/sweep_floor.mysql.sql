-- Raises the floor to the largest token of a page's idle rows, which the next sweep may then delete.
--
-- Parameters: the place before the page and that of its last row, in ten each as for sweep_page, and microseconds after
--             which a free row is idle.
-- Answer: none.
UPDATE leasehold_schema
SET
    floor = GREATEST(floor, COALESCE((
        SELECT MAX(token)
        FROM leasehold_locks
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
    ), 0))
WHERE one = 1
