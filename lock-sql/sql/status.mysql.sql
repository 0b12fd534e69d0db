-- Counts the connections of clients and of replicas.
--
-- Parameters: none.
-- Answer: name, value.
SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Slaves_connected', 'Replicas_connected')
