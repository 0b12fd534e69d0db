//! The stores that a configuration can name, and how each is reached.

use std::sync::LazyLock;

use lock_core::{Capabilities, ClientBuilder, Error, LockClient, MemoryBackend};

use crate::{
    options::Options,
    scheme::{Scheme, config},
};

/// The store of `memory:`. One for the whole process, as a server would be.
static MEMORY: LazyLock<MemoryBackend> = LazyLock::new(MemoryBackend::new);

/// A store and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    #[cfg(feature = "etcd")]
    Etcd(crate::etcd::Cluster),
    #[cfg(feature = "redis")]
    Redis(lock_redis::RedisConfig),
    #[cfg(feature = "sqlite")]
    Sqlite(std::path::PathBuf),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(crate::zookeeper::Ensemble),
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    Server(crate::server::Place),
}

impl Store {
    /// The store at this place, which is what a URL has between its scheme and its options.
    ///
    /// # Errors
    ///
    /// `Config` for a place where such a store cannot be.
    pub(crate) fn parse(scheme: Scheme, place: &str) -> Result<Self, Error> {
        match scheme {
            Scheme::Memory if matches!(place, "" | "//") => Ok(Store::Memory),
            Scheme::Memory => Err(config("store memory: takes no path; there is one such store in a process")),
            #[cfg(feature = "etcd")]
            Scheme::Etcd | Scheme::Etcds => crate::etcd::Cluster::parse(scheme, place).map(Store::Etcd),
            #[cfg(feature = "redis")]
            Scheme::Redis | Scheme::Rediss => {
                let url = [scheme.prefix(), place].concat();
                lock_redis::RedisConfig::from_url(&url).map(Store::Redis).map_err(|error| config(error.to_string()))
            }
            #[cfg(feature = "sqlite")]
            Scheme::Sqlite => sqlite_path(place).map(Store::Sqlite),
            #[cfg(feature = "zookeeper")]
            Scheme::ZooKeeper => crate::zookeeper::parse(scheme, place).map(Store::ZooKeeper),
            #[cfg(feature = "zookeeper-tls")]
            Scheme::ZooKeeperTls => crate::zookeeper::parse(scheme, place).map(Store::ZooKeeper),
            #[cfg(feature = "postgres")]
            Scheme::Postgres => crate::server::Place::new("postgres", place).map(Store::Server),
            #[cfg(feature = "mysql")]
            Scheme::Mysql => crate::server::Place::new("mysql", place).map(Store::Server),
        }
    }

    /// Connects, and gives a builder of clients.
    pub(crate) async fn connect(&self, options: &Options) -> Result<ClientBuilder, Error> {
        match self {
            Store::Memory => {
                check_lease(options, lock_core::Backend::capabilities(&*MEMORY))?;
                Ok(LockClient::builder(MEMORY.clone()))
            }
            #[cfg(feature = "etcd")]
            Store::Etcd(cluster) => {
                check_lease(options, &lock_etcd::EtcdBackend::etcd_capabilities())?;
                Ok(LockClient::builder(lock_etcd::EtcdBackend::connect(&cluster.config(options)?).await?))
            }
            #[cfg(feature = "redis")]
            Store::Redis(server) => {
                check_lease(options, &lock_redis::RedisBackend::redis_capabilities())?;
                Ok(LockClient::builder(lock_redis::RedisBackend::connect(&redis_config(server, options)?).await?))
            }
            #[cfg(feature = "sqlite")]
            Store::Sqlite(path) => {
                check_lease(options, &lock_sql::SqlBackend::sqlite_capabilities())?;
                Ok(LockClient::builder(lock_sql::SqlBackend::sqlite(&sqlite_config(path, options)).await?))
            }
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper(ensemble) => {
                check_lease(options, &lock_zk::ZkBackend::promises(options.lease.unwrap_or_default()))?;
                crate::zookeeper::connect(ensemble, options).await
            }
            #[cfg(any(feature = "postgres", feature = "mysql"))]
            Store::Server(place) => {
                let server = place.config(options)?;
                check_lease(options, &lock_sql::SqlBackend::server_capabilities(&server))?;
                Ok(LockClient::builder(lock_sql::SqlBackend::server(&server).await?))
            }
        }
    }
}

/// Refuses a lease that the store does not give before anything is opened or created (L15).
fn check_lease(options: &Options, store: &Capabilities) -> Result<(), Error> {
    match options.lease {
        Some(lease) if lease > store.lease_max => Err(config(format!(
            "option lease={} is out of range: {} gives at most {}",
            humantime::format_duration(lease),
            store.store,
            humantime::format_duration(store.lease_max)
        ))),
        _ => Ok(()),
    }
}

#[cfg(feature = "redis")]
fn redis_config(server: &lock_redis::RedisConfig, options: &Options) -> Result<lock_redis::RedisConfig, Error> {
    let mut config = server.clone();
    if let Some(limit) = options.connect_timeout {
        config = config.connect_timeout(limit);
    }
    match &options.tls_ca {
        Some(file) => Ok(config.tls_ca(file)?),
        None => Ok(config),
    }
}

#[cfg(feature = "sqlite")]
fn sqlite_path(place: &str) -> Result<std::path::PathBuf, Error> {
    let path = place.strip_prefix("//").unwrap_or(place);
    let decoded = crate::text::decode(path).ok_or_else(|| {
        config(format!("path {path:?} of store sqlite: is not percent-encoded UTF-8; write % as %25"))
    })?;
    if decoded.is_empty() {
        return Err(config("store sqlite: names no file; write it as sqlite:PATH"));
    }
    Ok(decoded.into())
}

#[cfg(feature = "sqlite")]
fn sqlite_config(path: &std::path::Path, options: &Options) -> lock_sql::SqliteConfig {
    let mut config = lock_sql::SqliteConfig::new(path);
    if let Some(limit) = options.connect_timeout {
        config = config.connect_timeout(limit);
    }
    if let Some(limit) = options.request_timeout {
        // A statement that waits for its turn for longer than its call may take holds up those behind it for nothing.
        config = config.busy_timeout(limit.min(std::time::Duration::from_secs(1)));
    }
    match options.max_page_count {
        Some(pages) => config.max_page_count(pages),
        None => config,
    }
}
