-- Clears a claim that is in force and leaves its row for the token.
--
-- Parameters: ?1 namespace, ?2 family, ?3 name, ?4 slot, ?5 claim.
-- Answer: none; one row is changed if the claim was in force.
--
-- A row as answer would cost a second wake-up of the caller. SQLite counts the rows that the condition met, and the
-- condition is the claim itself.
UPDATE leasehold_locks
SET
    claim = NULL,
    since = NULL,
    expires = CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000,
    host = NULL,
    pid = NULL,
    label = NULL
WHERE
    namespace = ?1 AND family = ?2 AND name = ?3 AND slot = ?4 AND claim = ?5
    AND expires > CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000
