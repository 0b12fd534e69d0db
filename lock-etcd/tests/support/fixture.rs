//! The fixture: one server for all cases, and a private one for those that stop or restart theirs.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use conformance_tests::{Fixture, Oracle, Outcome, PrivateServer, Server, Stop};
use lock_core::Backend;
use lock_etcd::{EtcdBackend, EtcdConfig};

use crate::support::{oracle::Raw, server};

/// The address of a server to test on, instead of one that is started.
const ADDRESS: &str = "LEASEHOLD_TEST_ETCD";

/// A server that the suite runs against.
#[derive(Debug)]
pub(crate) struct Etcd {
    address: SocketAddr,
    /// None for a server that someone else runs.
    server: Option<Arc<PrivateServer>>,
    /// Whether a case may stop it.
    private: bool,
}

impl Etcd {
    /// The server that the environment names, or else one that is started here.
    pub(crate) fn find() -> Result<Self, String> {
        if let Ok(address) = std::env::var(ADDRESS) {
            let address = address.parse().map_err(|error| format!("{ADDRESS}={address} is no address: {error}"))?;
            return Ok(Etcd { address, server: None, private: false });
        }
        Etcd::start(false).map_err(|error| format!("etcd does not start: {error}"))
    }

    fn start(private: bool) -> std::io::Result<Self> {
        let server = server::start(&[])?;
        Ok(Etcd { address: server.address(), server: Some(Arc::new(server)), private })
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
        connect(self.address).await
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        let raw = Raw::connect(self.address).await.map_err(|error| Stop::broken(error.to_string()))?;
        Ok(Arc::new(raw))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        Ok(Arc::new(tokio::task::spawn_blocking(|| Etcd::start(true)).await??))
    }

    fn spec(&self) -> Option<String> {
        Some(self.address.to_string())
    }

    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        connect(spec.parse().map_err(|_| Stop::broken(format!("{spec:?} is no address")))?).await
    }

    fn server(&self) -> Option<Arc<dyn Server>> {
        let server = self.server.as_ref().filter(|_| self.private)?;
        Some(Arc::new(Owned(Arc::clone(server))))
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.address)
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
