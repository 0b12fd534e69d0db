//! Ends that a locked function does not choose: its future is dropped, its body panics, its parts run side by side.
#![deny(warnings)]

use std::{future::Future as _, pin::pin, sync::Arc, task::Poll, time::Duration};

use leasehold::{Error, ErrorKind, LockClient, MemoryBackend, Selector, locked};
use tokio::sync::Barrier;

fn client(store: &MemoryBackend) -> LockClient {
    LockClient::builder(store.clone()).build().expect("a client")
}

async fn is_held(client: &LockClient, name: &str) -> bool {
    !client.inspect(Selector::name(name)).await.expect("memory answers").is_empty()
}

/// Acquires through another client, which shows that the lock is free or comes to be.
async fn comes_free(client: &LockClient, name: &str) {
    let guard = client.lock(name).wait(Duration::from_secs(10)).acquire().await.expect("comes to be free");
    guard.release().await.expect("held");
}

#[locked(name = "meeting")]
async fn meets(client: &LockClient, inside: Arc<Barrier>) -> Result<(), Error> {
    inside.wait().await;
    std::future::pending().await
}

#[tokio::test]
async fn dropping_the_future_releases() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let inside = Arc::new(Barrier::new(2));
    {
        let mut future = pin!(meets(&ours, Arc::clone(&inside)));
        tokio::select! {
            _ = &mut future => unreachable!("it never ends"),
            _ = inside.wait() => {}
        }
        assert!(is_held(&theirs, "meeting").await);
    }
    comes_free(&theirs, "meeting").await;
}

#[tokio::test]
async fn a_future_that_is_dropped_while_it_waits_leaves_nothing() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let guard = theirs.lock("meeting").acquire().await.expect("free");
    {
        let mut future = pin!(meets(&ours, Arc::new(Barrier::new(1))));
        let polled = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        assert!(polled.is_pending());
    }
    guard.release().await.expect("held");
    comes_free(&theirs, "meeting").await;
    ours.close().await.expect("memory answers");
    assert!(!is_held(&theirs, "meeting").await);
}

#[locked(name = "panic")]
async fn panics(client: LockClient, other: LockClient) -> Result<(), Error> {
    assert!(!is_held(&other, "panic").await, "it is held here, and this fails");
    Ok(())
}

#[tokio::test]
async fn a_panic_in_the_body_passes_and_releases() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let told = tokio::spawn(panics(ours, theirs.clone())).await;
    assert!(told.expect_err("the panic passes").is_panic());
    comes_free(&theirs, "panic").await;
}

#[locked(name = "shared", wait = "0s", guard = held)]
async fn beside(client: &LockClient, all_inside: &Barrier) -> Result<u32, Error> {
    all_inside.wait().await;
    Ok(held.hold_count())
}

#[locked(name = "shared")]
async fn side_by_side(client: &LockClient) -> Result<(u32, u32), Error> {
    let all_inside = Barrier::new(2);
    let (one, other) = tokio::join!(beside(client, &all_inside), beside(client, &all_inside));
    Ok((one?, other?))
}

#[tokio::test]
async fn futures_that_one_body_runs_side_by_side_share_its_lock() {
    let ours = client(&MemoryBackend::new());
    let (one, other) = side_by_side(&ours).await.expect("free");
    assert_eq!(one.max(other), 3, "both were inside at once");
}

#[tokio::test]
async fn futures_side_by_side_outside_of_a_body_exclude_each_other() {
    let ours = client(&MemoryBackend::new());
    let both = Barrier::new(2);
    let later = async {
        while !is_held(&ours, "shared").await {
            tokio::task::yield_now().await;
        }
        let told = beside(&ours, &Barrier::new(1)).await;
        both.wait().await;
        told
    };
    let (first, second) = tokio::join!(beside(&ours, &both), later);
    assert_eq!(first.expect("free"), 1);
    assert_eq!(second.expect_err("held").kind(), ErrorKind::TimedOut);
}
