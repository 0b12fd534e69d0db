//! Exclusion: at most one holder, whoever asks and however many (L1, L2).

use std::{
    sync::{
        Arc,
        atomic::{AtomicI32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::{Clock as _, LockClient};
use tokio::{sync::Barrier, task::JoinSet};

use super::{busy, taken};
use crate::{Fate, Outcome, Stop, Worker, World, case::cases, ensure, ensure_eq, eventually, polls::poll_n_then};

cases! {
    free_then_taken_then_free: "L1.a" "L1.c" "L2.a";
    two_names_are_two_locks: "L1.e";
    a_refused_attempt_leaves_the_holder_alone: "L1.e";
    #[heavy] one_of_64_racers_wins: "L2.a" "L1.a";
    tasks_on_one_client_exclude_each_other: "L1.b";
    #[heavy] an_overlap_counter_never_reads_two: "L1.a" "L1.b" "L1.c";
    #[heavy] processes_exclude_each_other: "L1.d";
    no_claim_is_without_an_end: "L2.b";
}

async fn free_then_taken_then_free(world: World) -> Outcome {
    let (ours, theirs) = (world.client().await?, world.client().await?);
    ensure_eq!("L1.a", world.holder("x").await?, None, "before anyone asked, the store's holder is");
    let guard = taken("L2.a", &ours, "x").await?;
    world.shows("L1.a", &guard).await?;
    busy("L1.c", &theirs, "x").await?;
    guard.release().await?;
    ensure_eq!("L1.a", world.holder("x").await?, None, "after the release, the store's holder is");
    let next = taken("L1.c", &theirs, "x").await?;
    world.shows("L1.a", &next).await?;
    busy("L1.c", &ours, "x").await?;
    next.release().await?;
    Ok(())
}

async fn two_names_are_two_locks(world: World) -> Outcome {
    let (ours, theirs) = (world.client().await?, world.client().await?);
    let first = taken("L1.e", &ours, "first").await?;
    let second = taken("L1.e", &theirs, "second").await?;
    let third = taken("L1.e", &ours, "third").await?;
    second.release().await?;
    world.shows("L1.e", &first).await?;
    world.shows("L1.e", &third).await?;
    first.release().await?;
    world.shows("L1.e", &third).await?;
    third.release().await?;
    Ok(())
}

async fn a_refused_attempt_leaves_the_holder_alone(world: World) -> Outcome {
    let (ours, theirs) = (world.client().await?, world.client().await?);
    let guard = taken("L1.e", &ours, "x").await?;
    let before = world.holder("x").await?.ok_or_else(|| Stop::failed("L1.a", "the store has no holder"))?;
    for _ in 0..5 {
        busy("L1.e", &theirs, "x").await?;
    }
    let after = world.holder("x").await?.ok_or_else(|| Stop::failed("L1.e", "the refused took the holder's place"))?;
    ensure_eq!(
        "L1.e",
        (after.claim, after.token),
        (before.claim, before.token),
        "after refused attempts the holder is"
    );
    if let (Some(before), Some(after)) = (before.remaining, after.remaining) {
        ensure!("L1.e", after <= before, "refused attempts moved the holder's end: {before:?} became {after:?}");
    }
    ensure_eq!("L9.a", world.waiting("x").await?, 0, "refused attempts that wait in the store");
    ensure!("L1.e", guard.is_held(), "refused attempts ended the hold");
    guard.release().await?;
    Ok(())
}

async fn one_of_64_racers_wins(world: World) -> Outcome {
    const RACERS: usize = 64;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(world.client().await?);
    }
    // 200 rounds where the store is quick; as many as fit into the time where it is not.
    let end = Instant::now() + Duration::from_secs(8);
    for round in 0..200 {
        if round >= 20 && Instant::now() > end {
            break;
        }
        let name = format!("race-{round}");
        let start = Arc::new(Barrier::new(RACERS));
        let mut racers = JoinSet::new();
        for racer in 0..RACERS {
            let lock = clients[racer % clients.len()].lock(&name);
            let start = Arc::clone(&start);
            racers.spawn(async move {
                start.wait().await;
                lock.try_acquire().await
            });
        }
        let mut winners = Vec::new();
        while let Some(raced) = racers.join_next().await {
            winners.extend(raced??);
        }
        ensure_eq!("L2.a", winners.len(), 1, "winners of round {round}");
        for guard in winners {
            world.shows("L1.a", &guard).await?;
            guard.release().await?;
        }
    }
    Ok(())
}

/// A number that loses updates when two change it at once, and a counter of who is inside.
#[derive(Default)]
struct Shared {
    inside: AtomicI32,
    most: AtomicI32,
    number: AtomicU64,
}

impl Shared {
    async fn visit(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        let before = self.number.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.number.store(before + 1, Ordering::SeqCst);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn check(&self, clause: &'static str, visits: u64) -> Outcome {
        let most = self.most.load(Ordering::SeqCst);
        if most > 1 {
            return Err(Stop::failed(clause, format!("{most} workers were inside at once")));
        }
        let counted = self.number.load(Ordering::SeqCst);
        if counted != visits {
            return Err(Stop::failed(clause, format!("{visits} visits were counted as {counted}: an update was lost")));
        }
        Ok(())
    }
}

async fn visit_until(client: LockClient, shared: Arc<Shared>, end: Instant) -> Outcome<u64> {
    let mut visits = 0;
    // Once in any case: a machine that is busy for the whole time must not make this prove nothing.
    while visits == 0 || Instant::now() < end {
        let guard = client.lock("x").acquire().await?;
        shared.visit().await;
        guard.release().await?;
        visits += 1;
    }
    Ok(visits)
}

async fn contend(clause: &'static str, clients: &[LockClient], workers: usize, time: Duration) -> Outcome {
    let (shared, end) = (Arc::new(Shared::default()), Instant::now() + time);
    let mut tasks = JoinSet::new();
    for worker in 0..workers {
        tasks.spawn(visit_until(clients[worker % clients.len()].clone(), Arc::clone(&shared), end));
    }
    let mut visits = 0;
    while let Some(ended) = tasks.join_next().await {
        visits += ended??;
    }
    ensure!("L1.a", visits > 0, "nobody got in at all");
    shared.check(clause, visits)
}

async fn tasks_on_one_client_exclude_each_other(world: World) -> Outcome {
    contend("L1.b", &[world.client().await?], 8, Duration::from_millis(500)).await
}

async fn an_overlap_counter_never_reads_two(world: World) -> Outcome {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(world.client().await?);
    }
    contend("L1.a", &clients, 16, Duration::from_secs(3)).await
}

async fn processes_exclude_each_other(world: World) -> Outcome {
    let lease = world.bounds().long();
    let (mut first, mut second) = (Worker::start(&world, lease).await?, Worker::start(&world, lease).await?);
    let token = first.acquire("x").await?;
    ensure_eq!("L1.d", second.ask(&["try", "x"]).await?, "busy", "another process that tries gets");
    ensure_eq!("L1.d", first.ask(&["release", "x"]).await?, "released", "the holder that releases gets");
    let next = second.acquire("x").await?;
    ensure!("L13.a", next > token, "the next process got token {next} after {token}");
    second.ask(&["release", "x"]).await?;

    const ROUNDS: u32 = 25;
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("counter"), "0")?;
    let path = directory.path().to_string_lossy().into_owned();
    let mut workers = [first, second, Worker::start(&world, lease).await?, Worker::start(&world, lease).await?];
    for worker in &mut workers {
        worker.tell(&["count", "counter", &path, &ROUNDS.to_string()]).await?;
    }
    for worker in &mut workers {
        ensure_eq!("L1.d", worker.hear().await?, "counted", "a process that counts under the lock says");
    }
    let counted = std::fs::read_to_string(directory.path().join("counter"))?;
    ensure_eq!("L1.d", counted, (ROUNDS * 4).to_string(), "the number that four processes counted to");
    Ok(())
}

async fn no_claim_is_without_an_end(world: World) -> Outcome {
    let client = world.client().await?;
    let endless = async || -> Outcome {
        let found = world.oracle().endless(world.namespace()).await?;
        ensure!("L2.b", found.is_empty(), "claims that would stay for ever: {found:?}");
        Ok(())
    };
    endless().await?;
    let guard = taken("L2.b", &client, "x").await?;
    endless().await?;
    let waiter = tokio::spawn(client.lock("x").acquire());
    let clock = lock_core::SystemClock;
    let look_until = clock.now() + Duration::from_millis(100);
    while clock.now() < look_until {
        endless().await?;
    }
    guard.release().await?;
    let guard = waiter.await??;
    endless().await?;
    guard.release().await?;
    // A client that disappears at any moment of its attempt leaves nothing without an end either.
    for polls in 0..6 {
        let gone = poll_n_then(polls, Fate::Dropped, Duration::from_secs(2), client.lock("y").acquire()).await;
        endless().await?;
        if let Some(guard) = gone.ended() {
            guard?.release().await?;
            break;
        }
    }
    eventually("L10.a", world.bounds().prompt(), "the store is empty again", async || {
        Ok(world.oracle().claims(world.namespace()).await? == 0)
    })
    .await
}
