//! Many waiters of one name: what each release costs the cluster does not depend on how many there are.

use std::{net::SocketAddr, time::Duration};

use conformance_tests::Key;
use lock_core::{LockClient, LockGuard, LockKind, LockName, Namespace};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{Stage, connect, server, soon, until};

/// Waiters ask again after a third of it, which does not come here.
const LEASE: Duration = Duration::from_secs(900);

const RELEASES: u32 = 20;

/// How many come at once.
const AT_ONCE: usize = 50;

/// What the member has counted since its start.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// Events that it sent to those who watch.
    events: f64,
    /// Requests that it answered, without those on streams.
    requests: f64,
}

impl Counted {
    fn read(address: SocketAddr) -> Self {
        let page = server::says(address, "/metrics").expect("the member tells what it counts");
        let sum = |name: &str, label: &str| {
            let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(label));
            let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
            assert!(count > 0, "{name} is not on the page");
            sum
        };
        Counted {
            events: sum("etcd_debugging_mvcc_events_total", ""),
            requests: sum("grpc_server_handled_total", "grpc_type=\"unary\""),
        }
    }
}

/// Events and requests for each release, among so many waiters.
async fn cost(waiters: usize) -> Counted {
    let stage = Stage::new().await;
    let address = stage.server.address();
    let builder = LockClient::builder(connect(address).await).lease(LEASE).request_timeout(Duration::from_secs(60));
    let client = builder.build().expect("a client");
    let mut guard = client.lock("x").acquire().await.expect("free");
    let (served, mut next) = mpsc::unbounded_channel::<LockGuard>();
    let key =
        Key { namespace: Namespace::default(), name: LockName::new("x").expect("a name"), kind: LockKind::Exclusive };
    let mut tasks = JoinSet::new();
    // Not all at once, since each writes to the disk twice before it is in line.
    while tasks.len() < waiters {
        for _ in tasks.len()..waiters.min(tasks.len() + AT_ONCE) {
            let (client, served) = (client.clone(), served.clone());
            tasks.spawn(async move {
                let guard = client.lock("x").acquire().await.expect("its turn");
                // Nobody takes it once the test is over.
                let _ = served.send(guard);
            });
        }
        let all = tasks.len() + 1;
        until("they are in line", async || stage.raw.line(&key).await.expect("a look").len() == all).await;
    }
    let before = Counted::read(address);
    for _ in 0..RELEASES {
        guard.release().await.expect("held");
        guard = soon("the next is served", next.recv()).await.expect("a guard");
    }
    let after = Counted::read(address);
    tasks.abort_all();
    let each = |before: f64, after: f64| (after - before) / f64::from(RELEASES);
    Counted { events: each(before.events, after.events), requests: each(before.requests, after.requests) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_costs_as_little_among_a_thousand_waiters_as_among_thirty() {
    let (few, many) = (cost(30).await, cost(1_000).await);
    for cost in [few, many] {
        // The end of a key is told to the one behind it, and to its own holder; then that one looks where it stands.
        assert!(cost.events > 0.0 && cost.events <= 4.0, "{cost:?}");
        assert!(cost.requests > 0.0 && cost.requests <= 8.0, "{cost:?}");
    }
}
