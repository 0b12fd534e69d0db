-- Shows the claims in force of the names in a range.
--
-- Parameters: $1 namespace, $2 family, $3 first name, $4 name after the last, both compared as bytes.
-- Answer: name, slot, claim, token, since, remaining microseconds, host, pid, label, in the order of names and slots.
SELECT
    name, slot, claim, token, since,
    expires - (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS remaining,
    host, pid, label
FROM leasehold_locks
WHERE
    namespace = $1 AND family = $2 AND name >= $3 AND name < $4
    AND claim IS NOT NULL AND expires > (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
ORDER BY name, slot
