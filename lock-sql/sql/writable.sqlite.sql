-- Takes the write lock and changes nothing: a read-only file is found out when it is opened, not at the first lock.
--
-- Parameters: none.
-- Answer: none.
UPDATE leasehold_schema SET version = version WHERE one = 0
