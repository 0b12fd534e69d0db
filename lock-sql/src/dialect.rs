//! What differs between databases: how each runs the four statements. What they decide is shared, in `backend.rs`.

use std::{fmt::Debug, time::SystemTime};

use async_trait::async_trait;
use lock_core::{
    BackendError, Capabilities, Claim, ClaimId, Finding, LockKind, Usage, reexport::futures_util::future::BoxFuture,
};

use crate::{rows::HolderRow, units::NameRange};

/// A database that can run the statements.
///
/// The rules that hold for every statement: it is its own transaction; it reads the database's clock where the row is
/// written, after any wait for the row; and the claim's id decides, never a count of rows that may have been left alone.
#[async_trait]
pub(crate) trait Dialect: Debug + Send + Sync + 'static {
    /// What the database promises.
    fn capabilities(&self) -> &Capabilities;

    /// Writes the claim into its row if the row is free, has run out, or is the claim's own already.
    ///
    /// Answers with the row's claim as it is then, or with nothing where the database returns no row that it left alone.
    async fn claim(&self, row: &ClaimRow<'_>) -> Result<Option<ClaimedRow>, BackendError>;

    /// Lengthens a claim in force, never shortening it. Answers with the remaining microseconds.
    async fn extend(&self, key: &Key<'_>, claim: ClaimId, lease_us: i64) -> Result<Option<i64>, BackendError>;

    /// Clears a claim, also one that has run out and was not taken over. Answers whether it was in force.
    async fn release(&self, key: &Key<'_>, claim: ClaimId) -> Result<WasInForce, BackendError>;

    /// The claims in force, in the order of names and slots.
    async fn holders(&self, range: &NameRange<'_>) -> Result<Vec<HolderRow>, BackendError>;

    /// The claims in force of one lock, and what tells when that may have changed: armed before the look (L9).
    async fn watch(&self, key: &Key<'_>, kind: LockKind) -> Result<Watched, BackendError> {
        let range = NameRange::one(key.namespace, kind, key.name);
        Ok(Watched { holders: self.holders(&range).await?, changed: None })
    }

    /// What the database's settings mean for locks.
    async fn check(&self, usage: &Usage) -> Result<Vec<Finding>, BackendError>;

    /// The clock that leases go by, where it is not this host's own.
    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        Ok(None)
    }

    /// What was created when this backend was opened, in words, and from then on nothing: opening creates it all.
    fn take_created(&self) -> Option<String>;

    /// Ends the connections.
    async fn close(&self);
}

/// The holders of a lock, and what tells when to look again, where the database does.
pub(crate) struct Watched {
    pub(crate) holders: Vec<HolderRow>,
    pub(crate) changed: Option<BoxFuture<'static, ()>>,
}

/// A row's primary key. Compared as bytes (L14).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) namespace: &'a [u8],
    pub(crate) family: &'static str,
    pub(crate) name: &'a [u8],
    /// Zero for a lock; kinds with several holders number their places.
    pub(crate) slot: i64,
}

impl<'a> Key<'a> {
    /// The row of the lock that this claim wants.
    pub(crate) fn of(claim: &'a Claim) -> Self {
        Key {
            namespace: claim.namespace.as_str().as_bytes(),
            family: claim.kind.family(),
            name: claim.name.as_str().as_bytes(),
            slot: 0,
        }
    }
}

/// What a claim writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimRow<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) claim: ClaimId,
    pub(crate) lease_us: i64,
    pub(crate) min_token: i64,
    pub(crate) host: &'a str,
    pub(crate) pid: u32,
    pub(crate) label: Option<&'a str>,
}

/// What a row says after a claim was tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimedRow {
    pub(crate) claim: ClaimId,
    pub(crate) token: u64,
    pub(crate) remaining_us: i64,
}

/// Whether a claim was in force until it was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WasInForce {
    Yes,
    No,
}
