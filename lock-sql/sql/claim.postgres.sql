-- Claims a row that is free, or renews the claim that is made again.
--
-- Parameters: $1 namespace, $2 family, $3 name, $4 slot, $5 claim, $6 lease in microseconds, $7 least token,
--             $8 host, $9 pid, $10 label.
-- Answer: claim, token, remaining microseconds; no row if another claim is in force.
--
-- What is in SET is computed after the wait for a row that others are writing, and clock_timestamp() is the time then:
-- a lease begins when the row is written. What is in VALUES is computed before. WHERE decides, once; a claim that is in
-- force keeps its token and the later of the two ends. An attempt that had to wait for longer than its lease is of use
-- to nobody and writes nothing.
INSERT INTO leasehold_locks AS held
    (namespace, family, name, slot, claim, token, since, expires, host, pid, label, waited)
VALUES (
    $1, $2, $3, $4, $5,
    greatest(
        $7,
        (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint,
        (SELECT floor FROM leasehold_schema WHERE one = 1) + 1
    ),
    (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint,
    (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint + $6,
    $8, $9, $10, FALSE
)
ON CONFLICT (namespace, family, name, slot) DO UPDATE SET
    claim = excluded.claim,
    token = CASE
        WHEN held.claim = excluded.claim AND held.expires > (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
            THEN held.token
        ELSE greatest(held.token + 1, excluded.token, (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint)
    END,
    since = CASE
        WHEN held.claim = excluded.claim AND held.expires > (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
            THEN held.since
        ELSE (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
    END,
    expires = CASE
        WHEN held.claim = excluded.claim
            THEN greatest(held.expires, (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint + $6)
        ELSE (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint + $6
    END,
    host = excluded.host,
    pid = excluded.pid,
    label = excluded.label,
    waited = held.waited AND held.claim IS NOT DISTINCT FROM excluded.claim
WHERE
    (
        held.claim IS NULL
        OR held.claim = excluded.claim
        OR held.expires <= (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint
    )
    AND clock_timestamp() - statement_timestamp() < $6 * INTERVAL '1 microsecond'
RETURNING claim, token, expires - (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS remaining
