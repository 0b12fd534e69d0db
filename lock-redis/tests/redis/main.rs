//! What is special to Redis, each proved by what a second connection sees in the server.

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the suite uses more of it")]
mod support;

mod acl;
mod check;
mod failover;
mod keys;
mod login;
mod refusals;
mod scripts;
mod secrets;
mod stopped;
mod tls;
mod tokens;
mod wakes;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use conformance_tests::PrivateServer;
use lock_core::{
    Attempt, Backend as _, Busy, Claim, ClaimId, FencingToken, Grant, HolderInfo, Intent, LockClient, LockKind,
    LockName, Namespace,
};
use lock_redis::{RedisBackend, RedisConfig};
use support::{
    oracle::Raw,
    server::{self, Keeps},
};

const LEASE: Duration = Duration::from_secs(30);

/// How long a busy machine may take for anything.
const NOISE: Duration = Duration::from_secs(5);

/// A server of the test's own, with a look into it.
struct Place {
    server: PrivateServer,
    raw: Raw,
}

impl Place {
    async fn new() -> Self {
        Place::with(Keeps::Nothing, &[]).await
    }

    async fn with(keeps: Keeps, options: &[&str]) -> Self {
        let server = server::start(keeps, options).expect("redis-server starts");
        let raw = Raw::connect(server.address()).await.expect("the server answers");
        Place { server, raw }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of this server, with a login such as `user:password@` or nothing.
    fn url(&self, login: &str) -> String {
        format!("redis://{login}{}", self.address())
    }

    async fn backend(&self) -> RedisBackend {
        connect(&self.url("")).await
    }

    async fn client(&self) -> LockClient {
        LockClient::builder(self.backend().await).lease(LEASE).build().expect("a client")
    }

    /// What the server says to a command that it must obey.
    async fn tell(&self, words: &[&str]) -> String {
        let answer: redis::Value = self.raw.ask(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"));
        match answer {
            redis::Value::Okay => "OK".to_owned(),
            redis::Value::Int(number) => number.to_string(),
            redis::Value::SimpleString(text) => text,
            redis::Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            redis::Value::Nil => String::new(),
            other => format!("{other:?}"),
        }
    }

    /// Waits until the server shows something.
    async fn shows(&self, what: &str, mut look: impl AsyncFnMut(&Raw) -> bool) {
        let end = tokio::time::Instant::now() + NOISE;
        while !look(&self.raw).await {
            assert!(tokio::time::Instant::now() < end, "not within {NOISE:?}: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn connect(url: &str) -> RedisBackend {
    let config = RedisConfig::from_url(url).expect("a URL");
    RedisBackend::connect(&config).await.unwrap_or_else(|error| panic!("{error}"))
}

fn claim(name: &str) -> Claim {
    Claim {
        namespace: Namespace::new("shop").expect("a namespace"),
        name: LockName::new(name).expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent: Intent::Try,
        lease: LEASE,
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 7, label: Some("nightly".to_owned()) }),
        min_token: FencingToken::ZERO,
    }
}

/// The same lock, claimed by someone who would wait.
fn waiting(name: &str) -> Claim {
    Claim { intent: Intent::Wait, ..claim(name) }
}

fn key(name: &str) -> String {
    format!("leasehold/{{shop/lock/{name}}}")
}

fn fence(name: &str) -> String {
    format!("{}/fence", key(name))
}

async fn granted(backend: &RedisBackend, claim: &Claim) -> Grant {
    match backend.attempt(claim).await.unwrap_or_else(|error| panic!("{error}")) {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("{:?} is taken: {busy:?}", claim.name),
    }
}

async fn busy(backend: &RedisBackend, claim: &Claim) -> Busy {
    match backend.attempt(claim).await.unwrap_or_else(|error| panic!("{error}")) {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("{:?} is free: {grant:?}", claim.name),
    }
}
