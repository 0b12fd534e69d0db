-- Claims a row that is free, or renews the claim that is made again.
--
-- Parameters: namespace, family, name, slot, claim, least token, lease in microseconds, host, pid, label,
--             lease in microseconds, lease in microseconds, in this order.
-- Answer: the token as the statement's last insert id if the claim holds the row, 0 if another claim is in force.
--
-- What follows UPDATE is computed after the wait for a row that others are writing, one assignment after the other, each
-- with what those before it assigned. SYSDATE is the time then, so that a lease begins when the row is written. VALUES is
-- what would have been inserted, computed before the wait. Every decision compares with the one time in it, and so all
-- of them come out the same; a claim that ran out during the wait counts as in force, and the next attempt takes it.
-- LAST_INSERT_ID with a value is how a statement can answer on servers that have no RETURNING. The insertion's own token
-- is reported as well, and taken back by the update.
INSERT INTO leasehold_locks (namespace, family, name, slot, claim, token, since, expires, host, pid, label)
VALUES (
    ?, ?, ?, ?, ?,
    LAST_INSERT_ID(GREATEST(
        ?,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)),
        COALESCE((SELECT floor FROM leasehold_schema WHERE one = 1), 0) + 1
    )),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) + ?,
    ?, ?, ?
)
ON DUPLICATE KEY UPDATE
    token = CASE
        WHEN claim = VALUES(claim) AND expires > VALUES(since) THEN LAST_INSERT_ID(token)
        WHEN claim IS NULL OR claim = VALUES(claim) OR expires <= VALUES(since)
            THEN LAST_INSERT_ID(GREATEST(token + 1, VALUES(token), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))))
        ELSE token + LAST_INSERT_ID(0)
    END,
    host = IF(claim IS NULL OR claim = VALUES(claim) OR expires <= VALUES(since), VALUES(host), host),
    pid = IF(claim IS NULL OR claim = VALUES(claim) OR expires <= VALUES(since), VALUES(pid), pid),
    label = IF(claim IS NULL OR claim = VALUES(claim) OR expires <= VALUES(since), VALUES(label), label),
    since = CASE
        WHEN claim = VALUES(claim) AND expires > VALUES(since) THEN since
        WHEN claim IS NULL OR claim = VALUES(claim) OR expires <= VALUES(since) THEN VALUES(since)
        ELSE since
    END,
    claim = IF(claim IS NULL OR expires <= VALUES(since), VALUES(claim), claim),
    expires = CASE
        WHEN claim <> VALUES(claim) THEN expires
        WHEN since = VALUES(since) THEN TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) + ?
        ELSE GREATEST(expires, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) + ?)
    END
