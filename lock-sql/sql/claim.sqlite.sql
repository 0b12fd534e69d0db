-- Claims a row that is free, or renews the claim that is made again.
--
-- Parameters: ?1 namespace, ?2 family, ?3 name, ?4 slot, ?5 claim, ?6 lease in microseconds, ?7 least token,
--             ?8 host, ?9 pid, ?10 label.
-- Answer: claim, token, remaining microseconds; no row if another claim is in force.
--
-- SQLite reads its clock once per statement, after it has the write lock: however long the statement waited for its
-- turn, the lease begins when the row is written. A claim that is in force keeps its token and the later of the two
-- ends; one that has run out is granted anew, with a new token.
INSERT INTO leasehold_locks AS held (namespace, family, name, slot, claim, token, since, expires, host, pid, label)
VALUES (
    ?1, ?2, ?3, ?4, ?5,
    max(?7, CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000, (SELECT floor FROM leasehold_schema WHERE one = 1) + 1),
    CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000,
    CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 + ?6,
    ?8, ?9, ?10
)
ON CONFLICT (namespace, family, name, slot) DO UPDATE SET
    claim = excluded.claim,
    token = CASE
        WHEN held.claim IS excluded.claim AND held.expires > excluded.since THEN held.token
        ELSE max(held.token + 1, excluded.token)
    END,
    since = CASE
        WHEN held.claim IS excluded.claim AND held.expires > excluded.since THEN held.since
        ELSE excluded.since
    END,
    expires = CASE
        WHEN held.claim IS excluded.claim AND held.expires > excluded.since THEN max(held.expires, excluded.expires)
        ELSE excluded.expires
    END,
    host = excluded.host,
    pid = excluded.pid,
    label = excluded.label
WHERE held.claim IS NULL OR held.claim = excluded.claim OR held.expires <= excluded.since
RETURNING claim, token, expires - CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 AS remaining
