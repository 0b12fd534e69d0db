//! How long a grant may be trusted: the arithmetic of L3, with nothing else in the way.

use std::time::Duration;

use crate::LossReason;

/// What a lease of this length must leave unused: core's own margin or the store's, whichever is larger (L3).
pub(crate) fn margin(lease: Duration, store: Duration) -> Duration {
    (lease / 100).saturating_add(Duration::from_millis(2)).max(store)
}

/// The two deadlines of a hold. All moments are read from the client's clock.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    /// The store's word: the last confirmed request's sending, plus what was granted, minus the margin.
    trust_until: Duration,
    /// The end of a hold that is not renewed. Only an explicit extend moves it.
    off_until: Option<Duration>,
    /// The end that `max_hold` sets. Nothing moves it.
    max_until: Option<Duration>,
}

impl Deadlines {
    pub(crate) fn new(
        sent_at: Duration,
        granted: Duration,
        store_margin: Duration,
        renewed: bool,
        max_hold: Option<Duration>,
    ) -> Self {
        let end = sent_at.saturating_add(granted);
        Deadlines {
            trust_until: end.saturating_sub(margin(granted, store_margin)),
            off_until: (!renewed).then_some(end),
            max_until: max_hold.map(|hold| sent_at.saturating_add(hold)),
        }
    }

    /// The store confirmed that it keeps the claim for `kept` from `sent_at`. Never shortens: the store does not (L6).
    pub(crate) fn confirm(&mut self, sent_at: Duration, kept: Duration, store_margin: Duration) {
        let until = sent_at.saturating_add(kept).saturating_sub(margin(kept, store_margin));
        self.trust_until = self.trust_until.max(until);
    }

    /// The user extended by `by` with a request sent at `sent_at`.
    pub(crate) fn extend(&mut self, sent_at: Duration, by: Duration) {
        if let Some(off_until) = &mut self.off_until {
            *off_until = (*off_until).max(sent_at.saturating_add(by));
        }
    }

    /// The moment from which the guard is not valid.
    pub(crate) fn end(&self) -> Duration {
        let off = self.off_until.unwrap_or(Duration::MAX);
        let max = self.max_until.unwrap_or(Duration::MAX);
        self.trust_until.min(off).min(max)
    }

    /// The end that `max_hold` sets, if it does.
    pub(crate) fn max_until(&self) -> Option<Duration> {
        self.max_until
    }

    /// Why the guard is not valid at the end.
    pub(crate) fn reason(&self) -> LossReason {
        if self.max_until.is_some_and(|max| max <= self.end()) { LossReason::MaxHold } else { LossReason::Expired }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn trust_counts_from_sending_and_leaves_the_margin() {
        let deadlines = Deadlines::new(ms(1_000), ms(30_000), Duration::ZERO, true, None);
        assert_eq!(deadlines.end(), ms(1_000 + 30_000 - 302));
        assert_eq!(deadlines.reason(), LossReason::Expired);
    }

    #[test]
    fn a_hold_without_renewal_ends_at_its_lease_whatever_the_store_confirms() {
        let mut deadlines = Deadlines::new(ms(0), ms(1_000), Duration::ZERO, false, None);
        deadlines.confirm(ms(900), ms(60_000), Duration::ZERO);
        assert_eq!(deadlines.end(), ms(1_000));
        deadlines.extend(ms(900), ms(500));
        assert_eq!(deadlines.end(), ms(1_400));
        deadlines.extend(ms(950), ms(10));
        assert_eq!(deadlines.end(), ms(1_400), "an extend never shortens");
    }

    #[test]
    fn nothing_moves_max_hold() {
        let mut deadlines = Deadlines::new(ms(0), ms(1_000), Duration::ZERO, true, Some(ms(1_500)));
        deadlines.confirm(ms(900), ms(60_000), Duration::ZERO);
        deadlines.extend(ms(900), ms(60_000));
        assert_eq!(deadlines.end(), ms(1_500));
        assert_eq!(deadlines.reason(), LossReason::MaxHold);
    }

    proptest! {
        #[test]
        fn the_end_never_passes_what_some_confirmation_allows(
            grant in 50_u64..100_000,
            confirmations in prop::collection::vec((0_u64..100_000, 50_u64..100_000), 0..8),
            store in 0_u64..50,
        ) {
            let mut deadlines = Deadlines::new(ms(0), ms(grant), ms(store), true, None);
            let mut furthest = ms(grant);
            for (sent_at, kept) in confirmations {
                let before = deadlines.end();
                deadlines.confirm(ms(sent_at), ms(kept), ms(store));
                prop_assert!(deadlines.end() >= before, "a confirmation never shortens");
                furthest = furthest.max(ms(sent_at) + ms(kept));
            }
            prop_assert!(deadlines.end() + ms(2).max(ms(store)) <= furthest);
        }

        #[test]
        fn no_length_overflows(sent in any::<u64>(), lease in any::<u64>(), by in any::<u64>()) {
            let mut deadlines = Deadlines::new(Duration::from_secs(sent), Duration::from_secs(lease),
                Duration::ZERO, false, Some(Duration::from_secs(by)));
            deadlines.confirm(Duration::from_secs(sent), Duration::from_secs(by), Duration::MAX);
            deadlines.extend(Duration::from_secs(sent), Duration::from_secs(by));
            let _ = (deadlines.end(), deadlines.reason());
        }
    }
}
