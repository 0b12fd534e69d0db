-- Shows the claims in force of the names in a range.
--
-- Parameters: namespace, family, first name, name after the last, in this order, all compared as bytes.
-- Answer: name, slot, claim, token, since, remaining microseconds, host, pid, label, in the order of names and slots.
SELECT
    name, slot, claim, token, since,
    expires - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) AS remaining,
    host, pid, label
FROM leasehold_locks
WHERE
    namespace = ? AND family = ? AND name >= ? AND name < ?
    AND claim IS NOT NULL AND expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))
ORDER BY name, slot
