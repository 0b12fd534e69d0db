-- Reads the layout's version, and whether idle rows have not been looked for lately.
--
-- Parameters: ?1 microseconds between two sweeps.
-- Answer: version, due (0 or 1). A sweep that lies in the future, after the clock was put back, is due.
SELECT
    version,
    swept NOT BETWEEN CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 - ?1
        AND CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 AS due
FROM leasehold_schema
WHERE one = 1
