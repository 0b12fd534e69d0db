//! Locks as unique rows of an SQL database.
//!
//! A lock is a row, and whoever writes its claim into the row holds it. Each claim is one statement that is its own
//! transaction, and each lease is counted by the database's clock, read where the row is written.
//!
//! With the feature `sqlite`, [`SqlBackend::sqlite`] keeps locks in a file for the processes of one host.

#[cfg(feature = "sqlite")]
mod backend;
#[cfg(feature = "sqlite")]
mod capabilities;
#[cfg(feature = "sqlite")]
mod config;
#[cfg(feature = "sqlite")]
mod dialect;
#[cfg(feature = "sqlite")]
mod error;
#[cfg(feature = "sqlite")]
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod units;

#[cfg(feature = "sqlite")]
pub use backend::SqlBackend;
#[cfg(feature = "sqlite")]
pub use config::SqliteConfig;
