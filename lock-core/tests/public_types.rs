//! What the public types and futures promise to the compiler.

use std::{future::Future, time::Duration};

use lock_core::{Backend, Error, Lock, LockClient, LockGuard, LossReason, MemoryBackend, Owner};

fn send_and_sync<T: Send + Sync + 'static>() {}

fn spawnable<T>(_: impl Future<Output = T> + Send + 'static) {}

fn send<T>(_: impl Future<Output = T> + Send) {}

#[test]
fn public_types_cross_threads() {
    send_and_sync::<LockClient>();
    send_and_sync::<Lock>();
    send_and_sync::<LockGuard>();
    send_and_sync::<Owner>();
    send_and_sync::<Error>();
    send_and_sync::<LossReason>();
    send_and_sync::<MemoryBackend>();
    send_and_sync::<std::sync::Arc<dyn Backend>>();
}

#[tokio::test]
async fn futures_can_be_spawned_from_a_temporary_lock() {
    let client = LockClient::builder(MemoryBackend::new()).build().expect("a client");
    spawnable(client.lock("x").acquire());
    spawnable(client.lock("x").try_acquire());
    let guard = client.lock("x").wait(Duration::from_secs(1)).acquire().await.expect("free");
    spawnable(guard.lost());
    send(guard.extend(Duration::from_secs(1)));
    send(guard.protect(std::future::ready(())));
    send(client.close());
    send(client.inspect(""));
    send(client.break_lock("x", None));
    spawnable(guard.release());
    let outcome =
        tokio::spawn(async move { client.lock("y").run(async |guard: &LockGuard| guard.name().to_owned()).await });
    assert_eq!(outcome.await.expect("no panic").expect("a free lock"), "y");
}

#[tokio::test]
async fn futures_outlive_the_lock_and_guard_that_made_them() {
    let client = LockClient::builder(MemoryBackend::new()).build().expect("a client");
    let acquire = client.lock("x").acquire();
    let attempt = client.lock("y").try_acquire();
    drop(client);
    let guard = acquire.await.expect("free");
    let lost = guard.lost();
    drop((guard, attempt.await.expect("answered")));
    drop(lost);
}
