//! Waiting: limits that hold, errors that are told apart, wake-ups that arrive, lines that are kept (L9, L19).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use lock_core::{ErrorKind, LockClient, LockGuard, Queue, Renew, Wakes};
use tokio::{sync::Mutex, task::JoinHandle};

use super::{refused, stays, taken};
use crate::{
    Fault, Op, Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually, polls::poll_once,
    within,
};

cases! {
    a_try_returns_at_once_and_leaves_nothing: "L9.a" "L9.c";
    a_limit_holds_and_leaves_nothing: "L9.b" "L9.c" "L10.c";
    a_limit_holds_at_an_unreachable_store: "L9.b" "L9.c";
    a_limit_that_ends_in_an_outage_is_unavailable: "L9.c" "L9.e";
    an_unreachable_store_is_asked_again_for_a_while: "L9.d";
    a_wait_of_zero_is_one_attempt: "L9.f";
    a_waiter_outlives_an_outage: "L9.e" "L18.c";
    a_waiter_without_limit_ends_when_the_store_is_silent_for_a_lease: "L9.e";
    a_release_wakes_the_waiter: "L9.g";
    a_release_wakes_a_waiter_of_the_same_client: "L9.g";
    a_silent_expiry_wakes_the_waiter: "L9.h" "L1.a";
    a_waiter_is_served_although_its_notifications_were_cut: "L9.i";
    #[heavy] a_release_that_races_the_wait_is_not_missed: "L9.g";
    a_client_serves_its_waiters_in_order: "L9.j";
    a_waiter_that_leaves_passes_its_turn_on: "L9.g" "L9.j";
    a_slow_head_does_not_block_the_line: "L9.j";
    #[heavy] a_hundred_waiters_cost_no_more_than_one: "L19.a" "L9.j";
    a_queueing_store_serves_in_order: "L19.b" "L9.j";
    a_waiter_that_left_a_queue_does_not_block_it: "L10.c" "L19.b";
    a_place_in_a_queue_is_kept_for_longer_than_a_lease: "L19.b" "L9.j";
}

async fn a_try_returns_at_once_and_leaves_nothing(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, other) = (world.over(store.clone()).build()?, world.client().await?);
    let guard = taken("L9.a", &other, "x").await?;
    let start = Instant::now();
    let tried = client.lock("x").wait(Duration::from_secs(20)).try_acquire().await?;
    ensure!("L9.a", tried.is_none(), "a try was granted what another holds");
    ensure!("L9.a", start.elapsed() <= NOISE, "a try waited for {:?}", start.elapsed());
    ensure_eq!("L9.a", store.count(Op::Attempt), 1, "attempts of one try");
    ensure_eq!("L9.a", world.waiting("x").await?, 0, "after a try there wait in the store");
    world.shows("L9.a", &guard).await?;
    guard.release().await?;
    ensure_eq!("L9.a", world.holder("x").await?, None, "after try and release the holder is");
    Ok(())
}

async fn a_limit_holds_and_leaves_nothing(world: World) -> Outcome {
    let (client, other) = (world.client().await?, world.client().await?);
    let guard = taken("L9.b", &other, "x").await?;
    // Within the shorter one, too, a server on a busy machine answers once.
    for wait in [Duration::from_millis(150), Duration::from_millis(400)] {
        let start = Instant::now();
        let result = client.lock("x").wait(wait).acquire().await;
        let took = start.elapsed();
        let error = refused("L9.c", "a wait for what another holds", result, ErrorKind::TimedOut)?;
        ensure!("L9.c", error.is_retryable(), "a time-out is not retryable");
        ensure!("L9.b", took >= wait, "a wait of {wait:?} ended after {took:?}");
        ensure!("L9.b", took <= wait + NOISE, "a wait of {wait:?} ended after {took:?}");
        eventually("L10.c", world.bounds().prompt(), "no place is left in the store's queue", async || {
            Ok(world.waiting("x").await? == 0)
        })
        .await?;
    }
    world.shows("L10.c", &guard).await?;
    guard.release().await?;
    world.free("L10.c", "x", world.bounds().hand_over()).await
}

async fn a_limit_holds_at_an_unreachable_store(world: World) -> Outcome {
    let wait = Duration::from_millis(500);
    for fault in [Fault::Refuse, Fault::Swallow] {
        let store = world.faulty().await?;
        let client = world.over(store.clone()).build()?;
        store.every(fault);
        let start = Instant::now();
        let result = client.lock("x").wait(wait).acquire().await;
        let took = start.elapsed();
        refused("L9.c", "a wait at an unreachable store", result, ErrorKind::Unavailable)?;
        ensure!("L9.b", took <= wait + NOISE, "{fault:?}: a wait of {wait:?} ended after {took:?}");
        store.heal();
    }
    Ok(())
}

/// A waiter in line at the store: the answer to its first attempt was Busy, and it goes on waiting.
async fn in_line(
    store: &crate::Faulty,
    client: &LockClient,
    name: &str,
    wait: Option<Duration>,
) -> Outcome<JoinHandle<Result<LockGuard, lock_core::Error>>> {
    let (before, lock) = (store.count(Op::Attempt), client.lock(name).wait(wait));
    let waiter = tokio::spawn(lock.acquire());
    eventually("L9.g", NOISE, "the waiter's first attempt is answered", async || {
        Ok(store.count(Op::Attempt) > before && store.in_flight() == 0)
    })
    .await?;
    Ok(waiter)
}

async fn a_limit_that_ends_in_an_outage_is_unavailable(world: World) -> Outcome {
    let store = world.faulty().await?;
    let timeout = Duration::from_millis(500);
    let client = world.over(store.clone()).request_timeout(timeout).build()?;
    let guard = taken("L9.e", &world.client().await?, "x").await?;
    let waiter = in_line(&store, &client, "x", Some(Duration::from_millis(1_500))).await?;
    store.every(Fault::Refuse);
    let result = within("L9.b", Duration::from_millis(1_500) + NOISE, "the limit holds", waiter).await??;
    // That others held it was true long ago; at the limit nobody knew.
    refused("L9.c", "a limit that ended in an outage", result, ErrorKind::Unavailable)?;
    store.heal();
    guard.release().await?;
    Ok(())
}

async fn an_unreachable_store_is_asked_again_for_a_while(world: World) -> Outcome {
    let store = world.faulty().await?;
    let timeout = Duration::from_millis(800);
    let client = world.over(store.clone()).request_timeout(timeout).build()?;
    store.all(Op::Attempt, Fault::Refuse);
    for waits in [false, true] {
        let (before, start) = (store.count(Op::Attempt), Instant::now());
        let result =
            if waits { client.lock("x").acquire().await.map(Some) } else { client.lock("x").try_acquire().await };
        let took = start.elapsed();
        refused("L9.d", "a first attempt at an unreachable store", result, ErrorKind::Unavailable)?;
        ensure!("L9.d", took <= timeout + NOISE, "it ended after {took:?}, with a request timeout of {timeout:?}");
        let attempts = store.count(Op::Attempt) - before;
        ensure!("L9.d", attempts >= 2, "it was not asked again within {timeout:?}");
        ensure!("L9.d", attempts <= 50, "it was asked {attempts} times within {took:?}: no back-off");
    }
    // Two refusals, then an answer: nobody notices.
    let mut refusals = 0;
    store.plan(move |call| {
        refusals += usize::from(call.op == Op::Attempt);
        (call.op == Op::Attempt && refusals <= 2).then_some(Fault::Refuse)
    });
    let guard = taken("L9.d", &client, "x").await?;
    guard.release().await?;
    Ok(())
}

async fn a_wait_of_zero_is_one_attempt(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, other) = (world.over(store.clone()).build()?, world.client().await?);
    let guard = taken("L9.f", &other, "x").await?;
    let start = Instant::now();
    let result = client.lock("x").wait(Duration::ZERO).acquire().await;
    refused("L9.f", "a wait of zero for what another holds", result, ErrorKind::TimedOut)?;
    ensure!("L9.f", start.elapsed() <= NOISE, "a wait of zero took {:?}", start.elapsed());
    ensure_eq!("L9.f", store.count(Op::Attempt), 1, "attempts of a wait of zero");
    guard.release().await?;
    client.lock("x").wait(Duration::ZERO).acquire().await?.release().await?;
    Ok(())
}

async fn a_waiter_outlives_an_outage(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).request_timeout(Duration::from_millis(500)).build()?;
    for fault in [Fault::Refuse, Fault::Swallow] {
        let guard = taken("L9.e", &world.client().await?, "x").await?;
        let waiter = in_line(&store, &client, "x", Some(Duration::from_secs(30))).await?;
        store.every(fault);
        guard.release().await?;
        let waits = async || Ok(!waiter.is_finished());
        stays("L9.e", Duration::from_millis(1_200), "the waiter outlives an outage that its limit allows", waits)
            .await?;
        store.heal();
        // A call that was swallowed is given up after twice its timeout, and pauses have grown meanwhile.
        let bound = world.bounds().hand_over() + Duration::from_secs(5);
        within("L9.e", bound, "the waiter is served after the outage", waiter).await???.release().await?;
    }
    Ok(())
}

async fn a_waiter_without_limit_ends_when_the_store_is_silent_for_a_lease(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(1));
    let store = world.faulty().await?;
    // A silence is noticed by asking, and a store that wakes its waiters is not asked often.
    let client = world.over(store.clone()).lease(lease).safety_poll(lease / 4).build()?;
    let guard = taken("L9.e", &world.client().await?, "x").await?;
    for fault in [Fault::Refuse, Fault::Swallow] {
        let waiter = in_line(&store, &client, "x", None).await?;
        let asked = store.calls().last().map(|call| call.at);
        store.every(fault);
        let result = within("L9.e", lease * 2 + NOISE, "the waiter ends", waiter).await??;
        refused("L9.e", "a silent store, to a waiter without limit,", result, ErrorKind::Unavailable)?;
        let silence = asked.map_or(lease, |at| at.elapsed());
        ensure!("L9.e", silence + Duration::from_millis(50) >= lease, "given up after {silence:?} of silence");
        store.heal();
    }
    guard.release().await?;
    Ok(())
}

async fn a_release_wakes_the_waiter(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, other) = (world.over(store.clone()).build()?, world.client().await?);
    let mut hand_overs = Vec::new();
    for _ in 0..15 {
        let guard = taken("L9.g", &other, "x").await?;
        let waiter = in_line(&store, &client, "x", Some(Duration::from_secs(20))).await?;
        let start = Instant::now();
        guard.release().await?;
        let served = tokio::spawn(async move {
            let guard = waiter.await;
            (guard, start.elapsed())
        });
        let bound = world.bounds().hand_over();
        let (guard, took) = within("L9.g", bound, "the waiter is served after the release", served).await??;
        hand_overs.push(took);
        guard??.release().await?;
    }
    hand_overs.sort_unstable();
    let median = hand_overs[hand_overs.len() / 2];
    if world.capabilities().wakes == Wakes::Push {
        // Far below the shortest pause between two polls: so it was the push that woke the waiter.
        ensure!("L9.g", median < Duration::from_millis(45), "half of the hand-overs took {median:?} or more");
    }
    Ok(())
}

async fn a_release_wakes_a_waiter_of_the_same_client(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    if world.capabilities().queue == Queue::InClient {
        // Without the store's help: the client keeps the line and knows of its own release.
        store.all(Op::Attempt, Fault::Mute);
    }
    let mut hand_overs = Vec::new();
    for _ in 0..15 {
        let guard = taken("L9.g", &client, "x").await?;
        let waiter = in_line(&store, &client, "x", Some(Duration::from_secs(20))).await?;
        let start = Instant::now();
        guard.release().await?;
        let next = within("L9.g", world.bounds().hand_over(), "the waiter is served", waiter).await???;
        hand_overs.push(start.elapsed());
        next.release().await?;
    }
    hand_overs.sort_unstable();
    let median = hand_overs[hand_overs.len() / 2];
    ensure!(
        "L9.g",
        median < Duration::from_millis(45),
        "half of the hand-overs within one client took {median:?} or more"
    );
    Ok(())
}

async fn a_silent_expiry_wakes_the_waiter(world: World) -> Outcome {
    let lease = world.short();
    let (client, other) = (world.client().await?, world.client().await?);
    let guard = other.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    let next = client.lock("x").wait(Duration::from_secs(30)).acquire();
    let next = within("L9.h", world.bounds().take_over(lease), "the waiter is served after the expiry", next).await??;
    ensure!("L1.a", !guard.is_held(), "the expired holder's guard is held beside its successor's");
    world.shows("L9.h", &next).await?;
    next.release().await?;
    drop(guard);
    Ok(())
}

async fn a_waiter_is_served_although_its_notifications_were_cut(world: World) -> Outcome {
    let store = world.faulty().await?;
    let every = Duration::from_secs(1);
    let (client, other) = (world.over(store.clone()).safety_poll(every).build()?, world.client().await?);
    let guard = taken("L9.i", &other, "x").await?;
    store.all(Op::Attempt, Fault::Mute);
    let waiter = in_line(&store, &client, "x", Some(Duration::from_secs(30))).await?;
    guard.release().await?;
    let bound = world.bounds().hand_over() + every * 2;
    within("L9.i", bound, "the waiter is served without notifications", waiter).await???.release().await?;
    Ok(())
}

async fn a_release_that_races_the_wait_is_not_missed(world: World) -> Outcome {
    let (client, other) = (world.client().await?, world.client().await?);
    let mut rng = fastrand::Rng::with_seed(9);
    // 500 rounds where the store is quick; as many as fit into the time where it polls.
    let end = Instant::now() + Duration::from_secs(6);
    for round in 0..500 {
        if round >= 50 && Instant::now() > end {
            break;
        }
        let guard = taken("L9.g", &other, "x").await?;
        let waiter = tokio::spawn(client.lock("x").wait(Duration::from_secs(20)).acquire());
        for _ in 0..rng.u32(..8) {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_micros(rng.u64(..1_500))).await;
        guard.release().await?;
        let what = format!("in round {round} the waiter is served");
        within("L9.g", world.bounds().hand_over(), what, waiter).await???.release().await?;
    }
    Ok(())
}

/// Puts waiters in a client's line, one after the other; each notes its number when it is served.
async fn line_up(
    world: &World,
    client: &LockClient,
    waiters: usize,
    served: &Arc<Mutex<Vec<usize>>>,
) -> Outcome<Vec<JoinHandle<Outcome>>> {
    let mut tasks = Vec::new();
    for number in 0..waiters {
        let mut acquire = Box::pin(client.lock("x").wait(Duration::from_secs(60)).acquire());
        // The first poll takes the place in the client's line; only then may the next one come.
        let first = poll_once(&mut acquire).await;
        if world.capabilities().queue == Queue::InStore {
            // Here it is the store's queue, and the request is on its way to it.
            eventually("L9.j", NOISE, format_args!("waiter {number} is in the queue"), async || {
                Ok(world.waiting("x").await? > number as u64)
            })
            .await?;
        }
        let served = Arc::clone(served);
        tasks.push(tokio::spawn(async move {
            let guard = match first {
                std::task::Poll::Ready(guard) => guard?,
                std::task::Poll::Pending => acquire.await?,
            };
            served.lock().await.push(number);
            guard.release().await?;
            Ok(())
        }));
    }
    Ok(tasks)
}

async fn a_client_serves_its_waiters_in_order(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L9.j", &world.client().await?, "x").await?;
    let served = Arc::new(Mutex::new(Vec::new()));
    let tasks = line_up(&world, &client, 20, &served).await?;
    guard.release().await?;
    for task in tasks {
        within("L9.j", world.bounds().hand_over() * 3, "every waiter is served", task).await???;
    }
    let order = served.lock().await.clone();
    ensure_eq!("L9.j", order, (0..20).collect::<Vec<_>>(), "the waiters were served in the order");
    Ok(())
}

async fn a_waiter_that_leaves_passes_its_turn_on(world: World) -> Outcome {
    let (client, other) = (world.client().await?, world.client().await?);
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..30 {
        // What the last round's leaver had asked for may just be granted, and then is cleaned up promptly.
        let guard = other.lock("x").wait(world.bounds().prompt()).acquire().await?;
        let mut first = Box::pin(client.lock("x").acquire());
        let _ = poll_once(&mut first).await;
        let mut second = Box::pin(client.lock("x").acquire());
        let _ = poll_once(&mut second).await;
        // The head leaves about when it is its turn: before, at, or after its wake-up.
        let leave = rng.u64(..2_000);
        let leaver = tokio::spawn(async move {
            let _ = tokio::time::timeout(Duration::from_micros(leave), first).await;
        });
        guard.release().await?;
        let what = format!("in round {round} the second waiter is served after the first has left");
        let bound = world.bounds().hand_over() + Duration::from_secs(1);
        within("L9.j", bound, what, second).await??.release().await?;
        leaver.await?;
        // In a store's queue the one that left may have stood behind, and its place goes in the background.
        world.gone("L10.a", "x", world.bounds().prompt()).await?;
    }
    world.free("L9.j", "x", world.bounds().prompt()).await
}

async fn a_slow_head_does_not_block_the_line(world: World) -> Outcome {
    let lease = world.short();
    let (client, other) = (world.builder().await?.lease(lease).build()?, world.client().await?);
    let guard = taken("L9.j", &other, "x").await?;
    // Its future exists and is never polled again, as in a `select!` arm that is not taken.
    let mut starved = Box::pin(client.lock("x").acquire());
    let _ = poll_once(&mut starved).await;
    let next = tokio::spawn(client.lock("x").wait(Duration::from_secs(30)).acquire());
    tokio::time::sleep(Duration::from_millis(100)).await;
    guard.release().await?;
    // In a store's queue its place lives for a lease; in a client's line its turn lasts a second.
    let bound = Duration::from_secs(1) + world.bounds().take_over(lease) + world.bounds().hand_over();
    within("L9.j", bound, "the line moves past a head that does not react", next).await???.release().await?;
    drop(starved);
    world.free("L10.a", "x", world.bounds().prompt()).await
}

async fn a_hundred_waiters_cost_no_more_than_one(world: World) -> Outcome {
    const WAITERS: usize = 100;
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guard = taken("L19.a", &world.client().await?, "x").await?;
    let served = Arc::new(Mutex::new(Vec::new()));
    let tasks = line_up(&world, &client, WAITERS, &served).await?;
    let start = Instant::now();
    // While nothing happens, only what is at the store may ask.
    let at_store = if world.capabilities().queue == Queue::InStore { WAITERS } else { 1 };
    let before = store.count(Op::Attempt);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let polls = usize::try_from(start.elapsed().as_millis() / 50).unwrap_or(usize::MAX) + 2;
    let idle = store.count(Op::Attempt) - before;
    ensure!(
        "L19.a",
        idle <= polls * at_store,
        "{WAITERS} waiters asked the store {idle} times in {:?}",
        start.elapsed()
    );
    let (before, handed) = (store.calls().len(), Instant::now());
    guard.release().await?;
    for task in tasks {
        within("L9.j", Duration::from_secs(40), "every waiter is served", task).await???;
    }
    let commands = store.calls().len() - before;
    let polled = usize::try_from(handed.elapsed().as_millis() / 50).unwrap_or(usize::MAX);
    ensure!(
        "L19.a",
        commands <= WAITERS * 5 + polled,
        "{WAITERS} hand-overs in {:?} cost the store {commands} commands",
        handed.elapsed()
    );
    Ok(())
}

/// Waiters of clients of their own, in a queue that the store keeps, each known to be in it before the next one comes.
async fn queue_up(
    world: &World,
    waiters: usize,
    lease: Duration,
) -> Outcome<Vec<JoinHandle<Result<LockGuard, lock_core::Error>>>> {
    if world.capabilities().queue != Queue::InStore {
        return Err(Stop::skipped("the store keeps no queue"));
    }
    let mut queue = Vec::new();
    for number in 1..=waiters {
        let lock = world.client().await?.lock("x").lease(lease).wait(Duration::from_secs(60));
        queue.push(tokio::spawn(lock.acquire()));
        eventually("L19.b", NOISE, format_args!("waiter {number} is in the queue"), async || {
            Ok(world.waiting("x").await? == number as u64)
        })
        .await?;
    }
    Ok(queue)
}

async fn a_queueing_store_serves_in_order(world: World) -> Outcome {
    let guard = taken("L19.b", &world.client().await?, "x").await?;
    let mut queue = queue_up(&world, 5, world.bounds().long()).await?;
    guard.release().await?;
    while !queue.is_empty() {
        let next = queue.remove(0);
        let guard = within("L19.b", world.bounds().hand_over(), "the first in the queue is served", next).await???;
        ensure!("L19.b", queue.iter().all(|waiter| !waiter.is_finished()), "a later waiter was served before");
        ensure_eq!("L19.b", world.waiting("x").await?, queue.len() as u64, "claims that still wait in the store");
        guard.release().await?;
    }
    Ok(())
}

async fn a_waiter_that_left_a_queue_does_not_block_it(world: World) -> Outcome {
    let guard = taken("L19.b", &world.client().await?, "x").await?;
    let mut queue = queue_up(&world, 3, world.bounds().long()).await?;
    queue.remove(0).abort();
    eventually("L10.c", world.bounds().prompt(), "the place of the waiter that left is given up", async || {
        Ok(world.waiting("x").await? == 2)
    })
    .await?;
    guard.release().await?;
    for next in queue {
        within("L19.b", world.bounds().hand_over(), "the next in the queue is served", next).await???.release().await?;
    }
    Ok(())
}

async fn a_place_in_a_queue_is_kept_for_longer_than_a_lease(world: World) -> Outcome {
    let lease = world.short();
    let guard = taken("L19.b", &world.client().await?, "x").await?;
    let queue = queue_up(&world, 3, lease).await?;
    stays("L19.b", lease * 3, "all three keep their places", async || Ok(world.waiting("x").await? == 3)).await?;
    guard.release().await?;
    for next in queue {
        within("L19.b", world.bounds().hand_over(), "the next in the queue is served", next).await???.release().await?;
    }
    Ok(())
}
