-- Lengthens a claim that is in force to the longer of what remains and the lease.
--
-- Parameters: lease in microseconds, namespace, family, name, slot, claim, in this order.
-- Answer: remaining microseconds as the statement's last insert id; 0 if that claim is not in force.
--
-- The clock is read a second time, some microseconds after the first, so that the end is never before the old one.
UPDATE leasehold_locks
SET expires
    = LAST_INSERT_ID(GREATEST(expires - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)), ?))
    + TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))
WHERE
    namespace = ? AND family = ? AND name = ? AND slot = ? AND claim = ?
    AND expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))
