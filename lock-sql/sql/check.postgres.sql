-- Reads what the server's settings mean for locks. Changes nothing, and needs no rights beyond those to connect.
--
-- Parameters: none.
-- Answer: one row; see the names of its columns. A right that is missing is in `lacking`, as GRANT would name it.
SELECT
    current_setting('server_version') AS version,
    pg_is_in_recovery() AS standby,
    current_setting('default_transaction_read_only') AS read_only,
    current_setting('TimeZone') AS time_zone,
    current_setting('default_transaction_isolation') AS isolation,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('fsync') AS fsync,
    current_setting('synchronous_standby_names') AS synchronous_standbys,
    (SELECT count(*) FROM pg_stat_replication) AS replicas,
    current_setting('max_connections')::bigint AS max_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
    coalesce(inet_server_port(), 0)::bigint AS port,
    current_user::text AS who,
    (SELECT relpersistence::text FROM pg_class WHERE oid = 'leasehold_locks'::regclass) AS persistence,
    array_to_string(ARRAY(
        SELECT privilege || ' ON ' || relation
        FROM (
            VALUES
            ('SELECT', 'leasehold_locks'), ('INSERT', 'leasehold_locks'), ('UPDATE', 'leasehold_locks'),
            ('DELETE', 'leasehold_locks'), ('SELECT', 'leasehold_schema'), ('UPDATE', 'leasehold_schema')
        ) AS needed (privilege, relation)
        WHERE NOT has_table_privilege(relation, privilege)
    ), ', ') AS lacking
