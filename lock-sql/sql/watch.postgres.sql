-- Shows the claims in force of one name, and notes that their release is waited for.
--
-- Parameters: $1 namespace, $2 family, $3 name.
-- Answer: as of holders. No row means that the lock is free by now, and that nothing was noted.
--
-- The note is for the next release alone: whoever then claims the row takes the note away, and those who still wait
-- make it again when they have found that out.
UPDATE leasehold_locks
SET waited = TRUE
WHERE
    namespace = $1 AND family = $2 AND name = $3
    AND claim IS NOT NULL AND expires > (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
RETURNING
    name, slot, claim, token, since,
    expires - (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS remaining,
    host, pid, label
