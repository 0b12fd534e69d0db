//! Locks as unique rows of an SQL database.
//!
//! A lock is a row, and whoever writes its claim into the row holds it. Each claim is one statement that is its own
//! transaction, and each lease is counted by the database's clock, read where the row is written.
//!
//! With the feature `sqlite`, `SqlBackend::sqlite` keeps locks in a file for the processes of one host. With `postgres`
//! and `mysql`, `SqlBackend::server` keeps them in a table of a PostgreSQL, MySQL or MariaDB server.
#![cfg_attr(
    any(feature = "postgres", feature = "mysql"),
    doc = concat!("\n", include_str!("servers.md"))
)]
#![cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]

mod backend;
mod capabilities;
#[cfg(feature = "sqlite")]
mod config;
mod dialect;
#[cfg(feature = "sqlite")]
mod error;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
mod schedule;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
mod units;

pub use backend::SqlBackend;
#[cfg(feature = "sqlite")]
pub use config::SqliteConfig;
#[cfg(feature = "mysql")]
pub use server::config::MYSQL_OPTIONS;
#[cfg(feature = "postgres")]
pub use server::config::POSTGRES_OPTIONS;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub use server::config::ServerConfig;
