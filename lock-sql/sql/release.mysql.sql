-- Clears a claim and leaves its row for the token.
--
-- Parameters: namespace, family, name, slot, claim, in this order.
-- Answer, as the statement's last insert id: 2 if the claim was in force, 1 if it had run out, 0 if there was none.
UPDATE leasehold_locks
SET
    pid = IF(LAST_INSERT_ID(IF(expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)), 2, 1)) > 0, NULL, NULL),
    since = NULL,
    expires = LEAST(expires, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))),
    host = NULL,
    label = NULL,
    claim = NULL
WHERE namespace = ? AND family = ? AND name = ? AND slot = ? AND claim = ?
