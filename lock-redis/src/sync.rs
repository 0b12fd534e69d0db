//! A mutex that shrugs at poisoning: every critical section here leaves its data whole at each step.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A [`Mutex`] whose lock cannot fail. Never held over an await.
#[derive(Debug, Default)]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
