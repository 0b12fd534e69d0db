//! What a lock in etcd costs beside the calls that it cannot do without.
//!
//! On one private server, in turns so that all meet the same noise: a put and a delete on a kept lease; the same with a
//! put that compares, which is the least that excludes; a lease of its own for each lock; the backend; the client. With one task, with 32 tasks on 32 names, and from a release to the next
//! holder. Prints medians, rates and their ratios to the raw calls. Takes about a minute.

use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use conformance_tests::free_address;
use etcd_client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp, WatchOptions};
use hdrhistogram::Histogram;
use lock_core::{
    Attempt, Backend as _, Claim, ClaimId, FencingToken, HolderInfo, Intent, LockClient, LockKind, LockName, Namespace,
};
use lock_etcd::{EtcdBackend, EtcdConfig};
use tokio::runtime::Builder;

/// How long one way of one table is measured in all.
const TIME: Duration = Duration::from_secs(4);
/// How long one way is measured before it is the next one's turn.
const TURN: Duration = Duration::from_millis(400);
const TASKS: usize = 32;

/// A server in a directory of its own, ended by its handle.
struct Server {
    child: Child,
    _directory: tempfile::TempDir,
    address: String,
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (client, peer) = (free_address().expect("an address"), free_address().expect("an address"));
        let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
        let mut command = Command::new("etcd");
        command.args(["--name", "n1", "--data-dir"]).arg(directory.path());
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("n1={peer}"), "--logger", "zap", "--log-level", "error"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("etcd is on the path");
        Server { child, _directory: directory, address: client.trim_start_matches("http://").to_owned() }
    }

    async fn raw(&self) -> Client {
        Client::connect([&self.address], None).await.expect("an address")
    }

    async fn backend(&self) -> EtcdBackend {
        EtcdBackend::connect(&EtcdConfig::new([self.address.as_str()])).await.expect("the server answers")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A way to take a lock and give it back.
#[derive(Clone)]
enum Way {
    KeptLease(Client, i64),
    Compared(Client, i64),
    LeasePerLock(Client),
    Backend(Arc<EtcdBackend>),
    Client(LockClient),
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Way::KeptLease(..) => "put + delete, kept lease",
            Way::Compared(..) => "compare + put, delete",
            Way::LeasePerLock(_) => "lease per lock",
            Way::Backend(_) => "backend",
            Way::Client(_) => "client",
        }
    }

    async fn pair(&self, name: &str) {
        match self {
            Way::KeptLease(client, lease) => {
                let mut kv = client.kv_client();
                kv.put(name, "here", Some(PutOptions::new().with_lease(*lease))).await.expect("put");
                kv.delete(name, None).await.expect("deleted");
            }
            Way::Compared(client, lease) => {
                let absent = Compare::create_revision(name, CompareOp::Equal, 0);
                let put = TxnOp::put(name, "here", Some(PutOptions::new().with_lease(*lease)));
                let written = client.kv_client().txn(Txn::new().when([absent]).and_then([put])).await.expect("put");
                assert!(written.succeeded());
                client.kv_client().delete(name, None).await.expect("deleted");
            }
            Way::LeasePerLock(client) => {
                let lease = client.lease_client().grant(30, None).await.expect("granted").id();
                let put = PutOptions::new().with_lease(lease);
                client.kv_client().put(name, "here", Some(put)).await.expect("put");
                client.lease_client().revoke(lease).await.expect("revoked");
            }
            Way::Backend(backend) => {
                let claim = claim(name);
                assert!(matches!(backend.attempt(&claim).await.expect("an answer"), Attempt::Granted(_)));
                backend.release(&claim).await.expect("released");
            }
            Way::Client(client) => {
                client.lock(name).acquire().await.expect("acquired").release().await.expect("released");
            }
        }
    }
}

fn claim(name: &str) -> Claim {
    Claim {
        namespace: Namespace::default(),
        name: LockName::new(name).expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent: Intent::Wait,
        lease: Duration::from_secs(30),
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 1, label: None }),
        min_token: FencingToken::ZERO,
    }
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let server = Server::start();
    // In a task, as a service's work is; what blocks on a runtime from outside pays for its own wake-ups.
    let server = runtime.block_on(async { tokio::spawn(measure(server)).await.expect("no panic") });
    drop(server);
}

async fn measure(server: Server) -> Server {
    let raw = server.raw().await;
    let begun = Instant::now();
    while raw.kv_client().get("ready", None).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server is not ready");
    }
    let lease = raw.lease_client().grant(3_600, None).await.expect("granted").id();
    let client = LockClient::builder(server.backend().await).build().expect("a client");
    let ways = [
        Way::KeptLease(raw.clone(), lease),
        Way::Compared(raw.clone(), lease),
        Way::LeasePerLock(raw),
        Way::Backend(Arc::new(server.backend().await)),
        Way::Client(client.clone()),
    ];
    print("acquire + release, one task", &pairs(&ways, 1).await);
    print(&format!("acquire + release, {TASKS} tasks on {TASKS} names"), &pairs(&ways, TASKS).await);
    print("release to the next holder", &hand_overs(&server, lease).await);
    client.close().await.expect("the client closes");
    server
}

type Taken = (&'static str, Histogram<u64>, Duration);

async fn pairs(ways: &[Way], tasks: usize) -> Vec<Taken> {
    let mut taken: Vec<Taken> = ways.iter().map(|way| (way.name(), recorder(), Duration::ZERO)).collect();
    while taken[0].2 < TIME {
        for (way, (_, histogram, time)) in ways.iter().zip(&mut taken) {
            let begun = Instant::now();
            let workers = (0..tasks).map(|task| {
                let way = way.clone();
                tokio::spawn(async move {
                    let (name, mut histogram) = (format!("job-{task}"), recorder());
                    while begun.elapsed() < TURN {
                        let begun = Instant::now();
                        way.pair(&name).await;
                        record(&mut histogram, begun.elapsed());
                    }
                    histogram
                })
            });
            for worker in workers.collect::<Vec<_>>() {
                histogram.add(worker.await.expect("no panic")).expect("of one kind");
            }
            *time += begun.elapsed();
        }
    }
    taken
}

async fn hand_overs(server: &Server, lease: i64) -> Vec<Taken> {
    let (holder, watcher) = (server.raw().await, server.raw().await);
    let one = LockClient::builder(server.backend().await).build().expect("a client");
    let other = LockClient::builder(server.backend().await).build().expect("a client");
    let mut taken = vec![("raw watch", recorder(), TIME), ("client to client", recorder(), TIME)];
    for _ in 0..300 {
        let put = PutOptions::new().with_lease(lease);
        holder.kv_client().put("watched", "", Some(put)).await.expect("put");
        let mut watch = watcher.watch_client().watch("watched", Some(WatchOptions::new())).await.expect("watched");
        while !watch.message().await.expect("an answer").expect("open").created() {}
        let begun = Instant::now();
        let told = tokio::spawn(async move {
            watch.message().await.expect("an answer").expect("open");
            begun.elapsed()
        });
        holder.kv_client().delete("watched", None).await.expect("deleted");
        record(&mut taken[0].1, told.await.expect("no panic"));

        let guard = one.lock("handed").acquire().await.expect("acquired");
        let next = other.lock("handed").acquire();
        let next = tokio::spawn(async move { (next.await.expect("acquired"), Instant::now()) });
        while one.inspect("handed").await.expect("a look").first().and_then(|record| record.waiters) != Some(1) {}
        let begun = Instant::now();
        guard.release().await.expect("released");
        let (next, at) = next.await.expect("no panic");
        record(&mut taken[1].1, at - begun);
        next.release().await.expect("released");
    }
    taken
}

fn recorder() -> Histogram<u64> {
    Histogram::new(3).expect("three digits")
}

fn record(taken: &mut Histogram<u64>, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).expect("less than centuries");
    taken.record(nanos).expect("the histogram grows");
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn print(what: &str, taken: &[Taken]) {
    let micros = |histogram: &Histogram<u64>, quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
    let rate = |taken: &Taken| Duration::from_secs(taken.1.len()).as_secs_f64() / taken.2.as_secs_f64();
    let (floor, floor_rate) = (micros(&taken[0].1, 0.5), rate(&taken[0]));
    println!("etcd, {what}");
    for way in taken {
        let (p50, p99) = (micros(&way.1, 0.5), micros(&way.1, 0.99));
        let (slower, faster) = (p50.as_secs_f64() / floor.as_secs_f64(), rate(way) / floor_rate);
        println!(
            "{:>26}: p50 {p50:>9.1?} ({slower:.2} x)  p99 {p99:>9.1?}  {:>7.0}/s ({faster:.2} x)",
            way.0,
            rate(way)
        );
    }
}
