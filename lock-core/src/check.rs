//! A look at the store before it is trusted: how far away it is, what its clock says, and what its settings mean.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    Backend, BackendError, Error, ErrorKind, Finding, LockClient, Selector, Usage, call::no_answer, shared::Shared,
    timer::sleep_until,
};

/// How often the round trip is measured; the median counts.
const ROUND_TRIPS: usize = 5;

/// What `check` found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// How long a question to the store takes: the median of a few.
    pub round_trip: Duration,
    /// What each rule found, core's own rules first.
    pub findings: Vec<Finding>,
}

impl LockClient {
    /// Reaches the store, measures the round trip and its clock, and tells which of its settings endanger locks.
    ///
    /// It looks and changes nothing: a good answer is no promise that locks can be taken, which rights may forbid.
    ///
    /// # Errors
    ///
    /// `Closed`; `Unavailable` when the store does not answer within the request timeout; `Backend` when it refuses.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing, so it may be dropped at any time.
    pub async fn check(&self) -> Result<Report, Error> {
        let shared = self.shared();
        let round_trip = round_trip(shared).await?;
        let usage = Usage::new(shared.options.namespace.clone(), shared.options.lease);
        let mut findings = vec![rule_round_trip(round_trip, shared.options.lease), rule_lease(shared)];
        let asked_at = SystemTime::now();
        let there = ask(shared, |backend| async move { backend.wall_clock().await }).await?;
        findings.push(rule_clock(asked_at, there, SystemTime::now()));
        findings.extend(ask(shared, move |backend| async move { backend.check(&usage).await }).await?);
        Ok(Report { round_trip, findings })
    }

    /// Creates what the store needs before locks can be taken, such as a table, and tells in words what it created:
    /// nothing where all was there. Without it each store does so by itself when it is first used, if it may.
    ///
    /// # Errors
    ///
    /// `Closed`; `Unavailable` when the store does not answer within the request timeout; `Backend` when it refuses,
    /// as for want of rights.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway it may or may not have created something; calling it again completes it.
    pub async fn prepare(&self) -> Result<Vec<String>, Error> {
        ask(self.shared(), |backend| async move { backend.prepare().await }).await
    }
}

/// Asks the backend something beside locking, within the request timeout. The call goes on when its caller has gone.
async fn ask<T, F>(
    shared: &Arc<Shared>,
    question: impl FnOnce(Arc<dyn Backend>) -> F + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, BackendError>> + Send,
{
    shared.check_open()?;
    let limit = shared.request_timeout();
    let until = shared.clock.now().saturating_add(limit);
    let store = &shared.capabilities.store;
    tokio::select! {
        biased;
        answered = shared.question(question) => {
            let result = answered.map_err(|_| no_answer()).and_then(|answered| answered.result);
            result.map_err(|error| Error::from_backend(store, error))
        }
        () = sleep_until(shared, until) => {
            Err(Error::new(ErrorKind::Unavailable, format!("{store} did not answer within {limit:?}")))
        }
    }
}

async fn round_trip(shared: &Arc<Shared>) -> Result<Duration, Error> {
    let mut taken = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let sent_at = shared.clock.now();
        let selector = Selector::name("leasehold check").in_namespace(shared.options.namespace.clone());
        ask(shared, move |backend| async move { backend.inspect(&selector).await }).await?;
        taken.push(shared.clock.now().saturating_sub(sent_at));
    }
    taken.sort_unstable();
    Ok(taken[ROUND_TRIPS / 2])
}

fn rule_round_trip(taken: Duration, lease: Duration) -> Finding {
    const RULE: &str = "round-trip";
    // A renewal is due each third of the lease; one that takes long leaves no time for a second try.
    if taken > lease / 10 {
        let evidence = format!("a question takes {taken:.1?}, more than a tenth of the lease of {lease:?}");
        return Finding::warning(RULE, evidence, format!("use a lease of {:?} or longer", taken * 10));
    }
    Finding::good(RULE, format!("a question takes {taken:.1?}"))
}

fn rule_lease(shared: &Shared) -> Finding {
    const RULE: &str = "lease";
    let (lease, promised) = (shared.options.lease, &shared.capabilities);
    if lease < promised.lease_min {
        let least = promised.lease_min;
        let evidence = format!("the lease of {lease:?} is below what this store gives, and becomes {least:?}");
        return Finding::note(RULE, evidence);
    }
    Finding::good(RULE, format!("a lease of {lease:?}; a lock of a crashed holder is free after that at the latest"))
}

fn rule_clock(asked_at: SystemTime, there: Option<SystemTime>, answered_at: SystemTime) -> Finding {
    const RULE: &str = "clock";
    /// Beyond this, one of the two clocks is not kept by NTP, and will be set one day.
    const MUCH: Duration = Duration::from_secs(1);
    let Some(there) = there else {
        return Finding::good(RULE, "this store's leases do not depend on a wall clock that could be compared");
    };
    let off = |later: SystemTime, earlier: SystemTime| later.duration_since(earlier).unwrap_or_default();
    let (ahead, behind) = (off(there, answered_at), off(asked_at, there));
    let (by, side) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
    if by.is_zero() {
        return Finding::good(RULE, "the store's clock agrees with this host's");
    }
    let evidence = format!("the store's clock is {by:.1?} {side} this host's");
    if by < MUCH {
        return Finding::good(RULE, evidence);
    }
    let remedy = "keep both clocks by NTP; when the store's clock is set, leases end early or late by as much";
    Finding::warning(RULE, evidence, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn a_clock_that_is_off_is_a_warning_and_one_within_the_round_trip_is_none() {
        let now = SystemTime::now();
        let second = Duration::from_secs(1);
        let rule = |there| rule_clock(now, Some(there), now + second);
        assert_eq!(rule(now + second / 2).level, Level::Good);
        let ahead = rule(now + 4 * second);
        assert_eq!(ahead.level, Level::Warning);
        assert!(ahead.evidence.contains("3.0s ahead of"), "{ahead:?}");
        let behind = rule(now - 5 * second);
        assert!(behind.evidence.contains("5.0s behind"), "{behind:?}");
        assert!(behind.remedy.is_some());
    }

    #[test]
    fn a_slow_store_is_a_warning_for_a_short_lease_alone() {
        let taken = Duration::from_millis(200);
        assert_eq!(rule_round_trip(taken, Duration::from_secs(1)).level, Level::Warning);
        assert_eq!(rule_round_trip(taken, Duration::from_secs(30)).level, Level::Good);
    }
}
