-- Takes the turn to look for idle rows, if nobody has lately.
--
-- Parameters: ?1 microseconds between two sweeps.
-- Answer: none; one row is changed if the turn is the caller's, and none if another process had it.
UPDATE leasehold_schema
SET swept = CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000
WHERE
    one = 1
    AND swept NOT BETWEEN CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 - ?1
        AND CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000
