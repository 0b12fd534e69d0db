//! The main paths on the memory backend, from the outside.

use std::time::Duration;

use lock_core::{ErrorKind, LockClient, LossReason, ManualClock, MemoryBackend, Owner, Renew, SystemClock};

fn client(store: &MemoryBackend) -> LockClient {
    LockClient::builder(store.clone()).build().expect("a client")
}

#[tokio::test]
async fn a_lock_is_free_then_taken_then_free() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    let guard = one.lock("x").acquire().await.expect("free");
    assert!(other.lock("x").try_acquire().await.expect("answered").is_none());
    let error = other.lock("x").wait(Duration::from_millis(50)).acquire().await.expect_err("held");
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    guard.release().await.expect("held until here");
    assert!(store_is_empty(&one).await);
    other.lock("x").acquire().await.expect("free again").release().await.expect("held");
}

async fn store_is_empty(client: &LockClient) -> bool {
    client.inspect("").await.expect("memory answers").is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiters_of_one_client_each_get_their_turn() {
    let store = MemoryBackend::new();
    let client = client(&store);
    let tasks: Vec<_> = (0..1_000)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.lock("x").acquire().await?.release().await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect("a turn");
    }
}

#[tokio::test]
async fn an_owner_reenters_and_the_last_guard_releases() {
    let store = MemoryBackend::new();
    let (client, other) = (client(&store), client(&store));
    let owner = Owner::new();
    let outer = client.lock("x").owner(&owner).acquire().await.expect("free");
    let inner = owner.scope(client.lock("x").acquire()).await.expect("re-entry");
    assert_eq!((inner.hold_count(), inner.fencing_token()), (2, outer.fencing_token()));
    outer.release().await.expect("held");
    assert!(other.lock("x").try_acquire().await.expect("answered").is_none());
    inner.release().await.expect("held");
    assert!(other.lock("x").try_acquire().await.expect("answered").is_some());
}

#[tokio::test]
async fn the_first_look_after_a_suspend_says_lost() {
    let clock = ManualClock::over(SystemClock);
    let store = MemoryBackend::new().with_clock(clock.clone());
    let client = LockClient::builder(store).clock(clock.clone()).build().expect("a client");
    let guard = client.lock("x").acquire().await.expect("free");
    clock.advance(Duration::from_secs(60));
    assert!(!guard.is_held());
    assert_eq!(guard.lost().await, LossReason::Expired);
    assert_eq!(guard.release().await.expect_err("lost").kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn a_hold_is_renewed_or_not() {
    let store = MemoryBackend::new();
    let client = client(&store);
    let lease = Duration::from_millis(200);
    let renewed = client.lock("x").lease(lease).acquire().await.expect("free");
    let left = client.lock("y").lease(lease).renew(Renew::Off).acquire().await.expect("free");
    assert_eq!(left.lost().await, LossReason::Expired);
    tokio::time::sleep(lease * 3).await;
    assert!(renewed.is_held());
    renewed.release().await.expect("held all the time");
}

#[tokio::test]
async fn closing_tells_the_guards_and_frees_the_locks() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    let guard = one.lock("x").acquire().await.expect("free");
    one.close().await.expect("memory answers");
    assert_eq!(guard.lost().await, LossReason::Closed);
    assert_eq!(one.lock("y").acquire().await.expect_err("closed").kind(), ErrorKind::Closed);
    assert!(store_is_empty(&other).await);
    one.close().await.expect("idempotent");
}

#[tokio::test]
async fn a_broken_lock_is_told_to_its_holder() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    let guard = one.lock("x").acquire().await.expect("free");
    let broken = other.break_lock("x", guard.fencing_token()).await.expect("memory answers");
    assert_eq!(broken.len(), 1);
    assert_eq!(guard.lost().await, LossReason::Gone);
}

#[test]
fn a_client_whose_runtime_ended_before_it_did_anything_is_closed() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (first, second) = (runtime(), runtime());
    // The client's tasks are not polled once.
    let client = first.block_on(async { LockClient::builder(MemoryBackend::new()).build().expect("a client") });
    drop(first);
    let error = second.block_on(client.lock("x").acquire()).expect_err("nobody would renew it");
    assert_eq!(error.kind(), ErrorKind::Closed);
    second.block_on(client.close()).expect("nothing was held");
}

#[test]
fn closing_a_client_whose_runtime_ended_tells_at_once_that_a_lock_is_left_to_its_lease() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (first, second) = (runtime(), runtime());
    let store = MemoryBackend::new();
    let (client, guard) = first.block_on(async {
        let client = client(&store);
        let guard = client.lock("x").acquire().await.expect("free");
        (client, guard)
    });
    drop(first);
    let error = second.block_on(client.close()).expect_err("nobody releases it");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("runtime"), "{error}");
    drop(guard);
}
