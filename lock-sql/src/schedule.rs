//! When idle rows are looked for, and the place in the order of rows that a sweep has come to.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often idle rows are looked for, by one of the processes that use a table.
const PERIOD: Duration = Duration::from_secs(3600);
pub(crate) const PERIOD_US: i64 = 3600 * 1_000_000;

/// How long a row is kept for its token alone.
pub(crate) const RETENTION_US: i64 = 24 * 3600 * 1_000_000;

/// When this process looks next.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    next: Mutex<Option<Instant>>,
}

impl Schedule {
    /// Sets the next time: now, or after a period.
    pub(crate) fn set(&self, due: bool) {
        let next = if due { Instant::now() } else { Instant::now() + PERIOD };
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    }

    /// Whether the time has come. Only the first caller after it is told so.
    pub(crate) fn is_due(&self) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = next.is_some_and(|at| at <= now);
        if due {
            *next = Some(now + PERIOD);
        }
        due
    }
}

/// A place in the order of rows.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) namespace: Vec<u8>,
    pub(crate) family: String,
    pub(crate) name: Vec<u8>,
    pub(crate) slot: i64,
}

impl Place {
    pub(crate) fn before_all() -> Self {
        Place { namespace: Vec::new(), family: String::new(), name: Vec::new(), slot: i64::MIN }
    }

    /// No namespace is UTF-8 and begins with this byte.
    pub(crate) fn after_all() -> Self {
        Place { namespace: vec![0xFF], family: String::new(), name: Vec::new(), slot: i64::MIN }
    }
}
