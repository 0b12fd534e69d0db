-- Creates what the locks need, in a database that may have other tables of its user's.
--
-- Parameters: none.
-- Answer: none. Several clients may run it at once, and again at any time: it changes nothing that is there.
--
-- leasehold_schema has one row: the version of this layout, the floor below which no new token may be, and when idle
-- rows were last looked for.
--
-- leasehold_locks has one row for each lock that is held, or was during the last day. Names are binary because every
-- collation, and those that call themselves binary too, takes some names for equal that differ. Times are microseconds
-- since 1970 by the server's clock. A row without a claim, or past `expires`, is free and kept for its token alone.
-- It is created last: who sees both tables finds the version too, although nothing here is one transaction.
-- The engine is InnoDB, since others have no transactions or no durability.
CREATE TABLE IF NOT EXISTS leasehold_schema (
    one BIGINT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    floor BIGINT NOT NULL,
    swept BIGINT NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO leasehold_schema (one, version, floor, swept) VALUES (1, 1, 0, 0);
CREATE TABLE IF NOT EXISTS leasehold_locks (
    namespace VARBINARY(64) NOT NULL,
    family VARBINARY(32) NOT NULL,
    name VARBINARY(512) NOT NULL,
    slot BIGINT NOT NULL,
    claim VARBINARY(16),
    token BIGINT NOT NULL,
    since BIGINT,
    expires BIGINT NOT NULL,
    host TEXT CHARACTER SET utf8mb4,
    pid BIGINT,
    label TEXT CHARACTER SET utf8mb4,
    PRIMARY KEY (namespace, family, name, slot)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
