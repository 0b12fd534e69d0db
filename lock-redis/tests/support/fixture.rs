//! The fixture: one server for all cases, and a private one for those that stop or restart theirs.

use std::{
    net::SocketAddr,
    process::Command,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Fixture, Oracle, Outcome, PrivateServer, Server, Stop};
use lock_core::Backend;
use lock_redis::{RedisBackend, RedisConfig};

use super::{
    oracle::Raw,
    server::{self, Keeps},
};

/// The URL of a server to test on, instead of one that is started.
const URL: &str = "LEASEHOLD_TEST_REDIS";

/// A server that the suite runs against.
#[derive(Debug)]
pub(crate) struct Redis {
    /// The URL of a server that someone else runs.
    foreign: Option<String>,
    /// Our own, started when it is first needed: a process that only opens what it is told needs none.
    own: OnceLock<Result<Arc<PrivateServer>, String>>,
    /// Whether a case may stop it.
    private: bool,
}

impl Redis {
    /// The server that the environment names, or else one that is started here.
    pub(crate) fn find() -> Result<Self, String> {
        let foreign = std::env::var(URL).ok();
        if foreign.is_none() {
            let asked = Command::new("redis-server").arg("--version").output();
            asked.map_err(|error| format!("redis-server does not run: {error}"))?;
        }
        Ok(Redis { foreign, own: OnceLock::new(), private: false })
    }

    fn own(&self) -> Option<Result<&Arc<PrivateServer>, Stop>> {
        if self.foreign.is_some() {
            return None;
        }
        let start = || server::start(Keeps::Nothing, &[]).map(Arc::new).map_err(|error| error.to_string());
        Some(self.own.get_or_init(start).as_ref().map_err(|error| Stop::broken(error)))
    }

    fn url(&self) -> Outcome<String> {
        match (&self.foreign, self.own()) {
            (Some(foreign), _) => Ok(foreign.clone()),
            (None, Some(own)) => Ok(url(own?.address())),
            (None, None) => Err(Stop::broken("neither a server of ours nor another's")),
        }
    }
}

fn url(address: SocketAddr) -> String {
    format!("redis://{address}")
}

async fn connect(config: &RedisConfig) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(RedisBackend::connect(config).await?))
}

#[async_trait]
impl Fixture for Redis {
    fn name(&self) -> &str {
        "redis"
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        connect(&RedisConfig::from_url(&self.url()?)?).await
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        let raw = Raw::by_url(&self.url()?).await.map_err(|error| Stop::broken(error.to_string()))?;
        Ok(Arc::new(raw))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        let server = tokio::task::spawn_blocking(|| server::start(Keeps::Everything, &[])).await??;
        Ok(Arc::new(Redis { foreign: None, own: OnceLock::from(Ok(Arc::new(server))), private: true }))
    }

    fn spec(&self) -> Option<String> {
        self.url().ok()
    }

    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        connect(&RedisConfig::from_url(spec)?).await
    }

    fn server(&self) -> Option<Arc<dyn Server>> {
        let server = self.own().filter(|_| self.private)?.ok()?;
        Some(Arc::new(Owned(Arc::clone(server))))
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.own()?.ok()?.address())
    }

    async fn connect_by(&self, address: SocketAddr) -> Outcome<Arc<dyn Backend>> {
        connect(&RedisConfig::new(address.ip().to_string(), address.port())).await
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
            let data = server.directory().join("appendonlydir");
            if data.exists() {
                std::fs::remove_dir_all(data)?;
            }
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

    async fn cut_connections(&self) -> Outcome {
        let raw = Raw::connect(self.0.address()).await.map_err(|error| Stop::broken(error.to_string()))?;
        for kind in ["normal", "pubsub"] {
            let cut: Result<u64, _> = raw.ask(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]).await;
            cut.map_err(|error| Stop::broken(error.to_string()))?;
        }
        Ok(())
    }

    fn recovery(&self) -> Duration {
        Duration::from_secs(5)
    }
}
