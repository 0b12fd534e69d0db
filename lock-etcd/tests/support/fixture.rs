//! The fixture: one server for all cases, and a private one for those that stop or restart theirs.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Fixture, Oracle, Outcome, PrivateServer, Server, Stop};
use lock_core::Backend;
use lock_etcd::{EtcdBackend, EtcdConfig};

use crate::support::{oracle::Raw, server};

/// The address of a server to test on, instead of one that is started.
const ADDRESS: &str = "LEASEHOLD_TEST_ETCD";

/// A server that the suite runs against.
#[derive(Debug)]
pub(crate) enum Etcd {
    /// One that someone else runs.
    There(SocketAddr),
    /// The one of this run, started when it is first needed: processes that are workers of a case need none, and
    /// would leave theirs behind when the case kills them.
    Shared(OnceLock<PrivateServer>),
    /// One that a case may stop.
    Private(Arc<PrivateServer>),
}

impl Etcd {
    /// The server that the environment names, or else one that can be started here.
    pub(crate) fn find() -> Result<Self, String> {
        if let Ok(address) = std::env::var(ADDRESS) {
            let address = address.parse().map_err(|error| format!("{ADDRESS}={address} is no address: {error}"))?;
            return Ok(Etcd::There(address));
        }
        let version = std::process::Command::new("etcd").arg("--version").output();
        version.map_err(|error| format!("etcd does not start: {error}"))?;
        Ok(Etcd::Shared(OnceLock::new()))
    }

    fn place(&self) -> SocketAddr {
        match self {
            Etcd::There(address) => *address,
            Etcd::Shared(server) => server.get_or_init(|| server::start(&[]).expect("etcd starts")).address(),
            Etcd::Private(server) => server.address(),
        }
    }
}

async fn connect(address: SocketAddr) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(EtcdBackend::connect(&EtcdConfig::new([address.to_string()])).await?))
}

#[async_trait]
impl Fixture for Etcd {
    fn name(&self) -> &str {
        "etcd"
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        connect(self.place()).await
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        let raw = Raw::connect(self.place()).await.map_err(|error| Stop::broken(error.to_string()))?;
        Ok(Arc::new(raw))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        let server = tokio::task::spawn_blocking(|| server::start(&[])).await??;
        Ok(Arc::new(Etcd::Private(Arc::new(server))))
    }

    fn spec(&self) -> Option<String> {
        Some(self.place().to_string())
    }

    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        connect(spec.parse().map_err(|_| Stop::broken(format!("{spec:?} is no address")))?).await
    }

    fn server(&self) -> Option<Arc<dyn Server>> {
        match self {
            Etcd::Private(server) => Some(Arc::new(Owned(Arc::clone(server)))),
            _ => None,
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.place())
    }

    async fn connect_by(&self, address: SocketAddr) -> Outcome<Arc<dyn Backend>> {
        connect(address).await
    }
}

/// A server that a case may stop and start.
#[derive(Debug)]
struct Owned(Arc<PrivateServer>);

impl Owned {
    /// Does something to the server that takes its time.
    async fn blocking(&self, work: impl FnOnce(&PrivateServer) -> std::io::Result<()> + Send + 'static) -> Outcome {
        let server = Arc::clone(&self.0);
        Ok(tokio::task::spawn_blocking(move || work(&server)).await??)
    }
}

#[async_trait]
impl Server for Owned {
    async fn restart(&self) -> Outcome {
        self.blocking(|server| {
            server.kill();
            server.launch()
        })
        .await
    }

    async fn restart_empty(&self) -> Outcome {
        self.blocking(|server| {
            server.kill();
            std::fs::remove_dir_all(server::data(server.directory()))?;
            server.launch()
        })
        .await
    }

    fn pause(&self) -> Outcome {
        Ok(self.0.pause()?)
    }

    fn resume(&self) -> Outcome {
        Ok(self.0.resume()?)
    }

    fn recovery(&self) -> Duration {
        Duration::from_secs(5)
    }
}
