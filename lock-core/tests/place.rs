//! The place in a store's queue, as the client that waits there sees it.

use std::time::{Duration, Instant};

use lock_core::{LockClient, LockRecord, MemoryBackend};

async fn record(client: &LockClient) -> LockRecord {
    client.inspect("x").await.expect("memory answers").pop().expect("it is held")
}

#[tokio::test]
async fn each_client_sees_its_own_place() {
    let store = MemoryBackend::new().with_queue();
    let client = || LockClient::builder(store.clone()).build().expect("a client");
    let (holder, first, second) = (client(), client(), client());
    let guard = holder.lock("x").acquire().await.expect("free");
    let mut waiting = Vec::new();
    for (place, client) in [&first, &second].into_iter().enumerate() {
        waiting.push(tokio::spawn(client.lock("x").acquire()));
        let end = Instant::now() + Duration::from_secs(10);
        while record(client).await.place != Some(place as u64 + 1) {
            assert!(Instant::now() < end, "never in line: {:?}", record(client).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let seen = record(&holder).await;
    assert_eq!((seen.waiters, seen.place, seen.queue.len()), (Some(2), None, 2));
    guard.release().await.expect("held");
    let next = waiting.remove(0).await.expect("no panic").expect("its turn");
    assert_eq!(record(&second).await.place, Some(1));
    assert_eq!(record(&first).await.place, None, "it holds, and waits no more");
    next.release().await.expect("held");
    waiting.remove(0).await.expect("no panic").expect("its turn").release().await.expect("held");
}
