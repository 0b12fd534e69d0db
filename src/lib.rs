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
//! | `sqlite:PATH` | a file, for the processes of one host | `sqlite` |
//! | `etcd://HOST:PORT,...`, `etcds://...` with TLS | an etcd cluster | `etcd` |
//!
//! [`connect`] lists the options that a URL takes; [`Config`] reads the same from TOML. A store that has no URL here is
//! any [`Backend`], given to [`LockClient::builder`].

mod config;
mod connect;
#[cfg(feature = "etcd")]
mod etcd;
mod options;
mod scheme;
mod store;
mod text;

pub use config::Config;
pub use connect::{connect, connect_config};
#[doc(inline)]
pub use lock_core::*;
#[cfg(feature = "etcd")]
pub use lock_etcd::{EtcdBackend, EtcdConfig, EtcdTls};
#[cfg(feature = "sqlite")]
pub use lock_sql::{SqlBackend, SqliteConfig};

/// README's code compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
