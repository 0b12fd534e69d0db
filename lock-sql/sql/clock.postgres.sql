-- Reads the clock that leases go by.
--
-- Parameters: none.
-- Answer: microseconds since 1970.
SELECT (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS now_us
