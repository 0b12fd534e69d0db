//! Locks as ephemeral sequential nodes of a ZooKeeper ensemble.
//!
//! A lock is a directory, and a claim is an ephemeral sequential node in it whose name carries the claim's id. The first
//! node in the order of creation holds; each of the others watches the one before it alone. The nodes live as long as
//! their session, of which a [`ZkBackend`] has one at a time, and whose timeout is the lease that its client asked for.

mod attempt;
mod backend;
mod book;
mod capabilities;
mod check;
mod config;
mod confirm;
mod contact;
mod error;
mod find;
mod holder;
mod inspect;
mod line;
mod path;
mod release;
mod session;
#[cfg(feature = "tls")]
mod tls;
mod watch;

pub use backend::ZkBackend;
pub use config::ZkConfig;
#[cfg(feature = "tls")]
pub use tls::ZkTls;
