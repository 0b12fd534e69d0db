//! Leaks: after many cycles the store and the client are where they were before (L20).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::{LockClient, Owner, Renew};
use tokio::{runtime::Handle, task::JoinSet};

use super::taken;
use crate::{Op, Outcome, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually};

cases! {
    #[heavy] many_cycles_leave_the_store_as_it_was: "L20.a" "L13.a";
    #[heavy] many_cycles_leave_the_client_as_it_was: "L20.b" "L7.b";
    a_dropped_client_leaves_no_task: "L20.b" "L11.a";
    a_closed_client_leaves_no_task: "L20.b" "L11.e";
}

/// Every way in which a lock is taken and given back.
async fn cycle(client: &LockClient, rng: &mut fastrand::Rng, name: &str) -> Outcome {
    match rng.u8(..6) {
        0 => drop(client.lock(name).try_acquire().await?),
        1 => {
            if let Some(guard) = client.lock(name).renew(Renew::Off).try_acquire().await? {
                guard.release().await?;
            }
        }
        2 => {
            let owner = Owner::new();
            let lock = client.lock(name).owner(&owner);
            let (outer, inner) = (lock.acquire().await?, lock.acquire().await?);
            outer.release().await?;
            inner.release().await?;
        }
        3 => {
            // Given up somewhere on its way.
            let _ = tokio::time::timeout(Duration::from_micros(rng.u64(..500)), client.lock(name).acquire()).await;
        }
        _ => client.lock(name).acquire().await?.release().await?,
    }
    Ok(())
}

/// 20,000 cycles on eight names; on a store that has not done half of them in a few seconds, as many as fit into these.
async fn many_cycles(client: &LockClient) -> Outcome {
    let end = Instant::now() + Duration::from_secs(5);
    let done = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for worker in 0..4_u64 {
        let (client, done) = (client.clone(), Arc::clone(&done));
        tasks.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(worker);
            for _ in 0..5_000 {
                if Instant::now() > end && done.load(Ordering::Relaxed) < 10_000 {
                    break;
                }
                let name = format!("cycle-{}", rng.u8(..8));
                cycle(&client, &mut rng, &name).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(())
}

async fn many_cycles_leave_the_store_as_it_was(world: World) -> Outcome {
    let client = world.client().await?;
    many_cycles(&client).await?;
    client.close().await?;
    eventually("L20.a", NOISE, "no claim is left", async || Ok(world.oracle().claims(world.namespace()).await? == 0))
        .await?;
    let records = world.oracle().records(world.namespace()).await?;
    ensure!("L20.a", records <= 8, "{records} records are left of eight names");
    Ok(())
}

async fn many_cycles_leave_the_client_as_it_was(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    taken("L20.b", &client, "x").await?.release().await?;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    many_cycles(&client).await?;
    let mut after = 0;
    eventually("L20.b", NOISE, "no call is under way and no task is left over", async || {
        after = tasks();
        Ok(store.in_flight() == 0 && after <= before)
    })
    .await?;
    // A renewal that was left behind would be sent about every third of a lease.
    let guard = client.lock("x").lease(world.renewed()).acquire().await?;
    let extends = store.count(Op::Extend);
    tokio::time::sleep(world.renewed()).await;
    let claim = guard.claim_id();
    let strangers: Vec<_> = store
        .calls()
        .into_iter()
        .filter(|call| call.op == Op::Extend)
        .skip(extends)
        .filter(|call| call.claim != Some(claim))
        .collect();
    ensure!("L7.b", strangers.is_empty(), "renewals of holds that are over: {strangers:?}");
    guard.release().await?;
    Ok(())
}

async fn tasks_return_to(before: usize) -> Outcome {
    let mut after = 0;
    let limit = NOISE + Duration::from_secs(2);
    let result = eventually("L20.b", limit, "the tasks of a client have ended", async || {
        after = Handle::current().metrics().num_alive_tasks();
        Ok(after <= before)
    });
    result.await?;
    ensure!("L20.b", after <= before, "{after} tasks after, {before} before");
    Ok(())
}

async fn a_dropped_client_leaves_no_task(world: World) -> Outcome {
    let before = Handle::current().metrics().num_alive_tasks();
    for _ in 0..20 {
        let client = world.client().await?;
        let guard = taken("L20.b", &client, "x").await?;
        drop(client);
        drop(guard);
        world.gone("L11.a", "x", world.bounds().prompt()).await?;
    }
    tasks_return_to(before).await
}

async fn a_closed_client_leaves_no_task(world: World) -> Outcome {
    let before = Handle::current().metrics().num_alive_tasks();
    for _ in 0..10 {
        let client = world.client().await?;
        let guard = taken("L20.b", &client, "x").await?;
        client.close().await?;
        ensure_eq!("L11.e", world.holder("x").await?, None, "after close the holder is");
        drop((guard, client));
    }
    tasks_return_to(before).await
}
