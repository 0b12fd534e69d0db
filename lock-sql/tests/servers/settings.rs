//! A server's own settings change nothing, and neither does who creates the tables.

use std::sync::Arc;

use lock_core::{Attempt, Backend as _, BackendErrorKind};
use lock_sql::{ServerConfig, SqlBackend};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    LEASE, claim,
    db::{Db, mysql, postgres},
    granted, is_busy,
};

super::on_both!(
    clients_that_create_the_tables_at_once_all_succeed,
    tables_that_were_dropped_are_created_again,
    two_tables_do_not_meet,
    a_newer_layout_is_refused,
);

/// Many claim at once, again and again: nobody gets an error, and each round has one winner.
async fn races_have_one_winner(config: &ServerConfig) {
    let backend = Arc::new(SqlBackend::server(config).await.expect("the server takes us"));
    for _ in 0..20 {
        let mut racers = JoinSet::new();
        for _ in 0..8 {
            let backend = Arc::clone(&backend);
            racers.spawn(async move {
                let claim = claim("job");
                let answer = backend.attempt(&claim).await.expect("no error reaches the caller");
                matches!(answer, Attempt::Granted(_)).then_some(claim)
            });
        }
        let winners: Vec<_> = racers.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        backend.release(&winners[0]).await.expect("release");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stricter_default_isolation_changes_nothing_on_postgres() {
    let db = postgres(&["default_transaction_isolation=serializable"]);
    races_have_one_winner(&db.config()).await;
    let db = postgres(&["default_transaction_isolation=repeatable read"]);
    races_have_one_winner(&db.config()).await;
    // Behind a pooler the session's settings are the server's, and what met another claim is sent again.
    races_have_one_winner(&db.config().without_notifications()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_settings_change_nothing_on_mysql() {
    let db = mysql(&["--transaction-isolation=SERIALIZABLE", "--sql-mode=", "--default-time-zone=+05:00"]);
    races_have_one_winner(&db.config()).await;
    let backend = db.backend().await;
    granted(&backend, &claim("zoned")).await;
    let ahead = format!("SELECT MAX(expires) - {} FROM leasehold_locks WHERE claim IS NOT NULL", db.now());
    let ahead = db.admin().await.number(&ahead).await;
    let lease_us = i64::try_from(LEASE.as_micros()).expect("small");
    assert!(ahead <= lease_us && ahead > lease_us - 20_000_000, "the lease ends in {ahead} us");

    let db = mysql(&["--sql-mode=ANSI,PIPES_AS_CONCAT,NO_ZERO_DATE,SIMULTANEOUS_ASSIGNMENT,NO_BACKSLASH_ESCAPES"]);
    races_have_one_winner(&db.config()).await;
}

async fn clients_that_create_the_tables_at_once_all_succeed(db: &Db) {
    const CLIENTS: usize = 8;
    for round in 0..12 {
        let config = db.config().table(&format!("locks_{round}")).expect("a plain name");
        let begin = Arc::new(Barrier::new(CLIENTS));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let (config, begin) = (config.clone(), Arc::clone(&begin));
            clients.spawn(async move {
                begin.wait().await;
                SqlBackend::server(&config).await.map(drop)
            });
        }
        for created in clients.join_all().await {
            created.expect("whoever comes second finds them");
        }
        let versions = db.admin().await.number(&format!("SELECT count(*) FROM locks_{round}_schema")).await;
        assert_eq!(versions, 1, "round {round}: one row has the version");
        granted(&SqlBackend::server(&config).await.expect("they are there"), &claim("job")).await;
    }
}

async fn tables_that_were_dropped_are_created_again(db: &Db) {
    let backend = db.backend().await;
    let held = claim("job");
    granted(&backend, &held).await;
    let mut admin = db.admin().await;
    admin.execute("DROP TABLE leasehold_locks").await;
    admin.execute("DROP TABLE leasehold_schema").await;
    granted(&backend, &claim("job")).await;
    assert_eq!(admin.number("SELECT count(*) FROM leasehold_schema").await, 1);
}

async fn two_tables_do_not_meet(db: &Db) {
    let other = db.config().table("shop_locks").expect("a name");
    let other = SqlBackend::server(&other).await.expect("the server takes us");
    let backend = db.backend().await;
    granted(&backend, &claim("job")).await;
    granted(&other, &claim("job")).await;
    assert!(is_busy(&backend, &claim("job")).await && is_busy(&other, &claim("job")).await);
    let mut admin = db.admin().await;
    assert_eq!(admin.number("SELECT count(*) FROM shop_locks").await, 1);
    assert_eq!(admin.number("SELECT version FROM shop_locks_schema").await, 1);
}

async fn a_newer_layout_is_refused(db: &Db) {
    db.backend().await.close().await;
    db.admin().await.execute("UPDATE leasehold_schema SET version = 7").await;
    let error = SqlBackend::server(&db.config()).await.expect_err("a newer layout");
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("version 7") && error.to_string().contains("upgrade"), "{error}");
}
