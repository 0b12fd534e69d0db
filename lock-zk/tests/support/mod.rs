//! What the tests need of ZooKeeper: a server of their own, and a look at its nodes past the backend.

mod oracle;
mod server;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use conformance_tests::{Fixture, Oracle, Outcome, Server, Stop};
use lock_core::{Backend, LockClient};
use lock_zk::{ZkBackend, ZkConfig};

pub(crate) use oracle::Nodes;
pub(crate) use server::PrivateZooKeeper;

/// The session of a client in the test's own process, which ends it in order. Two thirds of it are the longest that one
/// confirmation is good for, and more than any case asks for.
const LONG_SESSION: Duration = Duration::from_secs(45);

/// The session of a process that is killed or stopped.
const SHORT_SESSION: Duration = Duration::from_secs(2);

/// A ZooKeeper that the suite runs against.
#[derive(Debug)]
pub(crate) struct ZooKeeper {
    pub(crate) hosts: String,
    /// None where it is someone else's.
    pub(crate) server: Option<Arc<PrivateZooKeeper>>,
}

impl ZooKeeper {
    pub(crate) fn start() -> io::Result<Self> {
        let server = PrivateZooKeeper::start()?;
        Ok(ZooKeeper { hosts: server.address().to_string(), server: Some(Arc::new(server)) })
    }

    pub(crate) fn hosts(&self) -> &str {
        &self.hosts
    }
}

async fn connect(hosts: &str, session: Duration) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(ZkBackend::connect(&ZkConfig::new(hosts).session_timeout(session)).await?))
}

#[async_trait]
impl Fixture for ZooKeeper {
    fn name(&self) -> &str {
        "zookeeper"
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        connect(&self.hosts, LONG_SESSION).await
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        Ok(Arc::new(Nodes::of(&self.hosts).await.map_err(|error| Stop::broken(error.to_string()))?))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        let started = tokio::task::spawn_blocking(ZooKeeper::start).await??;
        // A new server is slow at what it does for the first time, and cases have no patience for that.
        let client = LockClient::builder(started.connect().await?).namespace("warm").build()?;
        client.lock("x").acquire().await?.release().await?;
        client.close().await?;
        Ok(Arc::new(started))
    }

    fn spec(&self) -> Option<String> {
        Some(self.hosts().to_owned())
    }

    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        connect(spec, SHORT_SESSION).await
    }

    fn server(&self) -> Option<Arc<dyn Server>> {
        self.server.clone().map(|server| server as Arc<dyn Server>)
    }

    fn address(&self) -> Option<SocketAddr> {
        self.hosts.parse().ok()
    }

    async fn connect_by(&self, address: SocketAddr) -> Outcome<Arc<dyn Backend>> {
        connect(&address.to_string(), LONG_SESSION).await
    }
}
