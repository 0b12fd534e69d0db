//! What is special to etcd: leases and keys changed by hand, compaction, members that fail, and who may ask.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/cluster.rs"]
mod members;

mod auth;
mod by_hand;
mod check;
mod cluster;
mod leases;
mod queue;
mod tls;
mod waiters;

use std::{
    future::Future,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use conformance_tests::{Key, PrivateServer};
use lock_core::{
    Attempt, Backend as _, Busy, Claim, ClaimId, FencingToken, Grant, HolderInfo, Intent, LockKind, LockName, Namespace,
};
use lock_etcd::{EtcdBackend, EtcdConfig};
use support::{oracle::Raw, server};

/// Far above what anything here takes on a busy machine, and far below a person's patience.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server, a backend on it, and a look past the backend.
struct Stage {
    server: PrivateServer,
    backend: EtcdBackend,
    raw: Raw,
}

impl Stage {
    async fn new() -> Self {
        let server = server::start(&[]).expect("etcd starts");
        let backend = connect(server.address()).await;
        let raw = Raw::connect(server.address()).await.expect("the oracle connects");
        Stage { server, backend, raw }
    }
}

async fn connect(address: SocketAddr) -> EtcdBackend {
    EtcdBackend::connect(&EtcdConfig::new([address.to_string()])).await.expect("the backend connects")
}

fn claim(name: &str, intent: Intent, lease: Duration) -> Claim {
    Claim {
        namespace: Namespace::default(),
        name: LockName::new(name).expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent,
        lease,
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 1, label: None }),
        min_token: FencingToken::ZERO,
    }
}

fn key_of(claim: &Claim) -> Key {
    Key { namespace: claim.namespace.clone(), name: claim.name.clone(), kind: claim.kind }
}

async fn granted(backend: &EtcdBackend, claim: &Claim) -> Grant {
    match backend.attempt(claim).await.expect("an answer") {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("held by {:?}", busy.holders),
    }
}

async fn busy(backend: &EtcdBackend, claim: &Claim) -> Busy {
    match backend.attempt(claim).await.expect("an answer") {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("granted with {}", grant.token),
    }
}

/// What a future comes to, within a person's patience.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}

/// Looks again and again until a state is reached.
async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !look().await {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
