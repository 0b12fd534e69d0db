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

#[cfg(test)]
mod tests {
    use std::thread;

    use leasehold::{LockClient, MemoryBackend};

    use super::*;

    const LEASE: Duration = Duration::from_millis(300);

    /// A held lock whose claim is then removed, with the runtime that its renewals run on.
    fn taken_away() -> (tokio::runtime::Runtime, LockClient, Lock) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (client, lock) = runtime.block_on(async {
            let client = LockClient::builder(MemoryBackend::new()).build().expect("a client");
            let mut lock = Lock::new(client.lock("a").lease(LEASE).acquire().await.expect("a free lock"));
            assert!(matches!(lock.look(), Hold::Held(_)));
            client.break_lock("a", None).await.expect("broken");
            (client, lock)
        });
        (runtime, client, lock)
    }

    #[test]
    fn a_claim_that_is_gone_stays_gone_past_its_deadline() {
        let (_runtime, _client, mut lock) = taken_away();
        let until = lock.valid_until;
        while matches!(lock.look(), Hold::Held(_)) {
            thread::yield_now();
        }
        assert_eq!(lock.look(), Hold::Gone, "told before the deadline");
        while SystemClock.now() < until {
            thread::yield_now();
        }
        assert_eq!(lock.look(), Hold::Gone, "so that CMD has its grace");
    }

    #[test]
    fn who_looks_only_after_the_deadline_finds_the_lock_expired() {
        let (_runtime, _client, mut lock) = taken_away();
        // As if the process had been stopped: the store has said "gone" in time, but nobody looked.
        while SystemClock.now() < lock.valid_until {
            thread::yield_now();
        }
        assert_eq!(lock.look(), Hold::Expired);
    }
}
