-- Lengthens a claim that is in force to the longer of what remains and the lease.
--
-- Parameters: $1 namespace, $2 family, $3 name, $4 slot, $5 claim, $6 lease in microseconds.
-- Answer: remaining microseconds; no row if that claim is not in force.
UPDATE leasehold_locks
SET expires = greatest(expires, (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint + $6)
WHERE
    namespace = $1 AND family = $2 AND name = $3 AND slot = $4 AND claim = $5
    AND expires > (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
RETURNING expires - (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS remaining
