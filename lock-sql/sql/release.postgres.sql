-- Clears a claim, leaves its row for the token, and wakes those who wait for it.
--
-- Parameters: $1 namespace, $2 family, $3 name, $4 slot, $5 claim, $6 channel.
-- Answer: whether it was in force when the statement began; no row if there was no such claim.
--
-- A claim that was in force ends now, and one that had run out has ended before this statement began. Only a row that
-- somebody waits for is told of: all transactions that notify commit one after the other, in the whole server.
UPDATE leasehold_locks
SET
    claim = NULL,
    since = NULL,
    expires = least(expires, (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint),
    host = NULL,
    pid = NULL,
    label = NULL
WHERE namespace = $1 AND family = $2 AND name = $3 AND slot = $4 AND claim = $5
RETURNING
    expires >= (extract(EPOCH FROM statement_timestamp()) * 1000000)::bigint AS in_force,
    CASE WHEN waited THEN pg_notify($6, '') END AS told
