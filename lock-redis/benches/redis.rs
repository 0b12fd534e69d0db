//! What a lock in Redis costs beside the scripts that it cannot do without, and what many of them cost the server.
//!
//! `cargo bench -p lock-redis` prints a line for each; nothing is asserted, since machines are noisy. It starts a
//! `redis-server` of its own, and takes about a minute.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use lock_core::{
    Attempt, Backend as _, Claim, ClaimId, FencingToken, HolderInfo, Intent, LockClient, LockKind, LockName, Namespace,
};
use lock_redis::{RedisBackend, RedisConfig};
use redis::aio::MultiplexedConnection;
use support::{
    oracle::Raw,
    server::{self, Keeps},
};
use tokio::task::JoinSet;

const TASKS: usize = 32;

#[tokio::main]
async fn main() {
    let server = server::start(Keeps::Nothing, &[]).expect("redis-server starts");
    let address = server.address();
    one_task(address).await;
    many_tasks(address).await;
    hand_over(address).await;
    for (clients, waiters) in [(1, 1_000), (10, 100)] {
        many_waiters(address, clients, waiters).await;
    }
    many_held(address).await;
}

async fn backend(address: SocketAddr) -> RedisBackend {
    let config = RedisConfig::new(address.ip().to_string(), address.port());
    RedisBackend::connect(&config).await.expect("the server answers")
}

async fn client(address: SocketAddr) -> LockClient {
    LockClient::builder(backend(address).await).build().expect("a client")
}

/// The backend's scripts on a connection without a library around it.
#[derive(Clone)]
struct Scripts {
    connection: MultiplexedConnection,
    claim: Arc<str>,
    release: Arc<str>,
}

impl Scripts {
    async fn connect(address: SocketAddr) -> Self {
        let client = redis::Client::open(redis::ConnectionAddr::Tcp(address.ip().to_string(), address.port()))
            .expect("an address");
        let settings = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = client.get_connection_info().clone().set_tcp_settings(settings);
        let client = redis::Client::open(info).expect("an address");
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let mut connection =
            client.get_multiplexed_async_connection_with_config(&config).await.expect("the server answers");
        let mut digests = Vec::new();
        for code in [include_str!("../lua/claim.lua"), include_str!("../lua/release.lua")] {
            let loaded = redis::cmd("SCRIPT").arg("LOAD").arg(code).query_async::<String>(&mut connection).await;
            digests.push(loaded.expect("a script"));
        }
        Scripts { connection, claim: digests[0].as_str().into(), release: digests[1].as_str().into() }
    }

    async fn pair(&mut self, name: &str) {
        let (key, fence) = (format!("leasehold/{{/lock/{name}}}"), format!("leasehold/{{/lock/{name}}}/fence"));
        let id = ClaimId::random().to_string();
        let mut claim = redis::cmd("EVALSHA");
        claim.arg(&*self.claim).arg(2).arg(&key).arg(&fence).arg(&id).arg(30_000).arg(0);
        claim.arg("{\"host\":\"here\",\"pid\":1}").arg(86_400_000);
        let (held, _, _): (u8, String, i64) = claim.query_async(&mut self.connection).await.expect("an answer");
        assert_eq!(held, 1);
        let mut release = redis::cmd("EVALSHA");
        release.arg(&*self.release).arg(2).arg(&key).arg(&fence).arg(&id).arg(format!("{key}/free/0")).arg(86_400_000);
        let gone: u8 = release.query_async(&mut self.connection).await.expect("an answer");
        assert_eq!(gone, 1);
    }
}

async fn backend_pair(backend: &RedisBackend, name: &str) {
    let claim = Claim {
        namespace: Namespace::default(),
        name: LockName::new(name).expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent: Intent::Try,
        lease: Duration::from_secs(30),
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 1, label: None }),
        min_token: FencingToken::ZERO,
    };
    assert!(matches!(backend.attempt(&claim).await.expect("an answer"), Attempt::Granted(_)));
    backend.release(&claim).await.expect("an answer");
}

async fn client_pair(client: &LockClient, name: &str) {
    client.lock(name).acquire().await.expect("acquired").release().await.expect("released");
}

fn recorder() -> Histogram<u64> {
    Histogram::new(3).expect("three digits")
}

fn note(taken: &mut Histogram<u64>, since: Instant) {
    taken.record(u64::try_from(since.elapsed().as_nanos()).expect("less than centuries")).expect("it grows");
}

fn at(taken: &Histogram<u64>, quantile: f64) -> Duration {
    Duration::from_nanos(taken.value_at_quantile(quantile))
}

/// One task, the three ways in turns so that all meet the same noise.
async fn one_task(address: SocketAddr) {
    let (mut scripts, backend, client) =
        (Scripts::connect(address).await, backend(address).await, client(address).await);
    let ways = ["the same scripts", "backend", "client"];
    let mut taken = ways.map(|_| recorder());
    let end = Instant::now() + Duration::from_secs(9);
    while Instant::now() < end {
        for _ in 0..200 {
            let begun = Instant::now();
            scripts.pair("raw").await;
            note(&mut taken[0], begun);
        }
        for _ in 0..200 {
            let begun = Instant::now();
            backend_pair(&backend, "backend").await;
            note(&mut taken[1], begun);
        }
        for _ in 0..200 {
            let begun = Instant::now();
            client_pair(&client, "client").await;
            note(&mut taken[2], begun);
        }
    }
    println!("acquire + release, one task");
    for (way, taken_by) in ways.iter().zip(&taken) {
        let ratio = at(taken_by, 0.5).as_secs_f64() / at(&taken[0], 0.5).as_secs_f64();
        println!("{way:>18}: p50 {:>8.1?}  p99 {:>8.1?}  {ratio:.2} x", at(taken_by, 0.5), at(taken_by, 0.99));
    }
    client.close().await.expect("closes");
    backend.close().await;
}

/// Many tasks on one client, each with a name of its own, in turns with as many on the scripts.
async fn many_tasks(address: SocketAddr) {
    const ROUNDS: usize = 4;
    let (scripts, client) = (Scripts::connect(address).await, client(address).await);
    let mut pairs = [0_u64; 2];
    let turn = Duration::from_secs(1);
    for _ in 0..ROUNDS {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let mut scripts = scripts.clone();
            tasks.spawn(async move {
                let (name, end, mut count) = (format!("raw-{task}"), Instant::now() + turn, 0);
                while Instant::now() < end {
                    scripts.pair(&name).await;
                    count += 1;
                }
                count
            });
        }
        pairs[0] += tasks.join_all().await.into_iter().sum::<u64>();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let client = client.clone();
            tasks.spawn(async move {
                let (name, end, mut count) = (format!("client-{task}"), Instant::now() + turn, 0);
                while Instant::now() < end {
                    client_pair(&client, &name).await;
                    count += 1;
                }
                count
            });
        }
        pairs[1] += tasks.join_all().await.into_iter().sum::<u64>();
    }
    let rates = pairs.map(|pairs| pairs / ROUNDS as u64);
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = rates[1] as f64 / rates[0] as f64;
    println!("acquire + release, {TASKS} tasks: scripts {}/s, client {}/s, {ratio:.2} x", rates[0], rates[1]);
    client.close().await.expect("closes");
}

/// From the call of a release in one client to the guard in another that waits.
async fn hand_over(address: SocketAddr) {
    let (holder, waiter) = (client(address).await, client(address).await);
    let raw = Raw::connect(address).await.expect("a connection");
    let mut taken = recorder();
    for _ in 0..2_000 {
        let guard = holder.lock("hand-over").acquire().await.expect("free");
        let lock = waiter.lock("hand-over");
        let next = tokio::spawn(async move {
            let guard = lock.acquire().await.expect("granted");
            (guard, Instant::now())
        });
        // The waiter is at the store when it is subscribed and has asked again.
        let channel = "leasehold/{/lock/hand-over}/free/0";
        while raw.ask::<(String, u64)>(&["PUBSUB", "NUMSUB", channel]).await.expect("an answer").1 == 0 {}
        tokio::time::sleep(Duration::from_millis(1)).await;
        let begun = Instant::now();
        guard.release().await.expect("released");
        let (guard, granted) = next.await.expect("no panic");
        let nanos = granted.saturating_duration_since(begun).as_nanos();
        taken.record(u64::try_from(nanos).expect("less than centuries")).expect("it grows");
        guard.release().await.expect("released");
    }
    println!("release to the next grant, one waiter: p50 {:.1?}  p99 {:.1?}", at(&taken, 0.5), at(&taken, 0.99));
    holder.close().await.expect("closes");
    waiter.close().await.expect("closes");
}

async fn calls(raw: &Raw) -> u64 {
    let text: String = raw.ask(&["INFO", "commandstats"]).await.expect("an answer");
    let calls = text.lines().filter(|line| line.starts_with("cmdstat_evalsha") || line.contains("subscribe"));
    calls.filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok()).sum()
}

/// Many waiters for one name: what each hand-over costs the server.
async fn many_waiters(address: SocketAddr, clients: usize, each: usize) {
    let raw = Raw::connect(address).await.expect("a connection");
    let name = format!("crowd-{clients}");
    let guard = client(address).await.lock(&name).acquire().await.expect("free");
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let client = client(address).await;
        for _ in 0..each {
            let lock = client.lock(&name);
            tasks.spawn(async move { lock.acquire().await.expect("granted").release().await.expect("released") });
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, begun) = (calls(&raw).await, Instant::now());
    guard.release().await.expect("released");
    tasks.join_all().await;
    let (commands, hand_overs) = (calls(&raw).await - before, clients * each);
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let cost = commands as f64 / hand_overs as f64;
    println!(
        "{hand_overs} waiters of {clients} clients for one name: {cost:.2} scripts and subscriptions per release, {:.1?} each",
        begun.elapsed() / u32::try_from(hand_overs).expect("few")
    );
}

/// Many locks held for a while with a lease of ten seconds.
async fn many_held(address: SocketAddr) {
    const HELD: usize = 10_000;
    let raw = Raw::connect(address).await.expect("a connection");
    let client = LockClient::builder(backend(address).await).lease(Duration::from_secs(10)).build().expect("a client");
    let mut tasks = JoinSet::new();
    for worker in 0..100 {
        let client = client.clone();
        tasks.spawn(async move {
            let mut guards = Vec::new();
            for number in 0..HELD / 100 {
                guards.push(client.lock(format!("held-{worker}-{number}")).acquire().await.expect("free"));
            }
            guards
        });
    }
    let guards: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let (before, begun) = (calls(&raw).await, Instant::now());
    let mut least = Duration::MAX;
    while begun.elapsed() < Duration::from_secs(25) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        least = guards.iter().map(lock_core::LockGuard::remaining).min().unwrap_or_default().min(least);
    }
    let lost = guards.iter().filter(|guard| !guard.is_held()).count();
    let renewals = calls(&raw).await - before;
    println!(
        "{HELD} locks held for 25 s at a lease of 10 s: {lost} lost, {renewals} renewals, at least {least:.1?} left"
    );
    drop(guards);
    client.close().await.expect("closes");
}
