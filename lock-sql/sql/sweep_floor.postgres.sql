-- Raises the floor to the largest token of a page's idle rows, which the next sweep may then delete.
--
-- Parameters: $1 namespace, $2 family, $3 name, $4 slot of the row before the page, $5 to $8 the same of its last row,
--             $9 microseconds after which a free row is idle.
-- Answer: none.
UPDATE leasehold_schema
SET floor = idle.token
FROM (
    SELECT max(token) AS token
    FROM leasehold_locks
    WHERE
        (namespace, family, name, slot) > ($1, $2, $3, $4)
        AND (namespace, family, name, slot) <= ($5, $6, $7, $8)
        AND expires <= (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint - $9
) AS idle
WHERE one = 1 AND floor < idle.token
