//! The shortest time of a hold: who goes early stays, and everything that ends a hold still ends it.

use std::{future::Future as _, pin::pin, sync::Arc, task::Context, time::Duration};

use lock_core::{Error, ErrorKind, LockClient, LossReason, MemoryBackend, Owner, Renew, TokioClock};
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(3);
const STAY: Duration = Duration::from_secs(10);
/// Timers of tokio are good to a millisecond, and the two clients take turns within a few.
const SLACK: Duration = Duration::from_millis(100);

/// Two clients of one store whose time is tokio's, which is paused.
fn clients() -> (LockClient, LockClient) {
    let clock = Arc::new(TokioClock::new());
    let store = MemoryBackend::new().with_clock(clock.clone());
    let client = || LockClient::builder(store.clone()).clock(clock.clone()).lease(LEASE).build().expect("a client");
    (client(), client())
}

/// When the other client gets the lock.
async fn next(other: &LockClient) -> Instant {
    let guard = other.lock("job").acquire().await.expect("free at last");
    let at = Instant::now();
    guard.release().await.expect("held");
    at
}

fn assert_stayed(began: Instant, until: Instant) {
    let held = until - began;
    assert!((STAY..STAY + SLACK).contains(&held), "held for {held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_returns_when_the_time_has_passed_and_renews_until_then() {
    let (one, other) = clients();
    let guard = one.lock("job").min_hold(STAY).acquire().await.expect("free");
    let began = Instant::now();
    let (released, got) = tokio::join!(
        async {
            guard.release().await.expect("held");
            Instant::now()
        },
        next(&other)
    );
    assert_stayed(began, released);
    assert_stayed(began, got);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_and_a_dropped_release_stay_as_long() {
    let (one, other) = clients();
    let began = Instant::now();
    drop(one.lock("job").min_hold(STAY).acquire().await.expect("free"));
    assert_stayed(began, next(&other).await);

    for polls in 0..3 {
        let began = Instant::now();
        let guard = one.lock("job").min_hold(STAY).acquire().await.expect("free");
        {
            let mut release = pin!(guard.release());
            for _ in 0..polls {
                assert!(release.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
                tokio::task::yield_now().await;
            }
        }
        assert_stayed(began, next(&other).await);
    }
    std::mem::forget(one.lock("job").min_hold(STAY).acquire().await.expect("free").release());
    let began = Instant::now();
    assert_stayed(began, next(&other).await);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_took_longer_waits_for_nothing() {
    let (one, other) = clients();
    let guard = one.lock("job").min_hold(STAY).acquire().await.expect("free");
    tokio::time::sleep(2 * STAY).await;
    let asked = Instant::now();
    guard.release().await.expect("held");
    assert!(asked.elapsed() < SLACK);
    assert!(next(&other).await - asked < SLACK);
}

#[tokio::test(start_paused = true)]
async fn of_several_guards_the_last_one_stays() {
    let (one, other) = clients();
    let owner = Owner::new();
    let outer = one.lock("job").min_hold(STAY).owner(&owner).acquire().await.expect("free");
    let began = Instant::now();
    let inner = one.lock("job").owner(&owner).acquire().await.expect("re-entered");
    outer.release().await.expect("held");
    assert!(began.elapsed() < SLACK, "another guard holds on");
    inner.release().await.expect("held");
    assert_stayed(began, next(&other).await);
}

#[tokio::test(start_paused = true)]
async fn a_loss_and_a_close_cut_it_short() {
    let (one, other) = clients();
    let guard = one.lock("job").min_hold(STAY).acquire().await.expect("free");
    let began = Instant::now();
    let (released, broken) = tokio::join!(guard.release(), other.break_lock("job", None));
    assert_eq!(broken.expect("broken").len(), 1);
    assert_eq!(released.expect_err("lost").kind(), ErrorKind::Lost);
    assert!(began.elapsed() < LEASE);

    let guard = one.lock("job").min_hold(STAY).acquire().await.expect("free");
    let lost = guard.lost();
    let (released, closed) = tokio::join!(guard.release(), one.close());
    closed.expect("closed");
    assert_eq!(released.expect_err("closed").kind(), ErrorKind::Lost);
    assert_eq!(lost.await, LossReason::Closed);
    assert!(next(&other).await - began < STAY);
}

#[tokio::test]
async fn a_time_that_the_hold_cannot_last_is_refused() {
    let (one, _) = clients();
    let lock = one.lock("job").min_hold(STAY);
    let refused = |error: Error| assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    refused(lock.clone().max_hold(STAY / 2).acquire().await.expect_err("longer than max_hold"));
    refused(lock.clone().renew(Renew::Off).acquire().await.expect_err("longer than the lease"));
    let error = lock.renew(Renew::Off).try_acquire().await.expect_err("longer than the lease");
    assert!(error.to_string().contains("min_hold 10s for lock \"job\" is out of range"), "{error}");
}

#[test]
fn when_the_runtime_ends_the_claim_goes_or_the_lease_ends_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = LockClient::builder(MemoryBackend::new());
    let guard = runtime.block_on(async {
        let client = client.lease(LEASE).build().expect("a client");
        client.lock("job").min_hold(STAY).acquire().await.expect("free")
    });
    let release = guard.release();
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let error = runtime.block_on(release).expect_err("nowhere to wait");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
