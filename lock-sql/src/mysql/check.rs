//! What a MySQL or MariaDB server's settings mean for locks.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use lock_core::{BackendError, Finding};
use sqlx::{Row as _, mysql::MySqlRow};

use crate::{mysql::Store, server::statement::Statement};

const CLOCK: &str = include_str!("../../sql/clock.mysql.sql");
const ENGINE: &str = include_str!("../../sql/engine.mysql.sql");
const SETTINGS: &str = include_str!("../../sql/settings.mysql.sql");
const STATUS: &str = include_str!("../../sql/status.mysql.sql");

/// The rights that locks need on the table.
const RIGHTS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];

/// The clock that leases go by.
pub(super) async fn wall_clock(store: &Store) -> Result<SystemTime, BackendError> {
    let now = store.rows(|| Statement::new(CLOCK), |row| row.try_get::<i64, _>(0)).await?.pop().unwrap_or_default();
    Ok(SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(now).unwrap_or_default()))
}

/// One finding for each rule.
pub(super) async fn check(store: &Store, table: &str) -> Result<Vec<Finding>, BackendError> {
    let mut known: BTreeMap<String, String> =
        store.rows(|| Statement::new(SETTINGS), pair).await?.into_iter().collect();
    known.extend(store.rows(|| Statement::new(STATUS), pair).await?);
    let settings = Settings(known);
    let (schema, name) = table.split_once('.').map_or((None, table), |(schema, name)| (Some(schema), name));
    let engine =
        store.rows(|| Statement::new(ENGINE).bind(name).bind(schema), |row| row.try_get::<String, _>(0)).await?;
    let grants = store.rows(|| Statement::new("SHOW GRANTS"), |row| row.try_get::<String, _>(0)).await;
    Ok(vec![
        settings.version(),
        settings.writable(),
        rights(grants.unwrap_or_default().as_slice(), name),
        settings.durability(),
        kept_by(engine.first().map(String::as_str)),
        settings.failover(),
        settings.connections(),
        settings.session(),
    ])
}

fn pair(row: &MySqlRow) -> Result<(String, String), sqlx::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

fn kept_by(engine: Option<&str>) -> Finding {
    const RULE: &str = "table";
    match engine {
        Some(engine) if engine.eq_ignore_ascii_case("InnoDB") => Finding::good(RULE, "the table is kept by InnoDB"),
        Some(engine) => Finding::warning(
            RULE,
            format!("the table is kept by {engine}, which has no transactions"),
            "ALTER TABLE leasehold_locks ENGINE = InnoDB (and the same for its schema table)",
        ),
        None => Finding::note(RULE, "the table's engine cannot be read"),
    }
}

/// Looks whether each right is granted somewhere that may be ours. Rights that come by a role are not seen.
fn rights(grants: &[String], table: &str) -> Finding {
    const RULE: &str = "rights";
    let covers = |grant: &String, right: &str| {
        let Some((granted, on)) = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON ")) else {
            return false;
        };
        let target = on.split(" TO ").next().unwrap_or_default();
        let ours = target.ends_with(".*") || target.trim_end_matches('`').ends_with(table);
        ours && (granted == "ALL PRIVILEGES" || granted.split(", ").any(|one| one == right))
    };
    let lacking: Vec<&str> =
        RIGHTS.into_iter().filter(|right| !grants.iter().any(|grant| covers(grant, right))).collect();
    let by_role = grants.iter().any(|grant| grant.starts_with("GRANT ") && !grant.contains(" ON "));
    if lacking.is_empty() {
        return Finding::good(RULE, "the user has the rights on rows that locks need");
    }
    if grants.is_empty() || by_role {
        return Finding::note(
            RULE,
            "the user's rights come by a role or cannot be read; locks need SELECT, INSERT, UPDATE and DELETE",
        );
    }
    let lacking = lacking.join(", ");
    let remedy = format!("GRANT {lacking} ON {table} TO the user, and SELECT, UPDATE on its schema table");
    Finding::warning(RULE, format!("no grant is seen for {lacking} on {table}"), remedy)
}

/// Variables and counts, as far as the server has them.
struct Settings(BTreeMap<String, String>);

impl Settings {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "OFF" | "0"))
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|value| value.parse().ok())
    }

    fn version(&self) -> Finding {
        const RULE: &str = "version";
        let version = self.get("version").unwrap_or("unknown");
        let number =
            |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        let mut parts = version.split('.').map(number);
        let at: (u32, u32) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let (name, oldest) = if version.contains("MariaDB") { ("MariaDB", (10, 5)) } else { ("MySQL", (8, 0)) };
        let evidence = format!("{name} {version}");
        if at < oldest {
            return Finding::warning(RULE, evidence, format!("use {name} {}.{} or later", oldest.0, oldest.1));
        }
        Finding::good(RULE, evidence)
    }

    fn writable(&self) -> Finding {
        const RULE: &str = "writable";
        match ["super_read_only", "read_only", "innodb_read_only"].into_iter().find(|name| self.is_on(name)) {
            Some(name) => Finding::warning(
                RULE,
                format!(
                    "{name} is {}: this server is a replica, or closed for writing",
                    self.get(name).unwrap_or("ON")
                ),
                format!("name the primary in the URL, or set {name} = OFF"),
            ),
            None => Finding::good(RULE, "the server may be written"),
        }
    }

    fn durability(&self) -> Finding {
        const RULE: &str = "durability";
        match self.get("innodb_flush_log_at_trx_commit") {
            Some("1") => Finding::good(RULE, "innodb_flush_log_at_trx_commit is 1"),
            Some(other) => Finding::warning(
                RULE,
                format!("innodb_flush_log_at_trx_commit is {other}: a crash may forget a claim that was granted"),
                "set innodb_flush_log_at_trx_commit = 1",
            ),
            None => Finding::note(RULE, "innodb_flush_log_at_trx_commit cannot be read"),
        }
    }

    fn failover(&self) -> Finding {
        const RULE: &str = "failover";
        let semi = self.is_on("rpl_semi_sync_master_enabled") || self.is_on("rpl_semi_sync_source_enabled");
        let replicas = self.count("Slaves_connected").or_else(|| self.count("Replicas_connected"));
        match (replicas, self.is_on("log_bin")) {
            (Some(replicas @ 1..), _) if !semi => Finding::warning(
                RULE,
                format!("{replicas} replicas are attached, all asynchronous: a failover may forget a claim"),
                "use semi-synchronous replication, or let the resource check the fencing token",
            ),
            (Some(replicas @ 1..), _) => Finding::note(
                RULE,
                format!("{replicas} replicas are attached, semi-synchronously unless they fall behind"),
            ),
            (None, true) => Finding::note(
                RULE,
                "the binary log is on, and how many replicas read it is not told: a failover to one may forget a claim",
            ),
            _ => Finding::note(RULE, "no replica is attached: there is no failover"),
        }
    }

    fn connections(&self) -> Finding {
        const RULE: &str = "connections";
        let (Some(used), Some(most)) = (self.count("Threads_connected"), self.count("max_connections")) else {
            return Finding::note(RULE, "the number of connections cannot be read");
        };
        let evidence = format!("{used} of max_connections = {most} are used");
        if used.saturating_mul(10) >= most.saturating_mul(9) {
            return Finding::warning(RULE, evidence, "raise max_connections, or lower max_connections in the URL");
        }
        Finding::good(RULE, evidence)
    }

    fn session(&self) -> Finding {
        let isolation = self.get("transaction_isolation").or_else(|| self.get("tx_isolation")).unwrap_or("unknown");
        let zone = self.get("time_zone").unwrap_or("unknown");
        let mode = self.get("sql_mode").unwrap_or("unknown");
        Finding::good(
            "session",
            format!(
                "isolation {isolation}, time zone {zone} and sql_mode {mode:?} of the server are harmless: sessions set \
                 their own"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use lock_core::Level;

    use super::*;

    #[test]
    fn rights_are_found_wherever_they_are_granted() {
        let grants = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let level = |texts: &[&str]| rights(&grants(texts), "leasehold_locks").level;
        assert_eq!(level(&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]), Level::Good);
        let both = ["GRANT USAGE ON *.* TO `a`@`%`", "GRANT SELECT, INSERT, UPDATE, DELETE ON `d`.* TO `a`@`%`"];
        assert_eq!(level(&both), Level::Good);
        let one = ["GRANT SELECT, INSERT, UPDATE, DELETE ON `d`.`leasehold_locks` TO `a`@`%`"];
        assert_eq!(level(&one), Level::Good);
        assert_eq!(level(&["GRANT SELECT ON `d`.* TO `a`@`%`"]), Level::Warning);
        assert_eq!(level(&["GRANT `keeper`@`%` TO `a`@`%`"]), Level::Note);
        assert_eq!(level(&[]), Level::Note);
    }

    #[test]
    fn the_servers_of_both_makers_are_told_apart() {
        let level = |version: &str| Settings([("version".to_owned(), version.to_owned())].into()).version().level;
        assert_eq!(level("10.11.6-MariaDB-0+deb12u1"), Level::Good);
        assert_eq!(level("8.0.36"), Level::Good);
        assert_eq!(level("5.7.44-log"), Level::Warning);
        assert_eq!(level("10.3.39-MariaDB"), Level::Warning);
    }
}
