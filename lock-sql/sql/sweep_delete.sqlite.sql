-- Deletes a page's idle rows whose tokens the floor covers.
--
-- Parameters: ?1 namespace, ?2 family, ?3 name, ?4 slot of the row before the page, ?5 to ?8 the same of its last row,
--             ?9 microseconds after which a free row is idle.
-- Answer: none.
DELETE FROM leasehold_locks
WHERE
    (namespace, family, name, slot) > (?1, ?2, ?3, ?4)
    AND (namespace, family, name, slot) <= (?5, ?6, ?7, ?8)
    AND expires <= CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000 - ?9
    AND token <= (SELECT floor FROM leasehold_schema WHERE one = 1)
