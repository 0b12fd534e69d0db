//! Locks for threads without a runtime: the same client, lock and guard, whose calls block.
//!
//! A client has a background thread of its own, which renews its locks, watches their deadlines and cleans up, whatever
//! its callers' threads do; what a backend needs beside it, such as SQLite its writer, comes on top. Everything may be
//! used from many threads at once.
//!
//! ```
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), leasehold::Error> {
//! let client = leasehold::blocking::connect("memory:?namespace=shop")?;
//! let guard = client.lock("order:1001").wait(Duration::from_secs(5)).acquire()?;
//! assert!(guard.is_held());
//! guard.release()?;
//!
//! let total = client.lock("report").run(|guard| guard.fencing_token().get() + 1)?;
//! assert!(total > 1);
//! # Ok(()) }
//! ```
//!
//! **Not for async code.** A call here holds its thread until it has its answer. In a task that would hold up others, and
//! where the runtime has one thread all of them, and so does the drop of the last handle: use the client of the crate's
//! root there.

mod client;
mod guard;
mod lock;

pub use self::{
    client::{Client, connect, connect_config},
    guard::Guard,
    lock::Lock,
};
