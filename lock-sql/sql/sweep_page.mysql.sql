-- Finds where a page of rows ends, so that no statement of a sweep reads more than a page.
--
-- Parameters: the place before the page in ten: its namespace, namespace and family, namespace, family and name, and all
--             four; then the rows of a page less one.
-- Answer: namespace, family, name, slot of the page's last row; none if fewer rows are left.
--
-- The order of rows is written out, since a comparison of whole rows would not find the index and read all of them.
SELECT namespace, family, name, slot
FROM leasehold_locks
WHERE
    namespace > ?
    OR (namespace = ? AND family > ?)
    OR (namespace = ? AND family = ? AND name > ?)
    OR (namespace = ? AND family = ? AND name = ? AND slot > ?)
ORDER BY namespace, family, name, slot
LIMIT 1 OFFSET ?
