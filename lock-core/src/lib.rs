//! The core of leasehold.

mod answer;
mod backend;
mod backend_error;
mod capabilities;
mod claim;
mod clock;
mod encoding;
mod error;
mod holder;
mod kind;
mod name;
mod record;
mod token;

pub use answer::{Attempt, Busy, Extension, Grant, Release};
pub use backend::Backend;
pub use backend_error::{BackendError, BackendErrorKind};
pub use capabilities::{Capabilities, LeaseModel, LossPush, Queue, Verdict, Verdicts, Wakes};
pub use claim::{Claim, ClaimId, Intent, ParseClaimIdError};
pub use clock::{Clock, ManualClock, SystemClock, TokioClock};
pub use encoding::{decode_name, encode_name};
pub use error::{Error, ErrorKind};
pub use holder::{Holder, HolderInfo};
pub use kind::LockKind;
pub use name::{LockName, Namespace};
pub use record::{LockRecord, Pattern, Selector};
pub use token::FencingToken;

/// What a backend crate needs of other crates to implement the trait.
pub mod reexport {
    pub use async_trait::async_trait;
    pub use futures_util;
}
