-- Clears a claim and leaves its row for the token.
--
-- Parameters: ?1 namespace, ?2 family, ?3 name, ?4 slot, ?5 claim.
-- Answer: in_force, 1 if the claim was in force until now and 0 if it had run out; no row if there was no such claim.
--
-- SQLite returns what a row is, not what it was. So the row's end tells the two apart: it becomes now for a claim that
-- was in force, and a microsecond less for one that was not.
UPDATE leasehold_locks
SET
    claim = NULL,
    since = NULL,
    expires = CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000
        - (expires <= CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000),
    host = NULL,
    pid = NULL,
    label = NULL
WHERE namespace = ?1 AND family = ?2 AND name = ?3 AND slot = ?4 AND claim = ?5
RETURNING expires = CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 AS in_force
