//! Dropping guards and closing clients: in a runtime, outside one, after its end (L11).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lock_core::{ErrorKind, LockClient, LockGuard, LossReason};

use super::{refused, stays, taken};
use crate::{Fault, Op, Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, log, within, world::CALL};

cases! {
    a_dropped_guard_releases_in_the_background: "L11.a";
    a_guard_dropped_outside_a_runtime_releases: "L11.b" "L11.a";
    a_guard_dropped_after_its_runtime_neither_blocks_nor_panics: "L11.b";
    a_dropped_guard_at_an_unreachable_store_is_cleaned_up_after: "L11.a" "L10.d";
    close_refuses_new_work_and_ends_waiters: "L11.c";
    close_loses_every_guard_before_it_releases: "L11.d" "L5.b";
    close_waits_for_pending_releases: "L11.e";
    close_at_an_unreachable_store_returns_in_time: "L11.e" "L11.d";
    close_may_be_repeated_and_raced: "L11.e";
    a_guard_keeps_its_client_alive: "L11.f" "L7.a";
    a_waiting_acquire_keeps_its_client_alive: "L11.f";
}

async fn a_dropped_guard_releases_in_the_background(world: World) -> Outcome {
    let client = world.client().await?;
    for _ in 0..10 {
        let guard = taken("L11.a", &client, "x").await?;
        let start = Instant::now();
        drop(guard);
        ensure!("L11.b", start.elapsed() < NOISE, "the drop blocked for {:?}", start.elapsed());
        world.gone("L11.a", "x", world.bounds().prompt()).await?;
    }
    Ok(())
}

/// Drops on a thread without a runtime; gives how long it took.
fn dropped_outside<T: Send + 'static>(value: T) -> Outcome<Duration> {
    let dropper = thread::Builder::new().name(log::current());
    let dropped = dropper.spawn(move || {
        let start = Instant::now();
        drop(value);
        start.elapsed()
    })?;
    dropped.join().map_err(|_| Stop::failed("L11.b", "the drop panicked"))
}

async fn a_guard_dropped_outside_a_runtime_releases(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L11.b", &client, "x").await?;
    let took = tokio::task::spawn_blocking(move || dropped_outside(guard)).await??;
    ensure!("L11.b", took < NOISE, "the drop blocked for {took:?}");
    world.gone("L11.a", "x", world.bounds().prompt()).await
}

async fn a_guard_dropped_after_its_runtime_neither_blocks_nor_panics(world: World) -> Outcome {
    let lease = world.short();
    let name = log::current();
    let made = {
        let world = world.clone();
        move || -> Outcome<(LockClient, LockGuard, LockGuard)> {
            let runtime = crate::run::runtime(&name)?;
            let made = runtime.block_on(async {
                let client = world.builder().await?.lease(lease).request_timeout(CALL).build()?;
                let (x, y) = (taken("L11.b", &client, "x").await?, taken("L11.b", &client, "y").await?);
                Outcome::Ok((client, x, y))
            });
            runtime.shutdown_timeout(Duration::from_secs(2));
            made
        }
    };
    let (client, guard, other) = tokio::task::spawn_blocking(made).await??;
    // Nobody renews any more, and the clock alone tells.
    let lost = guard.lost();
    let closed = client.lock("z").try_acquire().await;
    refused("L11.b", "a try on a client whose runtime has ended", closed, ErrorKind::Closed)?;
    let took = tokio::task::spawn_blocking(move || dropped_outside(other)).await??;
    ensure!("L11.b", took < NOISE, "the drop blocked for {took:?}");
    // Inside another runtime than its own.
    let start = Instant::now();
    let result = within("L11.b", NOISE * 2, "release after the runtime's end returns", guard.release()).await?;
    ensure!("L11.b", result.is_err(), "a release that nobody could send succeeded");
    drop((client, lost));
    ensure!("L11.b", start.elapsed() < NOISE * 2, "release and drop blocked for {:?}", start.elapsed());
    for name in ["x", "y"] {
        world.free("L11.b", name, world.bounds().take_over(lease)).await?;
    }
    Ok(())
}

async fn a_dropped_guard_at_an_unreachable_store_is_cleaned_up_after(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).request_timeout(Duration::from_millis(500)).build()?;
    let guard = taken("L11.a", &client, "x").await?;
    store.every(Fault::Refuse);
    drop(guard);
    stays("L11.a", Duration::from_millis(300), "nothing reaches the store", async || {
        Ok(world.holder("x").await?.is_some())
    })
    .await?;
    store.heal();
    world.gone("L10.d", "x", Duration::from_secs(5)).await
}

async fn close_refuses_new_work_and_ends_waiters(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, other) = (world.over(store.clone()).build()?, world.client().await?);
    let guard = taken("L11.c", &other, "x").await?;
    let waiters: Vec<_> = (0..5).map(|_| tokio::spawn(client.lock("x").acquire())).collect();
    crate::eventually("L9.g", NOISE, "a waiter is in line", async || Ok(store.count(Op::Attempt) > 0)).await?;
    client.clone().close().await?;
    for waiter in waiters {
        let ended = within("L11.c", NOISE, "a waiter of a closed client ends", waiter).await??;
        refused("L11.c", "a waiting acquire of a closed client", ended, ErrorKind::Closed)?;
    }
    refused("L11.c", "a try", client.lock("y").try_acquire().await, ErrorKind::Closed)?;
    refused("L11.c", "an acquire", client.lock("y").acquire().await, ErrorKind::Closed)?;
    refused("L11.c", "an inspect", client.inspect("").await, ErrorKind::Closed)?;
    refused("L11.c", "a break", client.break_lock("x", None).await, ErrorKind::Closed)?;
    world.shows("L11.c", &guard).await?;
    ensure_eq!("L10.c", world.waiting("x").await?, 0, "waiters of a closed client in the store");
    guard.release().await?;
    Ok(())
}

async fn close_loses_every_guard_before_it_releases(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guards = Arc::new(Mutex::new(Vec::new()));
    for name in ["x", "y", "z"] {
        let guard = taken("L11.d", &client, name).await?;
        guards.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
    }
    let (held, seen) = (Arc::clone(&guards), Arc::new(AtomicU32::new(0)));
    let still_held = Arc::clone(&seen);
    // Looks at every guard at the moment when a release leaves for the store.
    store.plan(move |call| {
        if call.op == Op::Release {
            let guards = held.lock().unwrap_or_else(PoisonError::into_inner);
            let held = guards.iter().filter(|guard: &&LockGuard| guard.is_held()).count();
            still_held.fetch_add(u32::try_from(held).unwrap_or(u32::MAX), Ordering::SeqCst);
        }
        None
    });
    client.close().await?;
    ensure_eq!("L11.d", seen.load(Ordering::SeqCst), 0, "guards that were held while releases were sent");
    store.heal();
    let guards = std::mem::take(&mut *guards.lock().unwrap_or_else(PoisonError::into_inner));
    for guard in guards {
        ensure!("L11.d", !guard.is_held(), "held after its client was closed");
        let reason = within("L11.d", NOISE, "a close is told as a loss", guard.lost()).await?;
        ensure_eq!("L11.d", reason, LossReason::Closed, "a guard of a closed client was lost as");
        ensure_eq!("L5.b", world.holder(guard.name()).await?, None, "after close the holder of {:?} is", guard.name());
        refused("L11.d", "a release after close", guard.release().await, ErrorKind::Lost)?;
    }
    Ok(())
}

async fn close_waits_for_pending_releases(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    for name in ["x", "y", "z"] {
        drop(taken("L11.e", &client, name).await?);
    }
    store.all(Op::Release, Fault::DelayRequest(Duration::from_millis(200)));
    drop(taken("L11.e", &client, "late").await?);
    client.close().await?;
    let left = world.oracle().claims(world.namespace()).await?;
    ensure_eq!("L11.e", left, 0, "claims that are left when close has returned Ok");
    Ok(())
}

async fn close_at_an_unreachable_store_returns_in_time(world: World) -> Outcome {
    for fault in [Fault::Refuse, Fault::Swallow] {
        let store = world.faulty().await?;
        let timeout = Duration::from_millis(500);
        let client = world.over(store.clone()).request_timeout(timeout).build()?;
        let guard = taken("L11.e", &client, "x").await?;
        store.every(fault);
        let start = Instant::now();
        refused("L11.e", "a close at an unreachable store", client.close().await, ErrorKind::Unavailable)?;
        ensure!("L11.e", start.elapsed() <= timeout + NOISE, "close returned after {:?}", start.elapsed());
        ensure!("L11.d", !guard.is_held(), "held after its client was closed");
        store.heal();
        world.gone("L10.d", "x", Duration::from_secs(5)).await?;
    }
    Ok(())
}

async fn close_may_be_repeated_and_raced(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L11.e", &client, "x").await?;
    let clone = client.clone();
    let (first, second) = tokio::join!(client.close(), clone.close());
    first?;
    second?;
    client.close().await?;
    drop(guard);
    ensure_eq!("L11.e", world.holder("x").await?, None, "after close the holder is");
    // Before anything was done.
    world.client().await?.close().await?;
    Ok(())
}

async fn a_guard_keeps_its_client_alive(world: World) -> Outcome {
    let lease = world.renewed();
    let guard = {
        let client = world.client().await?;
        client.lock("x").lease(lease).acquire().await?
    };
    stays("L11.f", lease * 3, "renewed without a client handle", async || Ok(guard.is_held())).await?;
    world.shows("L11.f", &guard).await?;
    guard.release().await?;
    ensure_eq!("L5.b", world.holder("x").await?, None, "after the release the holder is");
    Ok(())
}

async fn a_waiting_acquire_keeps_its_client_alive(world: World) -> Outcome {
    let guard = taken("L11.f", &world.client().await?, "x").await?;
    let waiter = tokio::spawn(world.client().await?.lock("x").wait(Duration::from_secs(20)).acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    guard.release().await?;
    within("L11.f", world.bounds().hand_over(), "the waiter is served", waiter).await???.release().await?;
    Ok(())
}
