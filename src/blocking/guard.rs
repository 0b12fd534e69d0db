//! A held lock, for a thread.

use std::{fmt, sync::Arc, time::Duration};

use lock_core::{ClaimId, Error, FencingToken, LockGuard, LossReason};

use super::client::Inner;

/// A held lock. It is renewed by the client's thread until it is released, dropped or lost.
///
/// Dropping it releases in the background. It keeps its client alive.
#[must_use = "dropping a guard releases its lock"]
pub struct Guard {
    /// Shared with the client's thread while a call of this guard is under way, and with nobody between calls. Dropped
    /// before what keeps the client alive.
    guard: Arc<LockGuard>,
    inner: Arc<Inner>,
}

impl Guard {
    pub(super) fn new(guard: LockGuard, inner: Arc<Inner>) -> Self {
        Guard { guard: Arc::new(guard), inner }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// The number that lets a resource refuse a late holder. The same for the whole hold.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.guard.fencing_token()
    }

    /// The claim's identity in the store, as `inspect` shows it.
    #[must_use]
    pub fn claim_id(&self) -> ClaimId {
        self.guard.claim_id()
    }

    /// How many guards of the same owner stand for this hold, this one included.
    #[must_use]
    pub fn hold_count(&self) -> u32 {
        self.guard.hold_count()
    }

    /// Whether the lock is still held, by a clock read now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// How long the hold is still valid without another renewal, by a clock read now; zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Blocks until the lock is lost, at most this long. None: it was not lost until then.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> Result<(), leasehold::Error> {
    /// let client = leasehold::blocking::connect("memory:")?;
    /// let guard = client.lock("x").acquire()?;
    /// assert_eq!(guard.wait_lost(Duration::from_millis(10)), None);
    /// client.break_lock("x", None)?;
    /// assert!(guard.wait_lost(Duration::from_secs(10)).is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn wait_lost(&self, limit: Duration) -> Option<LossReason> {
        let lost = self.guard.lost();
        let waited = self.inner.wait(async move { tokio::time::timeout(limit, lost).await.ok() });
        waited.unwrap_or(None)
    }

    /// Lengthens the hold to at least `by` from now; never shortens it.
    ///
    /// # Errors
    ///
    /// Those of [`LockGuard::extend`].
    pub fn extend(&self, by: Duration) -> Result<(), Error> {
        let guard = Arc::clone(&self.guard);
        self.inner.wait(async move {
            let extended = guard.extend(by).await;
            // Before the answer is there: whoever releases next must find the guard its own.
            drop(guard);
            extended
        })?
    }

    /// Releases the lock: of several guards of one owner, the last one does.
    ///
    /// # Errors
    ///
    /// Those of [`LockGuard::release`].
    pub fn release(self) -> Result<(), Error> {
        let Guard { guard, inner } = self;
        match Arc::into_inner(guard) {
            Some(guard) => inner.wait(guard.release())?,
            // No call of this guard is under way, since they all borrow it.
            None => unreachable!("a guard is shared only during a call"),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
