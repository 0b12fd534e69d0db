//! A mutex that shrugs at poisoning: every critical section here leaves its data whole at each step.

use std::fmt;

#[cfg(not(leasehold_model))]
use std::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

#[cfg(leasehold_model)]
use shuttle::sync::{Mutex, MutexGuard};

/// A [`Mutex`] whose lock cannot fail. Never held over an await.
#[derive(Default)]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Guarded(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while somebody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
