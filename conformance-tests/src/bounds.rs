//! How long things may take, derived from what the store promises and from what a busy machine adds.

use std::time::Duration;

use lock_core::{Capabilities, Wakes};

/// What a loaded machine with two processors may add to anything, at worst.
pub(crate) const NOISE: Duration = Duration::from_secs(2);

/// Time bounds on one store. Upper bounds are generous where the contract leaves room, exact where it does not.
#[derive(Clone, Debug)]
pub struct Bounds {
    capabilities: Capabilities,
}

impl Bounds {
    /// The bounds that a store with these capabilities is held to.
    #[must_use]
    pub fn of(capabilities: &Capabilities) -> Self {
        Bounds { capabilities: capabilities.clone() }
    }

    /// A lease whose end a case waits for: as short as the store and a busy machine allow.
    #[must_use]
    pub fn short(&self) -> Duration {
        self.granted(Duration::from_millis(600))
    }

    /// A lease that must be kept by renewals on a busy machine: a renewal that comes a second late may not lose it.
    #[must_use]
    pub fn renewed(&self) -> Duration {
        self.granted(Duration::from_millis(1_500))
    }

    /// A lease that outlives a case that never waits for its end.
    #[must_use]
    pub fn long(&self) -> Duration {
        self.granted(Duration::from_secs(30))
    }

    /// What the store gives to who asks for this lease (L15).
    #[must_use]
    pub fn granted(&self, wish: Duration) -> Duration {
        let step = self.capabilities.lease_step.as_nanos().max(1);
        let shortest = self.capabilities.lease_min.max(Duration::from_millis(50));
        let nanos = wish.max(shortest).as_nanos().div_ceil(step).saturating_mul(step);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(self.capabilities.lease_max)
    }

    /// Until when a waiter must have a lock that was released: the store's push, or the next poll.
    #[must_use]
    pub fn hand_over(&self) -> Duration {
        NOISE + if self.capabilities.wakes == Wakes::Push { Duration::ZERO } else { Duration::from_millis(500) }
    }

    /// Until when a waiter must have a lock whose holder died with this lease just granted (L16).
    #[must_use]
    pub fn take_over(&self, lease: Duration) -> Duration {
        lease + self.capabilities.crash_slack + self.hand_over()
    }

    /// Until when a holder must know of a claim removed by hand (L8): the store's hint, or the next renewal.
    #[must_use]
    pub fn loss_told(&self, lease: Duration) -> Duration {
        lease / 3 + lease / 6 + NOISE
    }

    /// Until when what a living client left at a store that answers must be gone (L10).
    #[must_use]
    pub fn prompt(&self) -> Duration {
        NOISE + Duration::from_secs(1)
    }
}
