//! `check`, the clock and `prepare`: what is told of a server, each warning provoked for real.

use std::time::{Duration, SystemTime};

use conformance_tests::{assert_warns, finding};
use lock_core::{Backend as _, Finding, Level, Namespace, Usage};
use lock_sql::{ServerConfig, SqlBackend};

use crate::{LEASE, db::Db};

super::on_both!(
    a_good_server_gives_no_warning_and_its_clock_is_ours,
    rights_that_are_missing_are_named_with_their_remedy,
    a_server_that_may_not_be_written_is_a_warning,
    preparing_tells_what_connecting_created_and_that_once,
);

async fn findings(backend: &SqlBackend) -> Vec<Finding> {
    backend.check(&Usage::new(Namespace::default(), LEASE)).await.expect("an answer")
}

async fn a_good_server_gives_no_warning_and_its_clock_is_ours(db: &Db) {
    let backend = db.backend().await;
    let findings = findings(&backend).await;
    // The suite's servers leave durability out, and that is all that is wrong with them.
    let wrong: Vec<&Finding> =
        findings.iter().filter(|told| told.level == Level::Warning && told.rule != "durability").collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    for rule in ["version", "writable", "rights", "table", "connections", "session"] {
        assert_eq!(finding(&findings, rule).level, Level::Good, "{:?}", finding(&findings, rule));
    }
    let there = backend.wall_clock().await.expect("an answer").expect("a clock");
    let here = SystemTime::now();
    let off = here.duration_since(there).or_else(|_| there.duration_since(here)).expect("one is later");
    assert!(off < Duration::from_secs(10), "{off:?}");
}

async fn rights_that_are_missing_are_named_with_their_remedy(db: &Db) {
    db.backend().await.close().await;
    let mut admin = db.admin().await;
    let grants: &[&str] = match db {
        Db::Postgres(_) => &[
            "CREATE USER shop",
            "GRANT SELECT, UPDATE ON leasehold_locks TO shop",
            "GRANT SELECT, UPDATE ON leasehold_schema TO shop",
        ],
        Db::Mysql(_) => &[
            "CREATE USER shop",
            "GRANT SELECT, UPDATE ON leasehold.leasehold_locks TO shop",
            "GRANT SELECT, UPDATE ON leasehold.leasehold_schema TO shop",
        ],
    };
    for grant in grants {
        admin.execute(grant).await;
    }
    let database = if matches!(db, Db::Postgres(_)) { "postgres" } else { "leasehold" };
    let config = ServerConfig::new(db.url_of("shop", "", database)).expect("a good URL");
    let backend = SqlBackend::server(&config).await.expect("it may read");
    let findings = findings(&backend).await;
    assert_warns(&findings, "rights", "INSERT");
    assert_warns(&findings, "rights", "DELETE");
}

async fn a_server_that_may_not_be_written_is_a_warning(db: &Db) {
    let first = db.backend().await;
    first.close().await;
    let mut admin = db.admin().await;
    match db {
        Db::Postgres(_) => {
            admin.execute("ALTER SYSTEM SET default_transaction_read_only = on").await;
            admin.execute("SELECT pg_reload_conf()").await;
        }
        Db::Mysql(_) => admin.execute("SET GLOBAL read_only = 1").await,
    }
    let findings = findings(&db.backend().await).await;
    assert_warns(&findings, "writable", "read_only");
}

async fn preparing_tells_what_connecting_created_and_that_once(db: &Db) {
    let first = db.backend().await;
    let created = first.prepare().await.expect("an answer");
    assert!(created.len() == 1 && created[0].contains("leasehold_locks"), "{created:?}");
    assert!(first.prepare().await.expect("an answer").is_empty());
    assert!(db.backend().await.prepare().await.expect("an answer").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_settings_that_forget_claims_are_warnings() {
    let db = crate::db::postgres(&[]);
    db.backend().await.close().await;
    let mut admin = db.admin().await;
    admin.execute("ALTER TABLE leasehold_locks SET UNLOGGED").await;
    admin.execute("ALTER USER postgres SET synchronous_commit = off").await;
    let told = findings(&db.backend().await).await;
    assert_warns(&told, "table", "unlogged");
    assert_eq!(finding(&told, "durability").level, Level::Warning);
    assert_eq!(finding(&told, "pooler").level, Level::Good);
    let off = db.config().without_notifications();
    let told = findings(&SqlBackend::server(&off).await.expect("a backend")).await;
    assert!(finding(&told, "pooler").evidence.contains("listen is off"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_settings_that_forget_claims_are_warnings() {
    let db = crate::db::mysql(&[]);
    db.backend().await.close().await;
    let mut admin = db.admin().await;
    admin.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2").await;
    admin.execute("ALTER TABLE leasehold_locks ENGINE = Aria").await;
    let told = findings(&db.backend().await).await;
    assert_warns(&told, "durability", "innodb_flush_log_at_trx_commit is 2");
    assert_warns(&told, "table", "Aria");
    admin.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1").await;
    assert_eq!(finding(&findings(&db.backend().await).await, "durability").level, Level::Good);
}
