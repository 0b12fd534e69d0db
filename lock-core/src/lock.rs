//! A lock by name, with the options of its acquisitions.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use crate::{
    Error, ErrorKind, LockGuard, LockName, Owner,
    acquire::{Mode, acquire},
    request::Wishes,
    shared::Alive,
};

/// Whether a hold is renewed by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renew {
    /// About every third of the lease, from the grant until the release (L7).
    #[default]
    Auto,
    /// Not at all: the hold ends at its lease, on every store, unless it is extended.
    Off,
}

/// A lock of a client, with the options for acquiring it. Cheap to make and to clone; makes no I/O.
#[derive(Clone)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    alive: Arc<Alive>,
    name: Result<LockName, Error>,
    wishes: Wishes,
}

impl Lock {
    pub(crate) fn new(alive: Arc<Alive>, name: Result<LockName, Error>) -> Self {
        Lock { alive, name, wishes: Wishes::default() }
    }

    /// How long a grant lasts unless it is renewed. Shorter than the store can do is rounded up (L15).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.wishes.lease = Some(lease);
        self
    }

    /// How long `acquire` waits; None is without limit. A wait of zero is one attempt (L9).
    pub fn wait(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.wishes.wait = Some(wait.into());
        self
    }

    /// Whether the hold is renewed by itself.
    pub fn renew(mut self, renew: Renew) -> Self {
        self.wishes.renew = renew;
        self
    }

    /// Ends the hold this long after its request was sent, whatever is renewed or extended. The only end of a guard
    /// that is forgotten while its process lives (L7).
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.wishes.max_hold = Some(max_hold);
        self
    }

    /// Keeps the hold for at least this long after its grant: `release` returns only when it has passed, and a dropped
    /// guard goes on holding in the background until then. For scheduled jobs that run on several hosts whose clocks
    /// differ: one that is done at once must not let the next host find the lock free. A holder that is killed falls
    /// back to what is left of its lease.
    pub fn min_hold(mut self, min_hold: Duration) -> Self {
        self.wishes.min_hold = Some(min_hold);
        self
    }

    /// Acquires for this owner, who may re-enter (L12). Without it the ambient owner counts, if there is one.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.wishes.owner = Some(owner.clone());
        self
    }

    /// What people who look into the store shall read beside this hold; at most 256 bytes.
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.wishes.label = Some(Arc::from(label.as_ref()));
        self
    }

    /// The name, as given; empty for one that is out of range.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_ref().map_or("", LockName::as_str)
    }

    /// Acquires the lock, waiting for it as long as `wait` says.
    ///
    /// # Errors
    ///
    /// `TimedOut` when others held it until the limit. `Unavailable` when the store did not answer: within the request
    /// timeout at first, later until the limit, or for a lease where there is none; whatever it did is cleaned up.
    /// `Lost` when an owner re-enters a hold that is lost. `InvalidInput`, `Unsupported`, `Backend`, `Closed`.
    ///
    /// # Cancel safety
    ///
    /// May be dropped or forgotten at any time: the place in the line is given up, and a claim that the store may have
    /// taken is removed in the background (L10).
    pub fn acquire(&self) -> impl Future<Output = Result<LockGuard, Error>> + Send + 'static + use<> {
        let (alive, name, wishes) = (Arc::clone(&self.alive), self.name.clone(), self.wishes.clone());
        // Made where it is awaited: it is large, and need not be moved.
        async move {
            let granted = acquire(alive, name, wishes, Mode::Wait).await?;
            // None is the answer to a try alone.
            granted.ok_or_else(|| Error::new(ErrorKind::TimedOut, "the lock was held"))
        }
    }

    /// Makes one attempt. None: someone holds the lock.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Lock::acquire), except `TimedOut`. An attempt that finds the store unreachable is repeated within
    /// the request timeout, then `Unavailable`.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Lock::acquire).
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<LockGuard>, Error>> + Send + 'static + use<> {
        acquire(Arc::clone(&self.alive), self.name.clone(), self.wishes.clone(), Mode::Try)
    }

    /// Acquires, runs `body` and releases. The body is dropped as soon as the lock is lost.
    ///
    /// ```
    /// # use lock_core::{LockClient, LockGuard, MemoryBackend};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// # let client = LockClient::builder(MemoryBackend::new()).build()?;
    /// let token = client.lock("report").run(async |guard: &LockGuard| guard.fencing_token()).await?;
    /// assert!(token.get() > 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Lock::acquire); `Lost` when the lock was lost before the body ended or was found gone at the
    /// release. A release that is merely not confirmed is no error: the body has run under the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the body and releases the lock in the background.
    pub async fn run<F, T>(&self, body: F) -> Result<T, Error>
    where
        F: AsyncFnOnce(&LockGuard) -> T,
    {
        let guard = self.acquire().await?;
        let output = guard.protect(body(&guard)).await?;
        match guard.release().await {
            Err(error) if error.kind() != ErrorKind::Unavailable => Err(error),
            _ => Ok(output),
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("store", &self.alive.shared.capabilities.store)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
