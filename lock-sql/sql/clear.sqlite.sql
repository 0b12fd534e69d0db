-- Clears a claim that has run out, if nobody has taken its row over.
--
-- Parameters: ?1 namespace, ?2 family, ?3 name, ?4 slot, ?5 claim.
-- Answer: none; one row is changed if the claim was still there.
UPDATE leasehold_locks
SET claim = NULL, since = NULL, host = NULL, pid = NULL, label = NULL
WHERE namespace = ?1 AND family = ?2 AND name = ?3 AND slot = ?4 AND claim = ?5
