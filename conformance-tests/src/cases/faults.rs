//! Faults: a workload under a seeded schedule of everything that can go wrong, its history checked afterwards.

use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::{
    Fault, Faulty, Outcome, Stop, Worker, World,
    case::cases,
    ensure, eventually,
    history::{History, Recorder, Rules, What, check},
    worker::{Plan, work},
};

cases! {
    #[heavy] clients_under_faults_keep_the_contract: "L1.a" "L1.c" "L4.b" "L5.a" "L10.d" "L13.a" "L9.g";
    #[heavy] processes_under_faults_keep_the_contract: "L1.d" "L8.a" "L13.b" "L16.a" "L16.c" "L10.d";
}

/// Set this to repeat a schedule that failed.
const SEED: &str = "LEASEHOLD_TEST_SEED";

/// The seed of this run: the user's, or a new one, which the failure names.
fn seed() -> u64 {
    std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..))
}

/// What goes wrong with a call, by chance: most calls go well.
fn weather(rng: &mut Rng, lease: Duration) -> Option<Fault> {
    match rng.u8(..40) {
        0 => Some(Fault::Refuse),
        1 => Some(Fault::EatAnswer),
        2 => Some(Fault::DelayRequest(lease.mul_f64(rng.f64() * 1.2))),
        3 => Some(Fault::DelayAnswer(lease.mul_f64(rng.f64() * 1.2))),
        4 => Some(Fault::Swallow),
        5 => Some(Fault::SwallowAnswer),
        6 => Some(Fault::Mute),
        7 => Some(Fault::Nervous),
        8 => Some(Fault::Panic),
        _ => None,
    }
}

/// Fails with everything that the history breaks, and the seed that repeats it.
fn judge(history: &History, rules: Rules, seed: u64) -> Outcome {
    let violations = check(history, rules);
    let Some(first) = violations.first() else { return Ok(()) };
    let all: Vec<_> = violations.iter().map(ToString::to_string).collect();
    Err(Stop::failed(first.clause, format!("{SEED}={seed} breaks:\n{}", all.join("\n"))))
}

/// Whether a history has enough in it to prove anything.
fn worth_checking(history: &History) -> Outcome {
    let granted = history.events.iter().filter(|event| matches!(event.what, What::Granted { .. })).count();
    ensure!("L9.g", granted >= 10, "only {granted} grants in the whole run");
    Ok(())
}

async fn clients_under_faults_keep_the_contract(world: World) -> Outcome {
    const CLIENTS: u64 = 5;
    let (seed, lease) = (seed(), world.short());
    let directory = tempfile::tempdir()?;
    let watcher = Recorder::new(directory.path(), 0)?;
    let mut stores: Vec<Faulty> = Vec::new();
    let mut clients = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=CLIENTS {
        let store = world.faulty().await?;
        let mut rng = Rng::with_seed(seed.wrapping_add(number << 32));
        store.plan(move |_| weather(&mut rng, lease));
        let client = world.over(store.clone()).lease(lease).safety_poll(Duration::from_secs(1)).build()?;
        let recorder = Recorder::new(directory.path(), number)?;
        let plan = Plan { seed: seed.wrapping_add(number), lease, time: Duration::from_secs(5) };
        clients.push(client.clone());
        stores.push(store);
        tasks.spawn(async move { work(&client, &recorder, plan).await });
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    for store in &stores {
        store.heal();
    }
    watcher.note(Recorder::now(), 0, "", What::Healed);
    while let Some(task) = tasks.join_next().await {
        task?;
    }
    let bound = world.bounds().take_over(lease);
    note_what_is_left(&world, &watcher, bound).await?;
    let history = History::read(directory.path())?;
    worth_checking(&history)?;
    judge(&history, Rules { lease, served_within: bound * 2 }, seed)
}

/// Gives the clean-up its time, and then notes how many claims there still are.
async fn note_what_is_left(world: &World, watcher: &Recorder, bound: Duration) -> Outcome {
    let mut left = 0;
    let emptied = eventually("L10.d", bound, "nothing is left", async || {
        left = world.oracle().claims(world.namespace()).await?;
        Ok(left == 0)
    });
    // What is left is a violation like any other: the checker reports it, with the seed.
    match emptied.await {
        Ok(()) | Err(Stop::Failed(_)) => {}
        Err(skipped) => return Err(skipped),
    }
    watcher.note(Recorder::now(), 0, "", What::Left { claims: left });
    Ok(())
}

async fn processes_under_faults_keep_the_contract(world: World) -> Outcome {
    const PROCESSES: usize = 4;
    let (seed, lease) = (seed(), world.bounds().granted(Duration::from_secs(1)));
    let mut rng = Rng::with_seed(seed);
    let directory = tempfile::tempdir()?;
    let watcher = Recorder::new(directory.path(), 0)?;
    let end = Instant::now() + Duration::from_secs(8);
    let mut next_client = 1_u64;
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        processes.push(start(&world, directory.path(), &mut next_client, &mut rng, lease, end).await?);
    }
    while Instant::now() + Duration::from_secs(3) < end {
        tokio::time::sleep(Duration::from_millis(rng.u64(100..500))).await;
        let victim = rng.usize(..PROCESSES);
        let (worker, client) = &mut processes[victim];
        if rng.bool() {
            watcher.note_of(*client, Recorder::now(), 0, "", What::Died);
            worker.kill().await?;
            processes[victim] = start(&world, directory.path(), &mut next_client, &mut rng, lease, end).await?;
        } else {
            worker.stop()?;
            watcher.note_of(*client, Recorder::now(), 0, "", What::Stopped);
            tokio::time::sleep(lease.mul_f64(0.3 + rng.f64() * 1.5)).await;
            watcher.note_of(*client, Recorder::now(), 0, "", What::Resumed);
            worker.resume()?;
        }
    }
    watcher.note(Recorder::now(), 0, "", What::Healed);
    for (worker, _) in &mut processes {
        worker.hear().await?;
    }
    drop(processes);
    let bound = world.bounds().take_over(lease);
    note_what_is_left(&world, &watcher, bound).await?;
    let history = History::read(directory.path())?;
    worth_checking(&history)?;
    judge(&history, Rules { lease, served_within: bound * 2 }, seed)
}

/// Starts a process that works until the end, and gives it a client's number that no other has had.
async fn start(
    world: &World,
    directory: &std::path::Path,
    next_client: &mut u64,
    rng: &mut Rng,
    lease: Duration,
    end: Instant,
) -> Outcome<(Worker, u64)> {
    let client = *next_client;
    *next_client += 1;
    let mut worker = Worker::start(world, lease).await?;
    let millis = end.saturating_duration_since(Instant::now()).as_millis().to_string();
    let seed = rng.u64(..).to_string();
    worker.tell(&["work", &directory.to_string_lossy(), &client.to_string(), &seed, &millis]).await?;
    Ok((worker, client))
}

/// Keeps the list of faults and the schedule together: one that is never drawn proves nothing.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_is_the_seeds_and_draws_every_fault() {
        let draw = |seed| -> Vec<_> {
            let mut rng = Rng::with_seed(seed);
            (0..2_000).map(|_| weather(&mut rng, Duration::from_secs(1))).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let drawn: std::collections::BTreeSet<_> = draw(1)
            .into_iter()
            .flatten()
            .map(|fault| std::mem::discriminant(&fault))
            .map(|kind| format!("{kind:?}"))
            .collect();
        assert_eq!(drawn.len(), 9, "every fault but the buffer, whose late requests have cases of their own");
    }
}
