-- Reads the layout's version, and whether idle rows have not been looked for lately.
--
-- Parameters: $1 microseconds between two sweeps.
-- Answer: version, due (0 or 1). A sweep that lies in the future, after the clock was put back, is due.
--
-- The last condition is always met; it makes the statement fail where the table of the locks is missing.
SELECT
    version,
    CASE
        WHEN swept BETWEEN (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint - $1
            AND (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint THEN 0
        ELSE 1
    END::bigint AS due
FROM leasehold_schema
WHERE one = 1 AND NOT EXISTS (SELECT 1 FROM leasehold_locks WHERE FALSE)
