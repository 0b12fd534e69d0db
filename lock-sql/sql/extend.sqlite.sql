-- Lengthens a claim that is in force to the longer of what remains and the lease.
--
-- Parameters: ?1 namespace, ?2 family, ?3 name, ?4 slot, ?5 claim, ?6 lease in microseconds.
-- Answer: remaining microseconds; no row if that claim is not in force.
UPDATE leasehold_locks
SET expires = max(expires, CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 + ?6)
WHERE
    namespace = ?1 AND family = ?2 AND name = ?3 AND slot = ?4 AND claim = ?5
    AND expires > CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000
RETURNING expires - CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 AS remaining
