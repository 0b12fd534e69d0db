-- Finds where a page of rows ends, so that no statement of a sweep reads more than a page.
--
-- Parameters: $1 namespace, $2 family, $3 name, $4 slot of the row before the page, $5 rows of a page.
-- Answer: namespace, family, name, slot of the page's last row; none if fewer rows are left.
SELECT namespace, family, name, slot
FROM leasehold_locks
WHERE (namespace, family, name, slot) > ($1, $2, $3, $4)
ORDER BY namespace, family, name, slot
LIMIT 1 OFFSET $5 - 1
