-- Reads the clock that leases go by. The session's time zone is UTC.
--
-- Parameters: none.
-- Answer: microseconds since 1970.
SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', SYSDATE(6)) AS SIGNED) AS now_us
