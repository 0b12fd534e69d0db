//! What a PostgreSQL server's settings mean for locks.

use std::time::{Duration, SystemTime};

use lock_core::{BackendError, Finding};
use sqlx::{Row as _, postgres::PgRow};

use crate::{
    postgres::{Store, pooler::Pooler},
    server::{pool::IfUnanswered, statement::Statement},
};

/// The clock that leases go by.
pub(super) async fn wall_clock(store: &Store) -> Result<SystemTime, BackendError> {
    let rows = store.run(IfUnanswered::Again, || Statement::new(store.texts.clock.clone())).await?;
    let now = store.read(&rows, |row| row.try_get::<i64, _>("now_us"))?.pop().unwrap_or_default();
    Ok(SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(now).unwrap_or_default()))
}

/// One finding for each rule.
pub(super) async fn check(store: &Store, pooler: &Pooler) -> Result<Vec<Finding>, BackendError> {
    let rows = store.run(IfUnanswered::Again, || Statement::new(store.texts.check.clone())).await?;
    let Some(settings) = store.read(&rows, Settings::read)?.pop() else {
        return Ok(Vec::new());
    };
    let mut findings = settings.judge();
    findings.push(pooler.find(settings.port).await);
    Ok(findings)
}

/// What the server said.
struct Settings {
    version: String,
    standby: bool,
    read_only: String,
    time_zone: String,
    isolation: String,
    synchronous_commit: String,
    fsync: String,
    synchronous_standbys: String,
    replicas: i64,
    max_connections: i64,
    connections: i64,
    port: i64,
    who: String,
    persistence: Option<String>,
    lacking: String,
}

impl Settings {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Settings {
            version: row.try_get("version")?,
            standby: row.try_get("standby")?,
            read_only: row.try_get("read_only")?,
            time_zone: row.try_get("time_zone")?,
            isolation: row.try_get("isolation")?,
            synchronous_commit: row.try_get("synchronous_commit")?,
            fsync: row.try_get("fsync")?,
            synchronous_standbys: row.try_get("synchronous_standbys")?,
            replicas: row.try_get("replicas")?,
            max_connections: row.try_get("max_connections")?,
            connections: row.try_get("connections")?,
            port: row.try_get("port")?,
            who: row.try_get("who")?,
            persistence: row.try_get("persistence")?,
            lacking: row.try_get("lacking")?,
        })
    }

    fn judge(&self) -> Vec<Finding> {
        vec![
            self.version(),
            self.writable(),
            self.rights(),
            self.durability(),
            self.table(),
            self.failover(),
            self.connections(),
            Finding::good(
                "session",
                format!(
                    "default isolation {:?} and time zone {:?} of the server are harmless: sessions set their own",
                    self.isolation, self.time_zone
                ),
            ),
        ]
    }

    fn version(&self) -> Finding {
        let evidence = format!("PostgreSQL {}", self.version);
        let major: u32 = self.version.split(['.', ' ', 'd', 'b', 'r']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        // 9.5 brought ON CONFLICT, and 13 is the oldest that its makers cared for when this was written.
        if major < 13 {
            return Finding::warning("version", evidence, "use PostgreSQL 13 or later");
        }
        Finding::good("version", evidence)
    }

    fn writable(&self) -> Finding {
        const RULE: &str = "writable";
        if self.standby {
            let remedy = "name the primary in the URL";
            return Finding::warning(RULE, "this server is a standby in recovery, and takes no locks", remedy);
        }
        if self.read_only == "on" {
            let remedy = "set default_transaction_read_only = off for this user or database";
            return Finding::warning(RULE, "default_transaction_read_only is on, so no lock can be taken", remedy);
        }
        Finding::good(RULE, "this server is a primary, and transactions may write")
    }

    fn rights(&self) -> Finding {
        const RULE: &str = "rights";
        if self.lacking.is_empty() {
            return Finding::good(RULE, format!("{:?} has all rights on the tables that locks need", self.who));
        }
        let grants: Vec<String> =
            self.lacking.split(", ").map(|right| format!("GRANT {right} TO \"{}\";", self.who)).collect();
        Finding::warning(RULE, format!("{:?} lacks {}", self.who, self.lacking), grants.join(" "))
    }

    fn durability(&self) -> Finding {
        const RULE: &str = "durability";
        if self.fsync == "off" {
            let remedy = "set fsync = on";
            return Finding::warning(RULE, "fsync is off: a crash of the host may corrupt the tables", remedy);
        }
        if self.synchronous_commit == "off" {
            let evidence = "synchronous_commit is off: a crash may forget a claim that was granted";
            return Finding::warning(RULE, evidence, "set synchronous_commit = on for this user or database");
        }
        Finding::good(RULE, format!("fsync is on, synchronous_commit is {}", self.synchronous_commit))
    }

    fn table(&self) -> Finding {
        const RULE: &str = "table";
        match self.persistence.as_deref() {
            Some("u") => Finding::warning(
                RULE,
                "the table is unlogged: a crash empties it, and locks and tokens are lost",
                "ALTER TABLE leasehold_locks SET LOGGED (and the same for its schema table)",
            ),
            Some(_) => Finding::good(RULE, "the table is logged"),
            None => Finding::note(RULE, "the table's kind cannot be read"),
        }
    }

    fn failover(&self) -> Finding {
        const RULE: &str = "failover";
        match (self.replicas, self.synchronous_standbys.as_str()) {
            (0, "") => Finding::note(RULE, "no standby is attached that this user may see: there is no failover"),
            (replicas, "") => Finding::warning(
                RULE,
                format!("{replicas} standbys are attached, all asynchronous: a failover may forget a claim"),
                "set synchronous_standby_names, or let the resource check the fencing token",
            ),
            (replicas, names) => {
                Finding::good(RULE, format!("{replicas} standbys, synchronous_standby_names is {names:?}"))
            }
        }
    }

    fn connections(&self) -> Finding {
        const RULE: &str = "connections";
        let evidence = format!("{} of max_connections = {} are used", self.connections, self.max_connections);
        if self.connections.saturating_mul(10) >= self.max_connections.saturating_mul(9) {
            return Finding::warning(RULE, evidence, "raise max_connections, or lower max_connections in the URL");
        }
        Finding::good(RULE, evidence)
    }
}
