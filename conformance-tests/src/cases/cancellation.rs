//! Cancellation: every public future dropped after every number of polls, and calls whose answers are lost (L10).

use std::time::Duration;

use lock_core::{ErrorKind, LockClient, LockGuard};

use super::{refused, taken};
use crate::{
    Fate, Fault, Faulty, Left, Op, Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually,
    polls::poll_n_then, within, world::CALL,
};

cases! {
    #[heavy] an_acquire_dropped_at_any_poll_leaves_nothing: "L10.a";
    #[heavy] a_waiting_acquire_dropped_at_any_poll_leaves_nothing: "L10.a" "L10.c";
    #[heavy] a_try_dropped_at_any_poll_leaves_nothing: "L10.a";
    #[heavy] an_extend_dropped_at_any_poll_leaves_the_hold: "L10.a" "L6.a";
    #[heavy] a_release_dropped_at_any_poll_still_releases: "L10.a" "L5.b";
    #[heavy] a_close_dropped_at_any_poll_still_closes: "L10.a" "L11.d";
    #[heavy] an_inspect_dropped_at_any_poll_leaves_nothing: "L10.a";
    an_aborted_waiter_leaves_nothing: "L10.a" "L10.c";
    an_eaten_answer_leaves_no_orphan: "L10.d" "L13.a";
    an_answer_that_never_comes_leaves_no_orphan: "L10.d";
    a_request_that_arrives_after_its_sender_gave_up_leaves_nothing: "L10.d";
    a_backend_that_panics_leaves_no_orphan: "L10.d" "L5.a" "L7.a";
    a_backend_that_panics_over_a_hint_costs_no_hold: "L7.a" "L8.d";
}

/// More polls than any of these futures needs: who is not done by then never will be.
const MOST_POLLS: usize = 100;

/// How a call travels; each way has more points at which its caller can leave.
const ROADS: [Option<Fault>; 5] = [
    None,
    Some(Fault::DelayRequest(Duration::from_millis(4))),
    Some(Fault::DelayAnswer(Duration::from_millis(4))),
    // Longer than a call stays with its caller.
    Some(Fault::DelayAnswer(Duration::from_millis(30))),
    Some(Fault::EatAnswer),
];

/// Runs `step` for every road, every way of leaving, and every number of polls until it says that it ended by itself.
async fn at_every_poll(
    op: Op,
    mut step: impl AsyncFnMut(&Faulty, Fate, usize) -> Outcome<bool>,
    world: &World,
) -> Outcome {
    for road in ROADS {
        for fate in Fate::DROPS {
            for polls in 0.. {
                ensure!("L10.a", polls <= MOST_POLLS, "{op:?} by {road:?} does not end within {MOST_POLLS} polls");
                let store = world.faulty().await?;
                match road {
                    // Only the first answer is lost: with none at all, nothing could be shown but an outage.
                    Some(Fault::EatAnswer) => store.next(op, Fault::EatAnswer),
                    Some(fault) => store.all(op, fault),
                    None => {}
                }
                if step(&store, fate, polls).await? {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// What a future gave, if it was not given up; a failure if it was never woken.
#[track_caller]
fn ended<T>(left: Left<T>) -> Outcome<Option<T>> {
    match left {
        Left::Stalled => Err(Stop::failed("L10.a", format!("a future was not woken within {NOISE:?}"))),
        left => Ok(left.ended()),
    }
}

/// Proves that nothing stands in another's way, promptly, and that nothing is left after it.
async fn nothing_left(world: &World, store: &Faulty, other: &LockClient) -> Outcome {
    let limit = world.bounds().prompt();
    match other.lock("x").wait(limit).acquire().await {
        Ok(guard) => guard.release().await?,
        Err(error) => return Err(Stop::failed("L10.a", format!("an abandoned future keeps the lock: {error}"))),
    }
    eventually("L10.a", limit, "no claim is left and no call is under way", async || {
        Ok(world.oracle().claims(world.namespace()).await? == 0 && store.in_flight() == 0)
    })
    .await
}

async fn an_acquire_dropped_at_any_poll_leaves_nothing(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let ended = ended(poll_n_then(polls, fate, NOISE, client.lock("x").acquire()).await)?;
        let done = ended.is_some();
        if let Some(guard) = ended {
            drop(guard?);
        }
        nothing_left(&world, store, &other).await?;
        Ok(done)
    };
    at_every_poll(Op::Attempt, step, &world).await
}

async fn a_waiting_acquire_dropped_at_any_poll_leaves_nothing(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let guard = taken("L10.a", &other, "x").await?;
        // The holder leaves while the waiter is somewhere between its first poll and its last.
        let holder = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(8)).await;
            guard.release().await
        });
        let ended = ended(poll_n_then(polls, fate, NOISE, client.lock("x").acquire()).await)?;
        let done = ended.is_some();
        drop(ended);
        holder.await??;
        nothing_left(&world, store, &other).await?;
        Ok(done)
    };
    at_every_poll(Op::Attempt, step, &world).await
}

async fn a_try_dropped_at_any_poll_leaves_nothing(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let ended = ended(poll_n_then(polls, fate, NOISE, client.lock("x").try_acquire()).await)?;
        let done = ended.is_some();
        drop(ended);
        nothing_left(&world, store, &other).await?;
        Ok(done)
    };
    at_every_poll(Op::Attempt, step, &world).await
}

async fn an_extend_dropped_at_any_poll_leaves_the_hold(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let guard = taken("L10.a", &client, "x").await?;
        let ended = ended(poll_n_then(polls, fate, NOISE, guard.extend(world.bounds().long())).await)?;
        let done = ended.is_some();
        ensure!("L10.a", guard.is_held(), "{fate:?} after {polls} polls: an abandoned extend ended the hold");
        world.shows("L10.a", &guard).await?;
        guard.release().await?;
        nothing_left(&world, store, &other).await?;
        Ok(done)
    };
    at_every_poll(Op::Extend, step, &world).await
}

async fn a_release_dropped_at_any_poll_still_releases(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let guard = taken("L10.a", &client, "x").await?;
        let ended = ended(poll_n_then(polls, fate, NOISE, guard.release()).await)?;
        if let Some(result) = ended {
            result?;
            ensure_eq!("L5.b", world.holder("x").await?, None, "after a release the holder is");
            return Ok(true);
        }
        nothing_left(&world, store, &other).await?;
        Ok(false)
    };
    at_every_poll(Op::Release, step, &world).await
}

async fn a_close_dropped_at_any_poll_still_closes(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let guard = taken("L10.a", &client, "x").await?;
        let ended = ended(poll_n_then(polls, fate, NOISE, client.close()).await)?;
        let done = ended.is_some();
        if polls > 0 {
            ensure!("L11.d", !guard.is_held(), "held after its client's close was begun");
            refused("L11.c", "a try at a closed client", client.lock("y").try_acquire().await, ErrorKind::Closed)?;
        }
        drop(guard);
        client.close().await?;
        nothing_left(&world, store, &other).await?;
        Ok(done)
    };
    at_every_poll(Op::Release, step, &world).await
}

async fn an_inspect_dropped_at_any_poll_leaves_nothing(world: World) -> Outcome {
    let other = world.client().await?;
    let step = async |store: &Faulty, fate, polls| {
        let client = world.over(store.clone()).build()?;
        let ended = ended(poll_n_then(polls, fate, NOISE, client.inspect("")).await)?;
        nothing_left(&world, store, &other).await?;
        Ok(ended.is_some())
    };
    at_every_poll(Op::Inspect, step, &world).await
}

async fn an_aborted_waiter_leaves_nothing(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, other) = (world.over(store.clone()).build()?, world.client().await?);
    let guard: LockGuard = taken("L10.a", &other, "x").await?;
    let waiters: Vec<_> = (0..10).map(|_| tokio::spawn(client.lock("x").acquire())).collect();
    eventually("L9.g", NOISE, "a waiter is in line", async || Ok(store.count(Op::Attempt) > 0)).await?;
    for waiter in waiters {
        waiter.abort();
        // The error is the abort itself.
        let _ = waiter.await;
    }
    eventually("L10.c", world.bounds().prompt(), "no aborted waiter is in the store", async || {
        Ok(world.waiting("x").await? == 0 && store.in_flight() == 0)
    })
    .await?;
    world.shows("L10.a", &guard).await?;
    guard.release().await?;
    nothing_left(&world, &store, &other).await
}

async fn an_eaten_answer_leaves_no_orphan(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    // The claim was applied, its answer lost: the same acquisition goes on under the same claim.
    store.next(Op::Attempt, Fault::EatAnswer);
    let acquired = client.lock("x").acquire();
    let guard = within("L10.d", world.bounds().prompt(), "an acquire goes on under its claim", acquired).await??;
    world.shows("L10.d", &guard).await?;
    let token = guard.fencing_token();
    guard.release().await?;
    ensure_eq!("L10.d", world.holder("x").await?, None, "after the release the holder is");
    // Every answer is lost: no guard, and after the outage no trace.
    store.all(Op::Attempt, Fault::EatAnswer);
    let lost = client.lock("x").wait(Duration::from_millis(300)).acquire().await;
    refused("L10.d", "an acquire whose answers are all lost", lost, ErrorKind::Unavailable)?;
    store.heal();
    world.gone("L10.d", "x", Duration::from_secs(5)).await?;
    let next = taken("L10.d", &client, "x").await?;
    ensure!("L13.a", next.fencing_token() > token, "token {} after {token}", next.fencing_token());
    next.release().await?;
    Ok(())
}

async fn an_answer_that_never_comes_leaves_no_orphan(world: World) -> Outcome {
    let store = world.faulty().await?;
    let timeout = Duration::from_millis(500);
    let client = world.over(store.clone()).request_timeout(timeout).build()?;
    store.all(Op::Attempt, Fault::SwallowAnswer);
    refused("L10.d", "a try without an answer", client.lock("x").try_acquire().await, ErrorKind::Unavailable)?;
    store.heal();
    // The call is given up after twice its timeout; the claim then has half a minute left, so it is cleaned up.
    world.free("L10.d", "x", timeout * 2 + world.bounds().prompt()).await?;
    eventually("L10.d", world.bounds().prompt(), "no call is under way", async || Ok(store.in_flight() == 0)).await
}

async fn a_request_that_arrives_after_its_sender_gave_up_leaves_nothing(world: World) -> Outcome {
    let store = world.faulty().await?;
    let timeout = Duration::from_millis(500);
    let lease = world.bounds().granted(Duration::from_secs(4));
    let client = world.over(store.clone()).request_timeout(timeout).lease(lease).build()?;
    for waits in [false, true] {
        store.all(Op::Attempt, Fault::Buffer);
        let lock = client.lock("x").wait(Duration::from_millis(300));
        let result = if waits { lock.acquire().await.map(Some) } else { lock.try_acquire().await };
        refused("L10.d", "an attempt at a stopped server", result, ErrorKind::Unavailable)?;
        // The client has given up and cleaned up; only now does the server apply what it had received.
        eventually("L10.d", timeout * 2 + NOISE, "the call is given up", async || Ok(store.in_flight() == 0)).await?;
        store.heal();
        world.free("L10.d", "x", world.bounds().take_over(lease)).await?;
    }
    // Longer than a lease after the last send, nothing may come any more.
    world.gone("L10.d", "x", NOISE).await
}

async fn a_backend_that_panics_leaves_no_orphan(world: World) -> Outcome {
    let store = world.faulty().await?;
    let lease = world.renewed();
    let client = world.over(store.clone()).request_timeout(CALL).build()?;
    let hurried = world.over(store.clone()).request_timeout(Duration::from_millis(200)).build()?;
    store.all(Op::Attempt, Fault::Panic);
    refused("L10.d", "a try that panics", hurried.lock("x").try_acquire().await, ErrorKind::Unavailable)?;
    store.heal();
    world.gone("L10.d", "x", world.bounds().prompt()).await?;

    let before = store.count(Op::Attempt);
    store.next(Op::Attempt, Fault::Panic);
    let guard = client.lock("x").lease(lease).wait(CALL).acquire().await?;
    ensure!("L10.d", store.count(Op::Attempt) > before + 1, "a waiter does not ask again after a panic");
    store.next(Op::Extend, Fault::Panic);
    eventually("L7.a", lease * 2, "a renewal follows one that panicked", async || Ok(store.count(Op::Extend) >= 2))
        .await?;
    ensure!("L7.a", guard.is_held(), "a renewal that panicked ended the hold");

    store.all(Op::Release, Fault::Panic);
    refused("L5.a", "a release that panics", guard.release().await, ErrorKind::Unavailable)?;
    store.heal();
    world.gone("L10.d", "x", world.bounds().prompt()).await?;
    taken("L10.d", &client, "x").await?.release().await?;
    eventually("L10.d", NOISE, "no call is under way", async || Ok(store.in_flight() == 0)).await
}

async fn a_backend_that_panics_over_a_hint_costs_no_hold(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).request_timeout(CALL).build()?;
    // Where the store tells of losses, core asks at each hint; elsewhere the renewals do what is shown here.
    let mut panics = 3;
    store.plan(move |call| match call.op {
        Op::Attempt => Some(Fault::Nervous),
        Op::Extend if panics > 0 => {
            panics -= 1;
            Some(Fault::Panic)
        }
        _ => None,
    });
    let guard = client.lock("x").lease(world.renewed()).acquire().await?;
    let asked = async || Ok(store.count(Op::Extend) >= 5);
    eventually("L7.a", world.renewed() * 3, "the hold is extended after what panicked", asked).await?;
    ensure!("L7.a", guard.is_held(), "a panic over a hint ended the hold");
    store.heal();
    taken("L7.a", &client, "y").await?.release().await?;
    guard.release().await?;
    Ok(())
}
