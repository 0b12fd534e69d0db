//! A client's settings, checked once when it is built, and the rules that turn a wish into a request (L15).

use std::time::Duration;

use crate::{Capabilities, Error, ErrorKind, Namespace};

/// No lease is shorter than this, whatever the store could do.
pub(crate) const SHORTEST_LEASE: Duration = Duration::from_millis(50);

/// A client's settings.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) namespace: Namespace,
    pub(crate) lease: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) poll_min: Duration,
    pub(crate) poll_max: Duration,
    pub(crate) safety_poll: Duration,
    pub(crate) fence_base: u64,
    pub(crate) cleanup_limit: usize,
    #[cfg(feature = "metrics")]
    pub(crate) metric_group: crate::MetricGroup,
}

impl Options {
    /// How long one call may take that is made for a lock with this lease.
    pub(crate) fn request_timeout(&self, lease: Duration) -> Duration {
        self.request_timeout.unwrap_or_else(|| (lease / 3).min(Duration::from_secs(5)))
    }
}

/// The lease that a store gives for a wish: refused where zero or too long, rounded up where too short or uneven (L15).
pub(crate) fn fit_lease(wish: Duration, capabilities: &Capabilities) -> Result<Duration, Error> {
    let shortest = capabilities.lease_min.max(SHORTEST_LEASE);
    if wish.is_zero() || wish > capabilities.lease_max {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "lease {wish:?} is out of range: {} takes more than zero (rounded up to at least {shortest:?}) and at most {:?}",
                capabilities.store, capabilities.lease_max
            ),
        ));
    }
    Ok(round_up(wish.max(shortest), capabilities.lease_step).min(capabilities.lease_max))
}

fn round_up(wish: Duration, step: Duration) -> Duration {
    let step = step.as_nanos().max(1);
    let nanos = wish.as_nanos().div_ceil(step).saturating_mul(step);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_uneven_leases_are_rounded_up() {
        let mut store = Capabilities::new("test");
        store.lease_min = Duration::from_secs(2);
        store.lease_step = Duration::from_secs(1);
        assert_eq!(fit_lease(Duration::from_millis(1), &store).ok(), Some(Duration::from_secs(2)));
        assert_eq!(fit_lease(Duration::from_millis(2_001), &store).ok(), Some(Duration::from_secs(3)));
        assert_eq!(fit_lease(store.lease_max, &store).ok(), Some(store.lease_max));
    }

    #[test]
    fn zero_and_too_long_leases_are_refused_with_the_range() {
        let store = Capabilities::new("test");
        for wish in [Duration::ZERO, store.lease_max + Duration::from_nanos(1), Duration::MAX] {
            let error = fit_lease(wish, &store).expect_err("out of range");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&format!("{wish:?}")), "{error}");
        }
    }
}
