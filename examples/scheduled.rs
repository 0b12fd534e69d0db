//! A job that every host schedules and one host runs, once for each tick.
//!
//! The hosts' clocks differ, so that they fire one after the other, and a short job is done before the last one fires.
//! `min_hold` keeps the lock for longer than the clocks differ: who comes late finds it taken and skips. It has to end
//! before the next tick. `cargo run --example scheduled`

use std::time::Duration;

use leasehold::{Error, LockClient};

const JOB: &str = "daily-report";
/// More than the clocks differ, less than the time between two ticks.
const MIN_HOLD: Duration = Duration::from_millis(500);

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    // Three clients of one store stand for three hosts; a real store would be one that hosts share, such as Redis.
    let mut hosts = Vec::new();
    for _ in 0..3 {
        hosts.push(leasehold::connect("memory:?namespace=cron").await?);
    }

    for tick in 1..=2 {
        let mut ran = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            if on_tick(host).await? {
                ran.push(number);
            }
        }
        println!("tick {tick}: host {ran:?} ran the job, the others skipped");
        assert_eq!(ran.len(), 1, "one host of three");
        // The next tick comes long after that. Here it comes as soon as the lock is free.
        hosts[0].lock(JOB).acquire().await?.release().await?;
    }

    // Without min_hold, whoever fires after the job is done runs it again.
    let mut ran = 0;
    for host in &hosts {
        if let Some(guard) = host.lock(JOB).try_acquire().await? {
            guard.protect(job()).await?;
            guard.release().await?;
            ran += 1;
        }
    }
    println!("without min_hold {ran} hosts ran it");
    assert_eq!(ran, 3);
    Ok(())
}

/// What each host's scheduler calls. Tells whether this host ran the job.
async fn on_tick(host: &LockClient) -> Result<bool, Error> {
    // One attempt: who finds the lock taken has nothing to wait for.
    let Some(guard) = host.lock(JOB).min_hold(MIN_HOLD).try_acquire().await? else { return Ok(false) };
    guard.protect(job()).await?;
    // Dropped, it holds on in the background until MIN_HOLD has passed; `release` would wait for that here.
    drop(guard);
    Ok(true)
}

async fn job() {}
