//! A lock by name, whose acquisition blocks.

use std::{fmt, sync::Arc, time::Duration};

use lock_core::{Error, ErrorKind, Owner, Renew};

use super::{Guard, client::Inner};

/// A lock of a client, with the options for acquiring it. Cheap to make and to clone; makes no I/O.
#[derive(Clone)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    lock: lock_core::Lock,
    inner: Arc<Inner>,
}

impl Lock {
    pub(super) fn new(lock: lock_core::Lock, inner: Arc<Inner>) -> Self {
        Lock { lock, inner }
    }

    fn with(self, change: impl FnOnce(lock_core::Lock) -> lock_core::Lock) -> Self {
        Lock { lock: change(self.lock), inner: self.inner }
    }

    /// How long a grant lasts unless it is renewed; see [`leasehold::Lock::lease`](crate::Lock::lease).
    pub fn lease(self, lease: Duration) -> Self {
        self.with(|lock| lock.lease(lease))
    }

    /// How long `acquire` waits; None is without limit. A wait of zero is one attempt.
    pub fn wait(self, wait: impl Into<Option<Duration>>) -> Self {
        self.with(|lock| lock.wait(wait))
    }

    /// Whether the hold is renewed by itself.
    pub fn renew(self, renew: Renew) -> Self {
        self.with(|lock| lock.renew(renew))
    }

    /// Ends the hold this long after its request was sent; see [`leasehold::Lock::max_hold`](crate::Lock::max_hold).
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.with(|lock| lock.max_hold(max_hold))
    }

    /// Keeps the hold for at least this long; see [`leasehold::Lock::min_hold`](crate::Lock::min_hold).
    pub fn min_hold(self, min_hold: Duration) -> Self {
        self.with(|lock| lock.min_hold(min_hold))
    }

    /// Acquires for this owner, who may re-enter. There is no ambient owner for threads.
    pub fn owner(self, owner: &Owner) -> Self {
        self.with(|lock| lock.owner(owner))
    }

    /// What people who look into the store shall read beside this hold; at most 256 bytes.
    pub fn label(self, label: impl AsRef<str>) -> Self {
        self.with(|lock| lock.label(label))
    }

    /// The name, as given; empty for one that is out of range.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Acquires the lock, blocking as long as `wait` says.
    ///
    /// # Errors
    ///
    /// Those of [`leasehold::Lock::acquire`](crate::Lock::acquire).
    pub fn acquire(&self) -> Result<Guard, Error> {
        let guard = self.inner.wait(self.lock.acquire())??;
        Ok(Guard::new(guard, Arc::clone(&self.inner)))
    }

    /// Makes one attempt. None: someone holds the lock.
    ///
    /// # Errors
    ///
    /// Those of [`leasehold::Lock::try_acquire`](crate::Lock::try_acquire).
    pub fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        let guard = self.inner.wait(self.lock.try_acquire())??;
        Ok(guard.map(|guard| Guard::new(guard, Arc::clone(&self.inner))))
    }

    /// Acquires, runs `body` and releases. A thread cannot be stopped from outside: a body that takes long should look at
    /// [`Guard::is_held`], and what it writes should carry the fencing token.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Lock::acquire); `Lost` when the lock was lost before the body ended, although the body has run to
    /// its end. A release that is merely not confirmed is no error.
    ///
    /// # Panics
    ///
    /// When the body does; the lock is released then.
    pub fn run<T>(&self, body: impl FnOnce(&Guard) -> T) -> Result<T, Error> {
        let guard = self.acquire()?;
        let output = body(&guard);
        match guard.release() {
            Err(error) if error.kind() != ErrorKind::Unavailable => Err(error),
            _ => Ok(output),
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}
