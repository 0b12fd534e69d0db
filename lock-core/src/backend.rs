//! The trait that a store's backend implements: four atomic things, and nothing else.

use std::{
    fmt::Debug,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;

use crate::{Attempt, BackendError, Capabilities, Claim, Extension, Finding, LockRecord, Release, Selector, Usage};

/// A store that can keep locks.
///
/// A backend does four atomic things: it attempts, extends, releases and inspects. Deadlines, waiting, renewal, loss,
/// cancellation and clean-up are core's, and so the same on every store.
///
/// **What core promises to a backend.** Every future is polled and dropped with the client's tokio runtime entered. A
/// call once begun is driven to its end, whatever its caller does; after twice the request timeout it is given up by
/// dropping its future, and the backend must then discard the connection that it ran on. Attempts under one claim id
/// never run at the same time. So a backend need not be cancel-safe beyond that one drop. A call may be polled by the
/// task of its caller at first, which may stop polling; within 20 ms it is then polled by a task of the client's.
///
/// **What core expects.** No transaction stays open across an await. No call waits for another claim. An answer is
/// never guessed: what may or may not have been applied is an error of kind `Unavailable`.
#[async_trait]
pub trait Backend: Debug + Send + Sync + 'static {
    /// What the store promises. The same at every call.
    fn capabilities(&self) -> &Capabilities;

    /// One attempt to hold a lock. Never waits for it.
    ///
    /// Idempotent by claim id: an attempt that finds its own claim, queued or held, first renews it and then answers as
    /// if it were new. With [`Intent::Wait`](crate::Intent::Wait) a queueing store keeps the claim's place, and
    /// [`Busy::changed`](crate::Busy) is armed before the store is asked.
    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError>;

    /// Lengthens a claim that the store still holds to the longer of what remains and `lease`, atomically (L6).
    ///
    /// Never creates a claim and never shortens one.
    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError>;

    /// Removes every trace of a claim: held, queued, or of unknown outcome (L5). Idempotent.
    ///
    /// Only the claim's id, kind, namespace and name decide; the rest may be made up, as when a lock is broken.
    async fn release(&self, claim: &Claim) -> Result<Release, BackendError>;

    /// Who holds and who waits, for people. Records kept only for their token are left out.
    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError>;

    /// What the store's settings mean for locks of this usage: one finding for each rule, good ones too. It looks and
    /// changes nothing. What it may not look at is a [`Note`](crate::Level::Note) of that rule and no error.
    ///
    /// Core adds the rules that are the same on every store: the round trip, the lease, the clock.
    async fn check(&self, _usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        Ok(Vec::new())
    }

    /// The wall clock that the store's leases or tokens go by; None where they do not.
    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        Ok(None)
    }

    /// Creates what the store needs before locks can be taken, and answers what it created, in words for people.
    /// Idempotent. What is created by itself on first use is created here too.
    async fn prepare(&self) -> Result<Vec<String>, BackendError> {
        Ok(Vec::new())
    }

    /// Ends connections and sessions. Nothing is called after it.
    async fn close(&self);
}

#[async_trait]
impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        (**self).attempt(claim).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        (**self).extend(claim, lease).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        (**self).release(claim).await
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        (**self).inspect(selector).await
    }

    async fn check(&self, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        (**self).check(usage).await
    }

    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        (**self).wall_clock().await
    }

    async fn prepare(&self) -> Result<Vec<String>, BackendError> {
        (**self).prepare().await
    }

    async fn close(&self) {
        (**self).close().await;
    }
}
