-- Reads the settings that matter to locks. A server answers with those that it has: MySQL and MariaDB name some of them
-- differently.
--
-- Parameters: none.
-- Answer: name, value.
SHOW GLOBAL VARIABLES WHERE Variable_name IN (
    'version', 'read_only', 'super_read_only', 'innodb_read_only', 'innodb_flush_log_at_trx_commit', 'sync_binlog',
    'time_zone', 'sql_mode', 'tx_isolation', 'transaction_isolation', 'max_connections', 'log_bin',
    'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled'
)
