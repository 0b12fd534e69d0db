//! The core of leasehold: the contract, and all of it that is the same on every store.
//!
//! Users depend on the facade, `leasehold`, which re-exports this crate. Those who write a backend implement
//! [`Backend`], four atomic operations, and depend on this crate alone; deadlines, waiting, renewal, loss, reentrancy,
//! cancellation and clean-up are here, written once. The contract is in [`semantics`].
//!
//! ```
//! use std::time::Duration;
//! use lock_core::{LockClient, MemoryBackend};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lock_core::Error> {
//! let client = LockClient::builder(MemoryBackend::new()).lease(Duration::from_secs(10)).build()?;
//! let guard = client.lock("order:1001").wait(Duration::from_secs(2)).acquire().await?;
//! // Give the token to the resource, which refuses a smaller one than it has seen.
//! let token = guard.fencing_token();
//! # let _ = token;
//! guard.release().await?;
//! # Ok(()) }
//! ```

mod acquire;
mod answer;
mod backend;
mod backend_error;
mod backoff;
mod builder;
mod call;
mod capabilities;
mod carry;
mod check;
mod claim;
mod client;
mod clock;
mod deadline;
mod encoding;
mod engine;
mod error;
mod extend;
mod fate;
mod finding;
mod guard;
mod hold;
mod holder;
mod janitor;
mod kind;
#[cfg(test)]
mod leak_tests;
mod line;
mod lock;
mod loss;
mod lost;
mod memory;
mod meter;
#[cfg(all(test, leasehold_model))]
mod model;
mod name;
mod observe;
mod options;
mod owner;
mod owners;
mod record;
mod reenter;
mod release;
mod request;
mod shared;
mod stay;
mod sync;
mod timer;
mod token;

pub use answer::{Attempt, Busy, Extension, Grant, Release};
pub use backend::Backend;
pub use backend_error::{BackendError, BackendErrorKind};
pub use builder::ClientBuilder;
pub use capabilities::{Capabilities, LeaseModel, LossPush, Queue, Verdict, Verdicts, Wakes};
pub use check::Report;
pub use claim::{Claim, ClaimId, Intent, ParseClaimIdError};
pub use client::LockClient;
pub use clock::{Clock, ManualClock, SystemClock, TokioClock};
pub use encoding::{decode_name, encode_name};
pub use error::{Error, ErrorKind};
pub use finding::{Finding, Level, Usage};
pub use guard::LockGuard;
pub use holder::{Holder, HolderInfo};
pub use kind::LockKind;
pub use lock::{Lock, Renew};
pub use loss::LossReason;
pub use memory::MemoryBackend;
#[cfg(feature = "metrics")]
pub use meter::MetricGroup;
pub use name::{LockName, Namespace};
pub use owner::Owner;
pub use record::{LockRecord, Pattern, Selector};
pub use token::FencingToken;

#[doc = include_str!("semantics.md")]
pub mod semantics {}

/// What a backend crate needs of other crates to implement the trait.
pub mod reexport {
    pub use async_trait::async_trait;
    pub use futures_util;
}
