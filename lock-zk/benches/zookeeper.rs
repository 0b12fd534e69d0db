//! What a lock in ZooKeeper costs beside the requests that it cannot do without.
//!
//! A server of its own; the ways in turns, so that all meet the same noise. Raw is `create`, `list children` and `delete`
//! by the same client library, each awaited, and for the hand-off a watch of the node before one's own. Prints medians,
//! throughput, and ratios to raw. Takes about a minute.

#[path = "../tests/support/server.rs"]
mod server;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use lock_core::LockClient;
use lock_zk::{ZkBackend, ZkConfig};
use tokio::task::JoinSet;
use zookeeper_client::{Acls, Client, CreateMode};

use server::PrivateZooKeeper;

const TURN: usize = 200;
const TURNS: usize = 10;
const TASKS: usize = 32;
const HANDOFFS: usize = 300;
const WAITERS: usize = 1_000;

fn main() {
    let server = PrivateZooKeeper::start().expect("a server");
    let hosts = server.address().to_string();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    // In a task, as a service's work is; what blocks on a runtime from outside pays for its own wake-ups.
    runtime
        .block_on(runtime.spawn(async move {
            one_task(&hosts).await;
            many_tasks(&hosts).await;
            hand_offs(&hosts).await;
            many_waiters(&hosts).await;
        }))
        .expect("no panic");
}

async fn raw(hosts: &str, directory: &str) -> Client {
    let client =
        Client::connector().with_session_timeout(Duration::from_secs(30)).connect(hosts).await.expect("connects");
    client.mkdir(directory, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.expect("a directory");
    client
}

async fn ours(hosts: &str) -> LockClient {
    let backend = ZkBackend::connect(&ZkConfig::new(hosts)).await.expect("connects");
    LockClient::builder(backend).build().expect("a client")
}

async fn take(client: &Client, directory: &str) -> String {
    let prefix = format!("{directory}/n-");
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let (_, number) = client.create(&prefix, b"someone", &options).await.expect("created");
    format!("{prefix}{number}")
}

async fn raw_pair(client: &Client, directory: &str) {
    let node = take(client, directory).await;
    client.list_children(directory).await.expect("listed");
    client.delete(&node, None).await.expect("deleted");
}

async fn our_pair(client: &LockClient, name: &str) {
    client.lock(name).acquire().await.expect("free").release().await.expect("held");
}

async fn try_pair(client: &LockClient, name: &str) {
    client.lock(name).try_acquire().await.expect("answers").expect("free").release().await.expect("held");
}

async fn one_task(hosts: &str) {
    let (raw, client) = (raw(hosts, "/raw/one").await, ours(hosts).await);
    let mut taken = [recorder(), recorder(), recorder()];
    for _ in 0..TURNS {
        for _ in 0..TURN {
            record(&mut taken[0], raw_pair(&raw, "/raw/one")).await;
        }
        for _ in 0..TURN {
            record(&mut taken[1], our_pair(&client, "one")).await;
        }
        for _ in 0..TURN {
            record(&mut taken[2], try_pair(&client, "one")).await;
        }
    }
    report("one task, pair", &["raw", "acquire", "try_acquire"], &taken);
}

/// Each task has a lock of its own: what is measured is the work, and not the waiting.
async fn many_tasks(hosts: &str) {
    let (raw, client) = (raw(hosts, "/raw").await, ours(hosts).await);
    for task in 0..TASKS {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        raw.mkdir(&format!("/raw/{task}"), &options).await.expect("a directory");
    }
    let mut rates = [0.0, 0.0];
    for _ in 0..TURNS {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (raw, directory) = (raw.clone(), format!("/raw/{task}"));
            tasks.spawn(async move {
                for _ in 0..TURN {
                    raw_pair(&raw, &directory).await;
                }
            });
        }
        tasks.join_all().await;
        rates[0] += 1.0 / begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (client, name) = (client.clone(), format!("{task}"));
            tasks.spawn(async move {
                for _ in 0..TURN {
                    our_pair(&client, &name).await;
                }
            });
        }
        tasks.join_all().await;
        rates[1] += 1.0 / begun.elapsed().as_secs_f64();
    }
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let pairs = rates.map(|rate| rate / TURNS as f64 * (TASKS * TURN) as f64);
    say(&format!(
        "{TASKS} tasks: raw {:.0} pairs/s, acquire {:.0} pairs/s, {:.2} x",
        pairs[0],
        pairs[1],
        pairs[1] / pairs[0]
    ));
}

/// From just before the holder's release until the waiter, in another session, knows.
async fn hand_offs(hosts: &str) {
    let (raw, other) = (raw(hosts, "/raw/hand").await, raw(hosts, "/raw/hand").await);
    let (client, waiting) = (ours(hosts).await, ours(hosts).await);
    let mut taken = [recorder(), recorder()];
    for _ in 0..HANDOFFS {
        let node = take(&raw, "/raw/hand").await;
        let (_, watcher) = other.check_and_watch_stat(&node).await.expect("watched");
        let waiter = tokio::spawn(async move {
            watcher.changed().await;
            Instant::now()
        });
        // Long enough that the waiter waits; it is no proof of anything.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begun = Instant::now();
        raw.delete(&node, None).await.expect("deleted");
        note(&mut taken[0], waiter.await.expect("no panic") - begun);

        let guard = client.lock("hand").acquire().await.expect("free");
        let next = waiting.lock("hand");
        let waiter = tokio::spawn(async move {
            let guard = next.acquire().await.expect("served");
            (Instant::now(), guard)
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begun = Instant::now();
        guard.release().await.expect("held");
        let (had, guard) = waiter.await.expect("no panic");
        note(&mut taken[1], had - begun);
        guard.release().await.expect("held");
    }
    report("hand-off", &["raw watch", "acquire"], &taken);
}

/// How many requests a release costs the server while a thousand wait.
async fn many_waiters(hosts: &str) {
    let client = ours(hosts).await;
    let guard = client.lock("crowd").acquire().await.expect("free");
    let served = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..WAITERS {
        let (acquire, served) = (client.lock("crowd").acquire(), Arc::clone(&served));
        tasks.spawn(async move {
            let guard = acquire.await.expect("served");
            served.fetch_add(1, Ordering::Relaxed);
            guard.release().await.expect("held");
        });
    }
    let address = hosts.parse().expect("an address");
    let received = || {
        let said = server::srvr(address).expect("the server answers");
        let count = said.lines().find_map(|line| line.strip_prefix("Received: ")).expect("a count");
        count.trim().parse::<u64>().expect("a number")
    };
    while client.inspect("crowd").await.expect("answers")[0].waiters != Some(WAITERS as u64) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, begun) = (received(), Instant::now());
    guard.release().await.expect("held");
    tasks.join_all().await;
    let requests = received() - before;
    say(&format!(
        "{WAITERS} waiters of one name: {:.1} requests for each that was served, {:?} each",
        f64::from(u32::try_from(requests).expect("few")) / f64::from(u32::try_from(WAITERS).expect("few")),
        begun.elapsed() / u32::try_from(WAITERS).expect("few")
    ));
}

fn recorder() -> Histogram<u64> {
    Histogram::new(3).expect("three digits")
}

fn note(taken: &mut Histogram<u64>, time: Duration) {
    taken.record(u64::try_from(time.as_nanos()).expect("less than centuries")).expect("the histogram grows");
}

async fn record(taken: &mut Histogram<u64>, pair: impl Future<Output = ()>) {
    let begun = Instant::now();
    pair.await;
    note(taken, begun.elapsed());
}

fn report(what: &str, ways: &[&str], taken: &[Histogram<u64>]) {
    let at = |histogram: &Histogram<u64>, quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
    let floor = at(&taken[0], 0.5).as_secs_f64();
    for (way, histogram) in ways.iter().zip(taken) {
        let (p50, p99) = (at(histogram, 0.5), at(histogram, 0.99));
        say(&format!("{what}: {way:>12}: p50 {p50:>9.1?}  p99 {p99:>9.1?}  {:.2} x", p50.as_secs_f64() / floor));
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn say(line: &str) {
    println!("{line}");
}
