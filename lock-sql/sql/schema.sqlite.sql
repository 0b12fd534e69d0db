-- Creates what the locks need, in a file that may have other tables of its user's.
--
-- Parameters: none.
-- Answer: none. Several processes may run it at once, and again at any time: it changes nothing that is there.
--
-- leasehold_schema has one row: the version of this layout, the floor below which no new token may be, and when idle
-- rows were last looked for. A table and not PRAGMA user_version, since the file may be the user's own.
--
-- leasehold_locks has one row for each lock that is held, or was during the last day. Names are blobs because they are
-- compared as bytes, whatever a column's collation. Times are microseconds since 1970 by the host's clock, which SQLite
-- reads in milliseconds. A row without a claim, or past `expires`, is free and kept for its token alone.
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS leasehold_schema (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    floor INTEGER NOT NULL,
    swept INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS leasehold_locks (
    namespace BLOB NOT NULL,
    family TEXT NOT NULL,
    name BLOB NOT NULL,
    slot INTEGER NOT NULL,
    claim BLOB,
    token INTEGER NOT NULL,
    since INTEGER,
    expires INTEGER NOT NULL,
    host TEXT,
    pid INTEGER,
    label TEXT,
    PRIMARY KEY (namespace, family, name, slot)
) STRICT, WITHOUT ROWID;
INSERT INTO leasehold_schema (one, version, floor, swept) VALUES (1, 1, 0, 0) ON CONFLICT DO NOTHING;
COMMIT;
