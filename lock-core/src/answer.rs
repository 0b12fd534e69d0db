//! The answers that a backend gives to core's four calls.

use std::{fmt, time::Duration};

use futures_util::{
    StreamExt as _,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};

use crate::{FencingToken, Holder};

/// The answer to an attempt.
#[derive(Debug)]
pub enum Attempt {
    /// The claim holds the lock.
    Granted(Grant),
    /// Others hold it.
    Busy(Busy),
}

/// The store's yes to a claim.
pub struct Grant {
    /// Larger than that of any earlier grant of the name (L13).
    pub token: FencingToken,
    /// What the store really gave, counted from the start of the call.
    pub lease: Duration,
    /// Each item hints that the hold may be gone; core then asks with an `extend`, so a spurious one costs a round trip
    /// and nothing else. The backend re-arms it. Polled only where `Capabilities::loss_push` is `Prompt`.
    pub disturbed: BoxStream<'static, ()>,
}

impl Grant {
    /// A grant without hints of loss.
    #[must_use]
    pub fn new(token: FencingToken, lease: Duration) -> Self {
        // Pending takes no space, so this box does not allocate.
        Grant { token, lease, disturbed: stream::pending().boxed() }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("token", &self.token).field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// The store's no to a claim.
pub struct Busy {
    /// Resolves when it is worth asking again. Armed before the store was asked, so that no release falls between the
    /// check and the wait; may be spurious; never resolves on a store without push.
    pub changed: BoxFuture<'static, ()>,
    /// When the holders' leases run out, where the store knows.
    pub retry_after: Option<Duration>,
    /// Who holds, where the store's answer tells.
    pub holders: Vec<Holder>,
}

impl Busy {
    /// An answer without a wake-up.
    #[must_use]
    pub fn new(retry_after: Option<Duration>, holders: Vec<Holder>) -> Self {
        // Pending takes no space, so this box does not allocate.
        Busy { changed: Box::pin(future::pending()), retry_after, holders }
    }
}

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Busy")
            .field("retry_after", &self.retry_after)
            .field("holders", &self.holders)
            .finish_non_exhaustive()
    }
}

/// The answer to an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// The store keeps the claim for at least this long, counted from the start of the call.
    Extended(Duration),
    /// The store has no such claim in force.
    NotHeld,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The claim was there, in force or queued, and is gone now.
    Removed,
    /// There was no such claim in force.
    Absent,
}
