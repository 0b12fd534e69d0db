//! What is special to ZooKeeper, on a real server: sessions, nodes touched by hand, access lists, cut connections.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod check;
mod cuts;
mod hands;
mod sessions;
#[cfg(feature = "tls")]
mod tls;

use std::time::{Duration, Instant};

use conformance_tests::{Key, Outcome};
use lock_core::{LockClient, LockKind, LockName, Namespace};
use lock_zk::{ZkBackend, ZkConfig};

use support::{PrivateZooKeeper, ZooKeeper};

/// What a busy machine may add to anything.
const NOISE: Duration = Duration::from_secs(3);

/// The server that the test started.
fn server(zookeeper: &ZooKeeper) -> &PrivateZooKeeper {
    zookeeper.server.as_ref().expect("started here")
}

fn key(name: &str) -> Key {
    let name = LockName::new(name).expect("a name");
    Key { namespace: Namespace::default(), name, kind: LockKind::Exclusive }
}

/// A client in the empty namespace whose session is asked to last as long as its lease.
async fn client(hosts: &str, lease: Duration) -> Outcome<LockClient> {
    let backend = ZkBackend::connect(&ZkConfig::new(hosts).session_timeout(lease)).await?;
    // A server that has just been restarted, on a busy machine, takes its time.
    Ok(LockClient::builder(backend).lease(lease).request_timeout(Duration::from_secs(10)).build()?)
}

/// Looks until a state is reached.
async fn eventually(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + limit;
    while !look().await {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
