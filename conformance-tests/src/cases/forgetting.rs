//! Forgotten futures: never dropped and never polled again, after every number of polls (L10).

use std::time::Duration;

use lock_core::{Error, ErrorKind, LockClient, LockGuard, Renew};

use super::{refused, taken};
use crate::{
    Fate, Fault, Op, Outcome, Stop, World,
    bounds::NOISE,
    case::cases,
    ensure, ensure_eq, eventually,
    polls::{Left, poll_n_then},
    world::CALL,
};

cases! {
    a_forgotten_acquire_leaves_nothing_beyond_a_lease: "L10.b";
    a_forgotten_try_leaves_nothing_beyond_a_lease: "L10.b";
    a_forgotten_waiter_leaves_nothing_beyond_a_lease: "L10.b";
    a_forgotten_extend_leaves_the_hold: "L10.b" "L6.a";
    a_forgotten_release_still_releases: "L10.b";
    a_forgotten_close_still_closes: "L10.b" "L11.d";
    a_forgotten_inspect_leaves_nothing: "L10.b";
}

/// More polls than any of these futures needs: who is not done by then never will be.
const MOST_POLLS: usize = 100;

/// Runs `step` for every number of polls until it says that the future ended by itself.
async fn at_every_poll(mut step: impl AsyncFnMut(usize) -> Outcome<bool>) -> Outcome {
    for polls in 0..=MOST_POLLS {
        if step(polls).await? {
            return Ok(());
        }
    }
    Err(Stop::failed("L10.b", format!("it does not end within {MOST_POLLS} polls")))
}

/// Polls so often and forgets. What it gave, if it ended before.
async fn forget<T>(polls: usize, future: impl Future<Output = T>) -> Outcome<Option<T>> {
    match poll_n_then(polls, Fate::Forgotten, NOISE, future).await {
        Left::Stalled => Err(Stop::failed("L10.b", format!("a future was not woken within {NOISE:?}"))),
        left => Ok(left.ended()),
    }
}

/// A client whose calls of this sort take a while, so that there are more points at which to forget them.
async fn slow(world: &World, op: Op, lease: Duration) -> Outcome<LockClient> {
    let store = world.faulty().await?;
    store.all(op, Fault::DelayAnswer(Duration::from_millis(4)));
    Ok(world.over(store).lease(lease).request_timeout(CALL).build()?)
}

/// Until when what a forgotten future of this lease left must be gone.
fn forgotten(world: &World, lease: Duration) -> Duration {
    world.bounds().take_over(lease) + lease
}

/// Proves that another can have the lock within a lease, and that nothing is left after it.
async fn free_again(world: &World, name: &str, lease: Duration, polls: usize) -> Outcome {
    match world.client().await?.lock(name).wait(forgotten(world, lease)).acquire().await {
        Ok(guard) => guard.release().await?,
        Err(error) => {
            let message = format!("what was forgotten after {polls} polls keeps the lock: {error}");
            return Err(Stop::failed("L10.b", message));
        }
    }
    world.gone("L10.b", name, world.bounds().prompt()).await
}

async fn a_forgotten_acquire_leaves_nothing_beyond_a_lease(world: World) -> Outcome {
    let acquire = async |client: &LockClient, name: &str, polls| {
        Ok(forget(polls, client.lock(name).acquire()).await?.map(|guard| guard.map(Some)))
    };
    forgotten_attempts(&world, acquire).await
}

async fn a_forgotten_try_leaves_nothing_beyond_a_lease(world: World) -> Outcome {
    let attempt = async |client: &LockClient, name: &str, polls| forget(polls, client.lock(name).try_acquire()).await;
    forgotten_attempts(&world, attempt).await
}

/// Forgets `attempt` after every number of polls on a free lock.
async fn forgotten_attempts(
    world: &World,
    attempt: impl AsyncFn(&LockClient, &str, usize) -> Outcome<Option<Result<Option<LockGuard>, Error>>>,
) -> Outcome {
    let lease = world.short();
    at_every_poll(async |polls| {
        let name = format!("x{polls}");
        let client = slow(world, Op::Attempt, lease).await?;
        if let Some(ended) = attempt(&client, &name, polls).await? {
            match ended? {
                Some(guard) => guard.release().await?,
                None => return Err(Stop::failed("L10.b", "a try met a holder on a name that nobody holds")),
            }
            return Ok(true);
        }
        free_again(world, &name, lease, polls).await?;
        Ok(false)
    })
    .await
}

async fn a_forgotten_waiter_leaves_nothing_beyond_a_lease(world: World) -> Outcome {
    let lease = world.short();
    let client = world.builder().await?.lease(lease).request_timeout(CALL).build()?;
    let other = world.client().await?;
    for polls in 1..4 {
        let name = format!("x{polls}");
        let guard = taken("L10.b", &other, &name).await?;
        let ended =
            poll_n_then(polls, Fate::Forgotten, Duration::from_millis(300), client.lock(&name).acquire()).await.ended();
        ensure!("L1.a", ended.is_none(), "a waiter was let in beside the holder");
        guard.release().await?;
        let next = other.lock(&name).wait(forgotten(&world, lease)).acquire().await;
        let Ok(next) = next else {
            return Err(Stop::failed(
                "L10.b",
                format!("a waiter forgotten after {polls} polls keeps the lock: {next:?}"),
            ));
        };
        next.release().await?;
        world.gone("L10.b", &name, forgotten(&world, lease)).await?;
    }
    Ok(())
}

async fn a_forgotten_extend_leaves_the_hold(world: World) -> Outcome {
    at_every_poll(async |polls| {
        let name = format!("x{polls}");
        let client = slow(&world, Op::Extend, world.bounds().long()).await?;
        let guard = taken("L10.b", &client, &name).await?;
        let ended = forget(polls, guard.extend(world.bounds().long())).await?;
        ensure!("L10.b", guard.is_held(), "an extend forgotten after {polls} polls ended the hold");
        world.shows("L10.b", &guard).await?;
        guard.release().await?;
        free_again(&world, &name, world.short(), polls).await?;
        Ok(ended.is_some())
    })
    .await
}

async fn a_forgotten_release_still_releases(world: World) -> Outcome {
    let lease = world.short();
    at_every_poll(async |polls| {
        let name = format!("x{polls}");
        let client = slow(&world, Op::Release, lease).await?;
        let guard = client.lock(&name).renew(Renew::Off).acquire().await?;
        if let Some(released) = forget(polls, guard.release()).await? {
            released?;
            return Ok(true);
        }
        world.free("L10.b", &name, forgotten(&world, lease)).await?;
        Ok(false)
    })
    .await
}

async fn a_forgotten_close_still_closes(world: World) -> Outcome {
    at_every_poll(async |polls| {
        let name = format!("x{polls}");
        let client = slow(&world, Op::Release, world.short()).await?;
        let guard = taken("L10.b", &client, &name).await?;
        let ended = forget(polls, client.close()).await?.is_some();
        if polls > 0 {
            ensure!("L11.d", !guard.is_held(), "held after its client's close was begun");
            refused("L11.c", "a try at a closed client", client.lock("y").try_acquire().await, ErrorKind::Closed)?;
            world.gone("L10.b", &name, forgotten(&world, world.short())).await?;
        }
        drop(guard);
        client.close().await?;
        free_again(&world, &name, world.short(), polls).await?;
        Ok(ended)
    })
    .await
}

async fn a_forgotten_inspect_leaves_nothing(world: World) -> Outcome {
    let store = world.faulty().await?;
    store.all(Op::Inspect, Fault::DelayAnswer(Duration::from_millis(4)));
    let client = world.over(store.clone()).build()?;
    at_every_poll(async |polls| {
        let ended = forget(polls, client.inspect("")).await?.is_some();
        eventually("L10.b", world.bounds().prompt(), "no call is under way", async || Ok(store.in_flight() == 0))
            .await?;
        taken("L10.b", &client, "x").await?.release().await?;
        ensure_eq!("L10.b", world.holder("x").await?, None, "after the release the holder is");
        Ok(ended)
    })
    .await
}
