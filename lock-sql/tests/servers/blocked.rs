//! Rows that somebody else's transaction has locked: no lease is born expired, and nothing else waits.

use std::{sync::Arc, time::Duration};

use lock_core::Backend as _;

use crate::{LEASE, claim, db::Db, grant, granted, is_busy};

super::on_both!(
    a_lease_begins_when_a_blocked_row_is_written,
    a_lease_counts_from_its_request_behind_an_insertion_that_was_undone,
    a_row_that_stays_locked_is_told_and_leaves_nothing,
    a_dropped_attempt_at_a_blocked_row_does_not_keep_the_only_connection,
);

/// Long enough that a clock read before the wait would show, and within the time that a statement waits.
const BLOCKED: Duration = Duration::from_millis(600);

async fn a_lease_begins_when_a_blocked_row_is_written(db: &Db) {
    let backend = Arc::new(db.backend().await);
    let mut admin = db.admin().await;
    let first = claim("job");
    granted(&backend, &first).await;
    backend.release(&first).await.expect("release");

    admin.execute("BEGIN").await;
    admin.execute("UPDATE leasehold_locks SET host = 'blocked'").await;
    let second = claim("job");
    let waiting = tokio::spawn({
        let (backend, second) = (Arc::clone(&backend), second.clone());
        async move { backend.attempt(&second).await }
    });
    tokio::time::sleep(BLOCKED).await;
    assert!(!waiting.is_finished(), "the attempt waits for the row");
    let before = admin.number(&format!("SELECT {}", db.now())).await;
    admin.execute("COMMIT").await;

    let lease = grant(waiting.await.expect("no panic")).lease;
    let expires = admin.number("SELECT expires FROM leasehold_locks").await;
    let lease_us = i64::try_from(LEASE.as_micros()).expect("small");
    assert!(expires >= before + lease_us, "the lease ends {} us too early", before + lease_us - expires);
    assert!(lease <= LEASE && lease + Duration::from_secs(1) > LEASE, "{lease:?}");
}

async fn a_lease_counts_from_its_request_behind_an_insertion_that_was_undone(db: &Db) {
    let backend = Arc::new(db.backend().await);
    let mut admin = db.admin().await;
    let other = claim("other");
    granted(&backend, &other).await;
    admin.execute("BEGIN").await;
    let name = db.bytes("job");
    let insert = "INSERT INTO leasehold_locks (namespace, family, name, slot, token, expires)";
    admin.execute(&format!("{insert} SELECT namespace, family, {name}, 0, 1, 1 FROM leasehold_locks")).await;
    let sent = admin.number(&format!("SELECT {}", db.now())).await;
    let waiting = tokio::spawn({
        let backend = Arc::clone(&backend);
        async move { backend.attempt(&claim("job")).await }
    });
    tokio::time::sleep(BLOCKED).await;
    assert!(!waiting.is_finished(), "the attempt waits for the row");
    admin.execute("ROLLBACK").await;

    let lease = grant(waiting.await.expect("no panic")).lease;
    let expires = admin.number(&format!("SELECT expires FROM leasehold_locks WHERE name = {name}")).await;
    let told = i64::try_from(lease.as_micros()).expect("small");
    assert!(expires >= sent + told, "more was told than the row has from the request on");
    assert!(lease + Duration::from_secs(2) > LEASE, "{lease:?}");
}

async fn a_row_that_stays_locked_is_told_and_leaves_nothing(db: &Db) {
    let backend = db.backend().await;
    let mut admin = db.admin().await;
    let first = claim("job");
    granted(&backend, &first).await;
    backend.release(&first).await.expect("release");
    admin.execute("BEGIN").await;
    admin.execute("UPDATE leasehold_locks SET host = 'blocked'").await;
    let attempt = claim("job");
    let answer = tokio::time::timeout(Duration::from_secs(20), backend.attempt(&attempt)).await.expect("an end");
    let error = answer.expect_err("the row stays locked");
    assert!(error.is_unknown(), "{error:?}");
    assert!(error.to_string().contains("another transaction"), "{error}");
    admin.execute("COMMIT").await;
    assert_eq!(admin.number("SELECT count(*) FROM leasehold_locks WHERE claim IS NOT NULL").await, 0);
    granted(&backend, &attempt).await;
    assert!(is_busy(&backend, &claim("job")).await);
}

async fn a_dropped_attempt_at_a_blocked_row_does_not_keep_the_only_connection(db: &Db) {
    let config = db.config().max_connections(1);
    let backend = lock_sql::SqlBackend::server(&config).await.expect("the server takes us");
    let mut admin = db.admin().await;
    let first = claim("job");
    granted(&backend, &first).await;
    backend.release(&first).await.expect("release");
    admin.execute("BEGIN").await;
    admin.execute("UPDATE leasehold_locks SET host = 'blocked'").await;
    let blocked = claim("job");
    let dropped = tokio::time::timeout(Duration::from_millis(50), backend.attempt(&blocked)).await;
    assert!(dropped.is_err(), "the attempt waits for the row");
    // The statement is still there at the server, and its connection is nobody's any more.
    granted(&backend, &claim("other")).await;
    admin.execute("COMMIT").await;
}
