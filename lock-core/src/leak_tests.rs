//! What a client keeps after many cycles: nothing (L20).

use std::{future::Future, pin::pin, task::Poll, time::Duration};

use crate::{LockClient, MemoryBackend, Owner, shared::Alive};

/// The client's whole bookkeeping: holds, acquisitions, clean-ups, lines and owners.
fn kept(alive: &Alive) -> (usize, usize, usize, usize, usize) {
    let shared = &alive.shared;
    let janitor = &shared.janitor;
    (shared.engine.len(), janitor.seeking(), janitor.pending(), shared.lines.len(), shared.owners.len())
}

async fn settled(alive: &Alive) {
    let settled = async {
        while kept(alive) != (0, 0, 0, 0, 0) {
            tokio::task::yield_now().await;
        }
    };
    let outcome = tokio::time::timeout(Duration::from_secs(10), settled).await;
    assert!(outcome.is_ok(), "still kept: {:?}", kept(alive));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_cycles_leave_nothing_behind() {
    let client = LockClient::builder(MemoryBackend::new()).build().expect("a client");
    for round in 0..5_000_u32 {
        let owner = Owner::new();
        client.lock("a").acquire().await.expect("free").release().await.expect("held");
        drop(client.lock(format!("b{round}")).try_acquire().await.expect("answered"));
        let outer = client.lock("c").owner(&owner).acquire().await.expect("free");
        drop(client.lock("c").owner(&owner).acquire().await.expect("re-entry"));
        let late = client.lock("c").wait(Duration::ZERO).acquire().await;
        assert!(late.is_err(), "held by the owner");
        outer.release().await.expect("held");
    }
    settled(client.alive()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquisitions_dropped_after_any_number_of_polls_leave_nothing_behind() {
    let store = MemoryBackend::new();
    let client = LockClient::builder(store.clone()).build().expect("a client");
    let other = LockClient::builder(store).build().expect("a client");
    for polls in 0..20 {
        let held = (polls % 2 == 0).then(|| other.lock("x").acquire());
        let held = match held {
            Some(acquire) => Some(acquire.await.expect("free in the end")),
            None => None,
        };
        {
            let lock = client.lock("x");
            let mut acquire = pin!(lock.acquire());
            for _ in 0..polls {
                let poll = std::future::poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await;
                if poll.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        drop(held);
        settled(client.alive()).await;
        settled(other.alive()).await;
        assert!(other.inspect("").await.expect("memory answers").is_empty(), "after {polls} polls");
    }
}
