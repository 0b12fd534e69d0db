-- Tells what keeps the table of the locks.
--
-- Parameters: the table's name, and its schema or nothing for the present one.
-- Answer: the engine's name.
SELECT CAST(engine AS CHAR) AS engine FROM information_schema.tables
WHERE table_name = ? AND table_schema = COALESCE(?, DATABASE())
