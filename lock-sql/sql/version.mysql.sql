-- Reads the layout's version, and whether idle rows have not been looked for lately.
--
-- Parameters: microseconds between two sweeps.
-- Answer: version, due (0 or 1). A sweep that lies in the future, after the clock was put back, is due.
--
-- The last condition is always met; it makes the statement fail where the table of the locks is missing.
SELECT
    version,
    CAST(
        swept NOT BETWEEN TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) - ?
            AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) AS SIGNED
    ) AS due
FROM leasehold_schema
WHERE one = 1 AND NOT EXISTS (SELECT 1 FROM leasehold_locks WHERE FALSE)
