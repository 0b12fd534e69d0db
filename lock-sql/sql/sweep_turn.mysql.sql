-- Takes the turn to look for idle rows, if nobody has lately.
--
-- Parameters: microseconds between two sweeps.
-- Answer: the floor as it is before this sweep, and 1 more, as the statement's last insert id; 0 if another client had
-- the turn.
UPDATE leasehold_schema
SET swept = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) + 0 * LAST_INSERT_ID(floor + 1)
WHERE
    one = 1
    AND swept NOT BETWEEN TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) - ?
        AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))
