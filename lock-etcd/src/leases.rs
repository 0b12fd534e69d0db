//! Leases: whole seconds, ids that derive from claims, and the idle ones that later claims may take.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lock_core::{BackendError, Capabilities, ClaimId};

/// How many idle leases of one length are kept. More would only be revoked by the end of their time.
const IDLE_LIMIT: usize = 64;

/// A lease as far as this client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) id: i64,
    /// Its whole length, in seconds; what a keep-alive sets it back to.
    pub(crate) ttl_s: i64,
    /// By core's clock: before the request left that made it or last kept it alive.
    pub(crate) refreshed_at: Duration,
}

impl Lease {
    pub(crate) fn length(&self) -> Duration {
        seconds(self.ttl_s)
    }

    /// What the cluster keeps of it at least.
    pub(crate) fn remaining(&self, now: Duration) -> Duration {
        self.refreshed_at.saturating_add(self.length()).saturating_sub(now)
    }
}

/// A length in etcd's unit.
pub(crate) fn seconds(ttl_s: i64) -> Duration {
    Duration::from_secs(u64::try_from(ttl_s).unwrap_or(0))
}

/// A lease's length in whole seconds, rounded up, at least the shortest that the cluster gives (L15).
///
/// # Errors
///
/// `Refused` above the longest. Core refuses it before; this is for those who call a backend themselves.
pub(crate) fn ttl_s(lease: Duration, limits: &Capabilities) -> Result<i64, BackendError> {
    if lease > limits.lease_max {
        return Err(BackendError::refused(format!(
            "lease of {lease:?} is above the longest that etcd gives, {:?}",
            limits.lease_max
        )));
    }
    let nanos = lease.max(limits.lease_min).as_nanos();
    // The longest lease is far below what 64 bits hold.
    Ok(i64::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(i64::MAX))
}

/// The id of the n-th lease that a claim asks for: known before the request, so that a lost answer can be revoked.
pub(crate) fn lease_id(claim: ClaimId, n: u32) -> i64 {
    let bits = claim.as_u128();
    let high = u64::try_from(bits >> 64).unwrap_or(0);
    let low = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
    // The golden ratio's bits keep the leases of one claim apart. Zero means "choose one" to etcd, and ids are positive.
    let mixed = (high ^ low.rotate_left(17)).wrapping_add(u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    i64::try_from((mixed >> 1).max(1)).unwrap_or(1)
}

/// Leases that no key is bound to and no request may yet bind one to.
#[derive(Debug, Default)]
pub(crate) struct IdleLeases {
    by_ttl: Mutex<HashMap<i64, Vec<Lease>>>,
}

impl IdleLeases {
    /// The one that was used last, if it is likely to live still. Whether it does, the next request on it tells.
    pub(crate) fn take(&self, ttl_s: i64, now: Duration) -> Option<Lease> {
        let mut by_ttl = self.lock();
        let idle = by_ttl.get_mut(&ttl_s)?;
        // The one on top lives longest: behind one that is too old, all are.
        let lease = idle.pop().filter(|lease| lease.remaining(now) > lease.length() / 4);
        if lease.is_none() || idle.is_empty() {
            by_ttl.remove(&ttl_s);
        }
        lease
    }

    /// Keeps an idle lease; false if there are enough.
    pub(crate) fn put(&self, lease: Lease, now: Duration) -> bool {
        let mut by_ttl = self.lock();
        // Other lengths that nobody asks for any more go when their leases have ended.
        by_ttl.retain(|_, idle| {
            idle.retain(|lease| !lease.remaining(now).is_zero());
            !idle.is_empty()
        });
        let idle = by_ttl.entry(lease.ttl_s).or_default();
        let room = idle.len() < IDLE_LIMIT;
        if room {
            idle.push(lease);
        }
        room
    }

    /// All of them, to be revoked.
    pub(crate) fn drain(&self) -> Vec<Lease> {
        self.lock().drain().flat_map(|(_, idle)| idle).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Vec<Lease>>> {
        self.by_ttl.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities;

    #[test]
    fn leases_are_whole_seconds_rounded_up_and_bounded() {
        let limits = capabilities::of_etcd(Some(Duration::from_secs(2)));
        let ttl = |lease| ttl_s(lease, &limits);
        assert_eq!(ttl(Duration::from_millis(1)).expect("short"), 2);
        assert_eq!(ttl(Duration::from_secs(3)).expect("whole"), 3);
        assert_eq!(ttl(Duration::from_millis(3_001)).expect("odd"), 4);
        assert!(ttl(Duration::MAX).expect_err("too long").to_string().contains("31536000s"));
    }

    #[test]
    fn the_leases_of_a_claim_have_ids_of_their_own() {
        let claim = ClaimId::random();
        let ids: std::collections::HashSet<_> = (0..100).map(|n| lease_id(claim, n)).collect();
        assert_eq!(ids.len(), 100);
        assert!(ids.iter().all(|id| *id > 0));
        assert_eq!(lease_id(claim, 3), lease_id(claim, 3));
    }

    #[test]
    fn idle_leases_are_taken_newest_first_and_old_ones_never() {
        let idle = IdleLeases::default();
        let at = |id, seconds| Lease { id, ttl_s: 4, refreshed_at: Duration::from_secs(seconds) };
        assert!(idle.put(at(1, 100), Duration::from_secs(100)));
        assert!(idle.put(at(2, 101), Duration::from_secs(101)));
        assert_eq!(idle.take(5, Duration::from_secs(101)), None, "of another length");
        assert_eq!(idle.take(4, Duration::from_secs(102)).map(|lease| lease.id), Some(2));
        assert_eq!(idle.take(4, Duration::from_secs(103)), None, "it has a quarter left");
        assert!(idle.drain().is_empty());
    }
}
