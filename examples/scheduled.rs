//! A job that three hosts schedule and one of them runs.
//!
//! Each host's timer fires at about the same time. `try_acquire` gives the lock to one, and the others leave at once.
//! `min_hold` keeps it for longer than the hosts' clocks differ: else a host whose timer is late would find the lock free
//! again, and run the job a second time. `cargo run --example scheduled`

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use leasehold::{Error, LockClient, MemoryBackend};

const HOSTS: u32 = 3;
const TICKS: u32 = 3;
/// How far apart the hosts' clocks may be.
const SKEW: Duration = Duration::from_millis(200);

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    // Each host has a client of its own; they share the store, which for real is `redis://...` or the like.
    let store = MemoryBackend::new();
    let runs = Arc::new(AtomicU32::new(0));
    for tick in 1..=TICKS {
        let mut hosts = Vec::new();
        for host in 0..HOSTS {
            let client = LockClient::builder(store.clone()).namespace("jobs").build()?;
            let runs = Arc::clone(&runs);
            hosts.push(tokio::spawn(async move {
                // This host's clock is a little behind.
                tokio::time::sleep(SKEW / (2 * HOSTS) * host).await;
                report(&client, host, &runs).await
            }));
        }
        for host in hosts {
            host.await.expect("a host does not panic")?;
        }
        assert_eq!(runs.load(Ordering::SeqCst), tick, "one run for each tick");
    }
    println!("{TICKS} ticks on {HOSTS} hosts: {} runs", runs.load(Ordering::SeqCst));
    Ok(())
}

/// What the timer calls.
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn report(client: &LockClient, host: u32, runs: &AtomicU32) -> Result<(), Error> {
    let Some(guard) = client.lock("report").min_hold(SKEW).try_acquire().await? else { return Ok(()) };
    // A job that takes longer than the lease is no trouble: the guard renews itself. If the lock is lost all the same,
    // the job is dropped.
    guard
        .protect(async {
            println!("host {host} writes the report");
            runs.fetch_add(1, Ordering::SeqCst);
        })
        .await?;
    guard.release().await
}
