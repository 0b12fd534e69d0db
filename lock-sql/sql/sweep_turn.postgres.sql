-- Takes the turn to look for idle rows, if nobody has lately.
--
-- Parameters: $1 microseconds between two sweeps.
-- Answer: the floor as it is before this sweep; no row if another client had the turn.
UPDATE leasehold_schema
SET swept = (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
WHERE
    one = 1
    AND swept NOT BETWEEN (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint - $1
        AND (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
RETURNING floor
