-- Deletes a page's idle rows whose tokens the floor covered before this sweep.
--
-- Parameters: $1 namespace, $2 family, $3 name, $4 slot of the row before the page, $5 to $8 the same of its last row,
--             $9 microseconds after which a free row is idle, $10 the floor before this sweep.
-- Answer: none.
--
-- A claim reads the floor before it waits for a row. The floor that counts here is at least a sweep old, and no claim
-- has waited for so long: whoever finds the row gone has read a floor that covers its token.
DELETE FROM leasehold_locks
WHERE
    (namespace, family, name, slot) > ($1, $2, $3, $4)
    AND (namespace, family, name, slot) <= ($5, $6, $7, $8)
    AND expires <= (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint - $9
    AND token <= $10
