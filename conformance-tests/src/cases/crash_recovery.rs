//! Crashes and recovery: processes that are killed or stopped, servers that go and come back (L16, L18).

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, LossReason};

use super::{refused, stays, taken};
use crate::{
    Fault, Op, Outcome, Proxy, Stop, Weather, Worker, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually,
    within,
};

cases! {
    a_killed_holder_frees_the_lock_within_its_lease: "L16.a" "L13.b" "L9.h";
    a_killed_holder_keeps_the_lock_for_no_more_than_it_said: "L16.a" "L1.d";
    a_killed_waiter_does_not_block_those_behind_it: "L16.b" "L10.c";
    a_process_killed_at_a_random_moment_leaves_nothing_for_ever: "L2.b" "L16.a";
    a_stopped_holder_knows_it_at_its_first_look: "L16.c" "L8.a" "L3.e";
    a_client_works_again_after_an_outage: "L18.c" "L8.e";
    a_client_outlives_cut_connections: "L18.a" "L8.e";
    a_client_outlives_a_proxy_that_loses_answers: "L18.a" "L10.d";
    a_blackhole_ends_the_hold_at_its_deadline: "L8.f" "L9.b";
    a_client_outlives_a_restart_and_kept_claims_stay_held: "L18.b";
    a_client_outlives_a_restart_without_data: "L18.b" "L8.d";
    a_request_in_a_stopped_servers_buffer_leaves_nothing: "L10.d" "L18.c";
}

async fn a_killed_holder_frees_the_lock_within_its_lease(world: World) -> Outcome {
    let lease = world.renewed();
    let client = world.client().await?;
    let mut holder = Worker::start(&world, lease).await?;
    let token = holder.acquire("x").await?;
    let waiter = tokio::spawn(client.lock("x").wait(Duration::from_secs(60)).acquire());
    // Past several renewals: what counts is the lease, not when it was first granted.
    stays("L7.a", lease * 2, "a living holder keeps the lock", async || Ok(!waiter.is_finished())).await?;
    holder.kill().await?;
    let bound = world.bounds().take_over(lease);
    let guard = within("L16.a", bound, "the killed holder's lock is had", waiter).await???;
    ensure!("L13.b", guard.fencing_token().get() > token, "token {} after {token}", guard.fencing_token());
    world.shows("L16.a", &guard).await?;
    guard.release().await?;
    Ok(())
}

async fn a_killed_holder_keeps_the_lock_for_no_more_than_it_said(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(2));
    let client = world.client().await?;
    let mut holder = Worker::start(&world, lease).await?;
    holder.acquire("x").await?;
    let shown = world.holder("x").await?.ok_or_else(|| Stop::failed("L1.d", "the store has no holder"))?;
    holder.kill().await?;
    let start = Instant::now();
    let guard = client.lock("x").wait(world.bounds().take_over(lease)).acquire().await?;
    if let Some(remaining) = shown.remaining {
        // It may free sooner only if the store knows that the session has ended.
        let early = world.capabilities().lease_model == lock_core::LeaseModel::PerSession;
        let took = start.elapsed();
        ensure!("L1.d", early || took + NOISE >= remaining.min(NOISE), "taken {took:?} into the {remaining:?} left");
        ensure!("L16.a", remaining <= lease, "the store kept {remaining:?} for a lease of {lease:?}");
    }
    guard.release().await?;
    Ok(())
}

async fn a_killed_waiter_does_not_block_those_behind_it(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(1));
    let holder = taken("L16.b", &world.client().await?, "x").await?;
    let mut first = Worker::start(&world, lease).await?;
    first.tell(&["acquire", "x"]).await?;
    if world.capabilities().queue == lock_core::Queue::InStore {
        eventually("L16.b", NOISE, "the worker is in the queue", async || Ok(world.waiting("x").await? == 1)).await?;
    } else {
        // Nothing in the store shows a waiter; by now it has asked at least once.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let client = world.builder().await?.lease(lease).build()?;
    let second = tokio::spawn(client.lock("x").wait(Duration::from_secs(60)).acquire());
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.kill().await?;
    holder.release().await?;
    let bound = world.bounds().take_over(lease);
    within("L16.b", bound, "the waiter behind the killed one is served", second).await???.release().await?;
    world.gone("L10.c", "x", bound).await
}

async fn a_process_killed_at_a_random_moment_leaves_nothing_for_ever(world: World) -> Outcome {
    let lease = world.short();
    let client = world.client().await?;
    let mut rng = fastrand::Rng::with_seed(16);
    for _ in 0..6 {
        let mut worker = Worker::start(&world, lease).await?;
        worker.tell(&["acquire", "x"]).await?;
        tokio::time::sleep(Duration::from_micros(rng.u64(..4_000))).await;
        worker.kill().await?;
        match world.oracle().endless(world.namespace()).await {
            Ok(found) => ensure!("L2.b", found.is_empty(), "claims that would stay for ever: {found:?}"),
            Err(crate::Blind::Unsupported(_)) => {}
            Err(blind) => return Err(blind.into()),
        }
        let next = client.lock("x").wait(world.bounds().take_over(lease)).acquire();
        match next.await {
            Ok(guard) => guard.release().await?,
            Err(error) => return Err(Stop::failed("L16.a", format!("a killed process keeps the lock: {error}"))),
        }
    }
    Ok(())
}

async fn a_stopped_holder_knows_it_at_its_first_look(world: World) -> Outcome {
    let lease = world.renewed();
    let client = world.client().await?;
    let mut holder = Worker::start(&world, lease).await?;
    let token = holder.acquire("x").await?;
    let watching = (lease * 4 + Duration::from_secs(3)).as_millis().to_string();
    holder.ask(&["watch", "x", &watching]).await?;
    stays("L7.a", lease, "a running holder keeps the lock", async || Ok(world.holder("x").await?.is_some())).await?;
    holder.stop()?;
    let stopped = Instant::now();
    let next = client.lock("x").wait(world.bounds().take_over(lease)).acquire().await?;
    ensure!("L13.b", next.fencing_token().get() > token, "token {} after {token}", next.fencing_token());
    // Longer than the lease, whatever the store's crash slack was.
    tokio::time::sleep((lease * 2).saturating_sub(stopped.elapsed())).await;
    holder.resume()?;
    let seen = holder.ask(&["watched"]).await?;
    let (gap, held) = seen.split_once('\t').ok_or_else(|| Stop::broken(format!("a worker answered {seen}")))?;
    let gap = Duration::from_millis(gap.parse().map_err(|_| Stop::broken(format!("a worker answered {seen}")))?);
    ensure!("L16.c", gap > lease, "the worker's longest pause was {gap:?}, though it was stopped for longer");
    ensure_eq!("L8.a", held, "false", "is_held at the first look after a stop of {gap:?}");
    world.shows("L4.c", &next).await?;
    next.release().await?;
    Ok(())
}

async fn a_client_works_again_after_an_outage(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(4));
    let store = world.faulty().await?;
    let client = world.over(store.clone()).lease(lease).request_timeout(Duration::from_secs(1)).build()?;
    for fault in [Fault::Refuse, Fault::Swallow, Fault::EatAnswer, Fault::SwallowAnswer] {
        let kept = taken("L18.c", &client, "kept").await?;
        store.every(fault);
        let tried = client.lock("x").try_acquire().await;
        refused("L9.d", "a try during the outage", tried, ErrorKind::Unavailable)?;
        refused("L9.c", "an inspect during the outage", client.inspect("").await, ErrorKind::Unavailable)?;
        store.heal();
        ensure!("L8.e", kept.is_held(), "{fault:?}: an outage shorter than the lease ended a hold");
        world.free("L18.c", "x", Duration::from_secs(5)).await?;
        let guard = client.lock("x").wait(Duration::from_secs(5)).acquire().await?;
        world.shows("L18.c", &guard).await?;
        guard.release().await?;
        stays("L18.c", lease, "renewed again after the outage", async || Ok(kept.is_held())).await?;
        kept.release().await?;
    }
    Ok(())
}

/// A client whose connection passes a proxy.
async fn by_proxy(world: &World) -> Outcome<(Proxy, lock_core::ClientBuilder)> {
    let address = world.fixture().address();
    let address = address.ok_or_else(|| Stop::skipped("the store is not reached over TCP"))?;
    let proxy = Proxy::before(address).await?;
    let backend = world.fixture().connect_by(proxy.address()).await?;
    Ok((proxy, world.over(backend)))
}

async fn a_client_outlives_cut_connections(world: World) -> Outcome {
    let (proxy, builder) = by_proxy(&world).await?;
    let lease = world.bounds().granted(Duration::from_secs(3));
    let client = builder.lease(lease).build()?;
    let other = world.client().await?;
    for _ in 0..3 {
        let guard = client.lock("x").wait(Duration::from_secs(5)).acquire().await?;
        let held = taken("L18.a", &other, "y").await?;
        let waiter = tokio::spawn(client.lock("y").wait(Duration::from_secs(30)).acquire());
        tokio::time::sleep(Duration::from_millis(200)).await;
        proxy.cut();
        stays("L8.e", lease, "held although the connection was cut", async || Ok(guard.is_held())).await?;
        world.shows("L18.a", &guard).await?;
        held.release().await?;
        let bound = world.bounds().hand_over() + Duration::from_secs(8);
        within("L18.a", bound, "a waiter whose connection was cut is served", waiter).await???.release().await?;
        guard.release().await?;
    }
    Ok(())
}

async fn a_client_outlives_a_proxy_that_loses_answers(world: World) -> Outcome {
    let (proxy, builder) = by_proxy(&world).await?;
    let client = builder.request_timeout(Duration::from_secs(1)).build()?;
    client.lock("x").acquire().await?.release().await?;
    proxy.set(Weather::EatAnswer);
    let eaten = client.lock("x").try_acquire().await;
    refused("L10.d", "a try whose answers are eaten", eaten, ErrorKind::Unavailable)?;
    proxy.set(Weather::Fair);
    world.free("L10.d", "x", Duration::from_secs(8)).await?;
    let guard = client.lock("x").wait(Duration::from_secs(8)).acquire().await?;
    guard.release().await?;
    Ok(())
}

async fn a_blackhole_ends_the_hold_at_its_deadline(world: World) -> Outcome {
    let (proxy, builder) = by_proxy(&world).await?;
    let lease = world.bounds().granted(Duration::from_secs(2));
    let client = builder.lease(lease).build()?;
    let guard = client.lock("x").acquire().await?;
    proxy.set(Weather::Blackhole);
    let reason = within("L8.f", lease + NOISE, "the deadline is told", guard.lost()).await?;
    ensure_eq!("L8.f", reason, LossReason::Expired, "lost in a blackhole as");
    let start = Instant::now();
    let waited = client.lock("y").wait(Duration::from_millis(500)).acquire().await;
    refused("L9.c", "a wait in a blackhole", waited, ErrorKind::Unavailable)?;
    ensure!("L9.b", start.elapsed() <= Duration::from_millis(500) + NOISE, "it ended after {:?}", start.elapsed());
    proxy.set(Weather::Fair);
    drop(guard);
    world.free("L18.a", "x", world.bounds().take_over(lease) + Duration::from_secs(8)).await?;
    let guard = client.lock("y").wait(Duration::from_secs(10)).acquire().await?;
    guard.release().await?;
    Ok(())
}

async fn a_client_outlives_a_restart_and_kept_claims_stay_held(world: World) -> Outcome {
    let world = world.private().await?;
    let server = world.server()?;
    let lease = world.bounds().long();
    let client = world.builder().await?.lease(lease).build()?;
    let guard = taken("L18.b", &client, "x").await?;
    server.restart().await?;
    let bound = server.recovery() + world.bounds().hand_over();
    let next = client.lock("y").wait(bound).acquire().await?;
    next.release().await?;
    if world.holder("x").await?.is_some_and(|holder| holder.claim == guard.claim_id()) {
        ensure!("L18.b", guard.is_held(), "the store kept the claim, and its holder was told of a loss");
        guard.extend(lease).await?;
        guard.release().await?;
    } else {
        let kept = &world.capabilities().exclusion.server_restart;
        ensure!("L18.b", *kept != lock_core::Verdict::Yes, "the store promises to keep claims, and did not");
        drop(guard);
    }
    world.free("L18.b", "x", bound).await
}

async fn a_client_outlives_a_restart_without_data(world: World) -> Outcome {
    let world = world.private().await?;
    let server = world.server()?;
    let lease = world.bounds().granted(Duration::from_secs(2));
    let client = world.builder().await?.lease(lease).build()?;
    let guard = taken("L18.b", &client, "x").await?;
    server.restart_empty().await?;
    let bound = server.recovery() + lease + NOISE;
    within("L8.d", bound, "a claim that the store forgot is told as lost", guard.lost()).await?;
    let next = client.lock("x").wait(bound).acquire().await?;
    world.shows("L18.b", &next).await?;
    next.release().await?;
    Ok(())
}

async fn a_request_in_a_stopped_servers_buffer_leaves_nothing(world: World) -> Outcome {
    let world = world.private().await?;
    let server = world.server()?;
    let lease = world.bounds().granted(Duration::from_secs(4));
    let client = world.builder().await?.lease(lease).request_timeout(Duration::from_secs(1)).build()?;
    client.lock("x").acquire().await?.release().await?;
    server.pause()?;
    let tried = client.lock("x").try_acquire().await;
    refused("L10.d", "a try at a stopped server", tried, ErrorKind::Unavailable)?;
    server.resume()?;
    world.free("L10.d", "x", world.bounds().take_over(lease)).await?;
    let store = crate::Faulty::over(world.backend().await?);
    ensure_eq!("L10.d", store.count(Op::Attempt), 0, "calls of a new connection");
    Ok(())
}
