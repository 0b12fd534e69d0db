-- Tells whether the file has leasehold's tables.
--
-- Parameters: none.
-- Answer: a row if it has, none if it has not.
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'leasehold_schema'
