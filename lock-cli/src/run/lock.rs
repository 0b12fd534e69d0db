//! The lock that CMD runs under, as the watch over CMD sees it.

use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::{Clock as _, LockGuard, LossReason, SystemClock};

use super::{held::Watched, watch::Hold};

/// A guard, and until when it was valid when last looked at.
#[derive(Debug)]
pub(super) struct Lock {
    guard: LockGuard,
    valid_until: Duration,
    gone: bool,
}

impl Lock {
    pub(super) fn new(guard: LockGuard) -> Self {
        Lock { guard, valid_until: Duration::ZERO, gone: false }
    }

    /// The guard, to be released.
    pub(super) fn into_guard(self) -> LockGuard {
        self.guard
    }
}

impl Watched for Lock {
    fn look(&mut self) -> Hold {
        // The clock is read first, so that `valid_until` is never later than the real deadline.
        let now = SystemClock.now();
        let remaining = self.guard.remaining();
        if !remaining.is_zero() {
            self.valid_until = now.saturating_add(remaining);
            return Hold::Held(remaining);
        }
        // After a stop past the lease the store may say "gone" as well, rightly, and someone else may hold the lock. No
        // grace is due then: the deadline decides, whichever of the two was found out first.
        if !self.gone && now < self.valid_until {
            self.gone = self.guard.lost().now_or_never() == Some(LossReason::Gone);
        }
        if self.gone { Hold::Gone } else { Hold::Expired }
    }
}
