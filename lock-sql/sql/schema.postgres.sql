-- Creates what the locks need, in a schema that may have other tables of its user's.
--
-- Parameters: none.
-- Answer: none. Several clients may run it at once, and again at any time: it changes nothing that is there.
--
-- leasehold_schema has one row: the version of this layout, the floor below which no new token may be, and when idle
-- rows were last looked for.
--
-- leasehold_locks has one row for each lock that is held, or was during the last day. Names are bytes because they are
-- compared as bytes, whatever the database's collation. Times are microseconds since 1970 by the server's clock. A row
-- without a claim, or past `expires`, is free and kept for its token alone. The room left on each page lets a row be
-- written again beside its old version, without a change of the index.
--
-- The advisory lock lets one client after the other create: IF NOT EXISTS does not keep two from colliding. Its number
-- is that of these tables and of nothing else. All is one transaction, since it is sent as one text.
SELECT pg_advisory_xact_lock(7813262981173);
CREATE TABLE IF NOT EXISTS leasehold_schema (
    one bigint PRIMARY KEY CHECK (one = 1),
    version bigint NOT NULL,
    floor bigint NOT NULL,
    swept bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS leasehold_locks (
    namespace bytea NOT NULL,
    family text COLLATE "C" NOT NULL,
    name bytea NOT NULL,
    slot bigint NOT NULL,
    claim bytea,
    token bigint NOT NULL,
    since bigint,
    expires bigint NOT NULL,
    host text,
    pid bigint,
    label text,
    waited boolean NOT NULL DEFAULT FALSE,
    PRIMARY KEY (namespace, family, name, slot)
) WITH (fillfactor = 70);
INSERT INTO leasehold_schema (one, version, floor, swept) VALUES (1, 1, 0, 0) ON CONFLICT DO NOTHING
