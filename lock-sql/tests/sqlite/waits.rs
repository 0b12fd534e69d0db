//! Statements that wait for another program's transaction.

use std::{sync::Arc, time::Duration};

use lock_core::{Attempt, Backend as _, BackendErrorKind, Extension};
use lock_sql::SqlBackend;

use crate::{LEASE, Place, claim, granted};

/// Long enough for a statement to reach the file and wait there.
const A_WHILE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_lease_begins_when_its_row_is_written_and_not_when_the_statement_was_sent() {
    let place = Place::new();
    let (backend, mut oracle) = (Arc::new(place.backend().await), place.oracle().await);
    let mut blocked = claim("job");
    blocked.lease = Duration::from_millis(100);

    oracle.execute("BEGIN IMMEDIATE").await;
    let attempt = tokio::spawn({
        let (backend, claim) = (Arc::clone(&backend), blocked.clone());
        async move { backend.attempt(&claim).await }
    });
    tokio::time::sleep(A_WHILE).await;
    assert!(!attempt.is_finished(), "the statement waits for the other transaction");
    let released_at_us = oracle.now_us().await;
    oracle.execute("COMMIT").await;

    let answer = attempt.await.expect("no panic").expect("an answer");
    assert!(matches!(answer, Attempt::Granted(grant) if grant.lease == blocked.lease), "born with its whole lease");
    let row = oracle.row("job").await.expect("a row");
    let since_us = row.since_us.expect("since");
    assert!(since_us >= released_at_us, "{since_us} is before {released_at_us}");
    assert_eq!(row.expires_us, since_us + 100_000);
    assert!(row.token >= released_at_us);
}

#[tokio::test]
async fn an_extension_that_waited_counts_from_when_it_was_written() {
    let place = Place::new();
    let (backend, mut oracle) = (Arc::new(place.backend().await), place.oracle().await);
    let held = claim("job");
    granted(&backend, &held).await;

    oracle.execute("BEGIN IMMEDIATE").await;
    let extension = tokio::spawn({
        let (backend, claim) = (Arc::clone(&backend), held.clone());
        async move { backend.extend(&claim, LEASE).await }
    });
    tokio::time::sleep(A_WHILE).await;
    assert!(!extension.is_finished());
    let released_at_us = oracle.now_us().await;
    oracle.execute("COMMIT").await;

    assert_eq!(extension.await.expect("no panic").expect("an answer"), Extension::Extended(LEASE));
    let row = oracle.row("job").await.expect("a row");
    assert!(row.expires_us >= released_at_us + 30_000_000);
}

#[tokio::test]
async fn a_claim_that_runs_out_during_the_wait_is_not_extended() {
    let place = Place::new();
    let (backend, mut oracle) = (Arc::new(place.backend().await), place.oracle().await);
    let mut held = claim("job");
    held.lease = Duration::from_millis(100);
    granted(&backend, &held).await;

    oracle.execute("BEGIN IMMEDIATE").await;
    let extension = tokio::spawn({
        let (backend, claim) = (Arc::clone(&backend), held.clone());
        async move { backend.extend(&claim, LEASE).await }
    });
    while oracle.number("SELECT max(expires) FROM leasehold_locks").await > oracle.now_us().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    oracle.execute("COMMIT").await;
    assert_eq!(extension.await.expect("no panic").expect("an answer"), Extension::NotHeld);
}

#[tokio::test]
async fn a_file_that_stays_locked_is_unavailable_and_nothing_was_done() {
    let place = Place::new();
    let config = place.config().busy_timeout(Duration::from_millis(50));
    let backend = SqlBackend::sqlite(&config).await.expect("the store opens");
    let mut oracle = place.oracle().await;
    oracle.execute("BEGIN IMMEDIATE").await;
    let wanted = claim("job");
    let error = backend.attempt(&wanted).await.expect_err("locked");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable);
    assert!(error.to_string().contains("locks.db is kept locked by another program"), "{error}");
    oracle.execute("COMMIT").await;
    assert!(oracle.rows().await.is_empty());
    granted(&backend, &wanted).await;
}

#[tokio::test]
async fn a_locked_file_can_still_be_opened_and_looked_into() {
    let place = Place::new();
    let first = place.backend().await;
    granted(&first, &claim("job")).await;
    first.close().await;
    let mut oracle = place.oracle().await;
    oracle.execute("BEGIN IMMEDIATE").await;
    let config = place.config().busy_timeout(Duration::from_millis(50));
    let second = SqlBackend::sqlite(&config).await.expect("opens beside a transaction");
    assert_eq!(second.inspect(&"".into()).await.expect("inspect").len(), 1);
}
