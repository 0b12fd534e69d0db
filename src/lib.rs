//! One lock API over the stores that a service already runs.
//!
//! A URL names the store. Whatever it is, the lock keeps the same contract: it is held by one, it ends by itself when
//! its holder dies, it is renewed while the holder lives, and its loss is told.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), leasehold::Error> {
//! let client = leasehold::connect("memory:?namespace=shop").await?;
//! let guard = client.lock("order:1001").acquire().await?;
//! println!("held under token {}", guard.fencing_token());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! | URL | store | Cargo feature |
//! |---|---|---|
//! | `memory:` | this process, for tests | always there |
//! | `redis://`, `rediss://` | a Redis server, for any number of hosts | `redis` |
//! | `etcd://HOST:PORT,...`, `etcds://...` with TLS | an etcd cluster | `etcd` |
//! | `sqlite:PATH` | a file, for the processes of one host | `sqlite` |
//! | `zk://HOST:PORT,.../CHROOT` | a ZooKeeper ensemble | `zookeeper` |
//! | `zks://HOST:PORT,.../CHROOT` | the same over TLS | `zookeeper-tls` |
//! | `postgres://USER:PASSWORD@HOST/DATABASE` | a table of a PostgreSQL server | `postgres` |
//! | `mysql://USER:PASSWORD@HOST/DATABASE` | a table of a MySQL or MariaDB server | `mysql` |
//!
//! | more features | what they add |
//! |---|---|
//! | `full` | every store |
//! | `macros` | the attribute `locked`, for async functions whose body runs under a lock |
//! | `blocking` | the module `blocking`: the same API for threads without a runtime |
//! | `metrics` | counters and histograms for the recorder of the crate `metrics` that the program installs, `MetricGroup` and `ClientBuilder::metric_group` |
//!
//! Each of the stores' features but `memory` has its types as well, such as `RedisBackend` and `RedisConfig`, for a
//! [`LockClient::builder`] without a URL.
//!
//! [`connect`] lists the options that a URL takes; [`Config`] reads the same from TOML. A store that has no URL here is
//! any [`Backend`], given to [`LockClient::builder`].

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "locked.rs"]
pub mod __locked;
#[cfg(feature = "blocking")]
pub mod blocking;
mod config;
mod connect;
#[cfg(feature = "etcd")]
mod etcd;
mod options;
mod scheme;
mod secret;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server;
mod store;
mod stores;
mod text;
#[cfg(feature = "zookeeper")]
mod zookeeper;

pub use config::Config;
pub use connect::{connect, connect_config};
#[doc(inline)]
pub use lock_core::*;
#[cfg(feature = "etcd")]
pub use lock_etcd::{EtcdBackend, EtcdConfig, EtcdTls};
#[cfg(feature = "macros")]
pub use lock_macros::locked;
#[cfg(feature = "redis")]
pub use lock_redis::{RedisBackend, RedisConfig};
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub use lock_sql::ServerConfig;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub use lock_sql::SqlBackend;
#[cfg(feature = "sqlite")]
pub use lock_sql::SqliteConfig;
#[cfg(feature = "zookeeper-tls")]
pub use lock_zk::ZkTls;
#[cfg(feature = "zookeeper")]
pub use lock_zk::{ZkBackend, ZkConfig};
pub use stores::{StoreKind, stores};

/// README's code compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The guide's code compiles and runs.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../docs/guide/README.md")]
    struct Start;
    #[doc = include_str!("../docs/guide/fencing.md")]
    struct Fencing;
    #[doc = include_str!("../docs/guide/leaked-locks.md")]
    struct LeakedLocks;
    #[doc = include_str!("../docs/guide/leases.md")]
    struct Leases;
    #[doc = include_str!("../docs/guide/store-down.md")]
    struct StoreDown;
    #[doc = include_str!("../docs/guide/web-service.md")]
    struct WebService;
    #[doc = include_str!("../docs/guide/without-a-lock.md")]
    struct WithoutALock;
    #[cfg(feature = "macros")]
    #[doc = include_str!("../docs/guide/locked.md")]
    struct Locked;
    /// It installs the exporter, which is a dependency of the tests.
    #[cfg(feature = "metrics")]
    #[doc = include_str!("../docs/guide/metrics.md")]
    struct Metrics;
    /// It opens a file of SQLite.
    #[cfg(feature = "sqlite")]
    #[doc = include_str!("../docs/guide/swapping.md")]
    struct Swapping;
}
