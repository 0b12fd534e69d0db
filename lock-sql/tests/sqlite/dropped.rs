//! Calls that are dropped: they spoil nothing, and a release that follows is not overtaken.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use lock_core::{Backend as _, Selector};
use lock_sql::SqlBackend;

use crate::{LEASE, Place, claim, granted};

/// Polls a future so often, with a moment after each poll, and drops it. Tells whether it ended before.
async fn poll_and_drop<F: Future>(future: F, polls: usize, moment: Duration) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        tokio::time::sleep(moment).await;
    }
    false
}

#[tokio::test]
async fn a_release_after_a_dropped_attempt_leaves_nothing() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    for moment in [Duration::ZERO, Duration::from_micros(200), Duration::from_millis(2)] {
        for polls in 0..20 {
            let dropped = claim("job");
            let ended = poll_and_drop(backend.attempt(&dropped), polls, moment).await;
            backend.release(&dropped).await.expect("release");
            assert_eq!(oracle.row("job").await.and_then(|row| row.claim), None, "{polls} polls, {moment:?}");
            if ended {
                break;
            }
        }
    }
}

#[tokio::test]
async fn the_connection_goes_on_after_calls_were_dropped() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    for polls in 0..6 {
        let held = claim("job");
        granted(&backend, &held).await;
        poll_and_drop(backend.extend(&held, LEASE * 2), polls, Duration::ZERO).await;
        poll_and_drop(backend.inspect(&Selector::prefix("")), polls, Duration::ZERO).await;
        poll_and_drop(backend.release(&held), polls, Duration::ZERO).await;
        poll_and_drop(backend.attempt(&held), polls, Duration::ZERO).await;
        backend.release(&held).await.expect("release");
        assert_eq!(oracle.row("job").await.and_then(|row| row.claim), None, "{polls} polls");
    }
}

#[tokio::test]
async fn an_attempt_dropped_while_it_waits_for_the_file_is_applied_before_its_release() {
    let place = Place::new();
    let (backend, mut oracle) = (Arc::new(place.backend().await), place.oracle().await);
    oracle.execute("BEGIN IMMEDIATE").await;
    let dropped = claim("job");
    assert!(!poll_and_drop(backend.attempt(&dropped), 3, Duration::from_millis(50)).await);
    let release = tokio::spawn({
        let (backend, claim) = (Arc::clone(&backend), dropped.clone());
        async move { backend.release(&claim).await }
    });
    oracle.execute("COMMIT").await;
    release.await.expect("no panic").expect("release");
    let row = oracle.row("job").await.expect("the attempt was applied");
    assert_eq!(row.claim, None, "and its claim released");
    granted(&backend, &claim("job")).await;
}

#[tokio::test]
async fn an_opening_that_is_dropped_leaves_the_file_to_others() {
    let place = Place::new();
    for polls in 0..40 {
        poll_and_drop(SqlBackend::sqlite(&place.config()), polls, Duration::from_micros(100)).await;
    }
    let backend = place.backend().await;
    granted(&backend, &claim("job")).await;
    // Nobody is left with a transaction open.
    place.oracle().await.execute("BEGIN IMMEDIATE; ROLLBACK").await;
}

#[tokio::test]
async fn a_backend_that_is_dropped_unclosed_gives_its_file_back() {
    let place = Place::new();
    let backend = place.backend().await;
    granted(&backend, &claim("job")).await;
    drop(backend);
    // The last connection to a file removes its log; its thread does so in its own time.
    let log = place.path.with_file_name("locks.db-wal");
    let gone = async {
        while log.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the connection ends");
}
