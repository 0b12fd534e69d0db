//! The meter of a build with the feature `metrics`: it counts through the recorder that the program has installed.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use metrics::{Counter, Gauge, Histogram, Label, Unit};

use super::{
    Acquired, Called, CleanedUp, Ended, MetricGroup, Outcome, Renewed,
    labels::Labels,
    oldest::{Oldest, Open},
};
use crate::options::Options;

/// What one client counts. Its instruments are looked up once, when the client is made; only where locks are told apart
/// by their names, those of a group are looked up at each use.
pub(crate) struct Meter {
    group: MetricGroup,
    acquisitions: Family<Counter, Acquired>,
    wait: Family<Histogram, Acquired>,
    holds: Family<Histogram, Ended>,
    losses: Family<Counter, Ended>,
    renewals: Family<Counter, Renewed>,
    clean_ups: Family<Counter, CleanedUp>,
    calls: Vec<Family<Histogram, Outcome>>,
    waiters: Gauge,
    guards: Gauge,
    pending: Gauge,
    oldest: Arc<Oldest>,
}

impl Meter {
    pub(crate) fn new(store: &str, options: &Options) -> Self {
        describe();
        let (namespace, group) = (options.namespace.as_str(), options.metric_group);
        let common = vec![Label::new("store", store.to_owned()), Label::new("namespace", namespace.to_owned())];
        // Where there are groups, a series without one would say nothing.
        let whole = group == MetricGroup::None;
        let (ways, ends, losses) = if whole { (Acquired::ALL, Ended::ALL, Ended::LOSSES) } else { Default::default() };
        Meter {
            group,
            acquisitions: Family::new("leasehold_acquisitions_total", "outcome", &common, ways),
            wait: Family::new("leasehold_wait_seconds", "outcome", &common, ways),
            holds: Family::new("leasehold_hold_seconds", "end", &common, ends),
            losses: Family::new("leasehold_losses_total", "reason", &common, losses),
            renewals: Family::new("leasehold_renewals_total", "outcome", &common, Renewed::ALL),
            clean_ups: Family::new("leasehold_cleanups_total", "outcome", &common, CleanedUp::ALL),
            calls: Called::ALL
                .iter()
                .map(|call| {
                    let labels = [common.as_slice(), &[Label::new("call", call.label())]].concat();
                    Family::new("leasehold_call_seconds", "outcome", &labels, Outcome::ALL)
                })
                .collect(),
            waiters: Gauge::made("leasehold_waiters", common.clone()),
            guards: Gauge::made("leasehold_open_guards", common.clone()),
            pending: Gauge::made("leasehold_pending_cleanups", common.clone()),
            oldest: Oldest::new(store, namespace, Gauge::made("leasehold_oldest_hold_timestamp_seconds", common)),
        }
    }

    pub(crate) fn acquisition_begins(&self) {
        self.waiters.increment(1.0);
    }

    pub(crate) fn acquisition_ends(&self, name: &str, outcome: Acquired, waited: impl FnOnce() -> Duration) {
        self.waiters.decrement(1.0);
        let group = self.group.of(name);
        self.acquisitions.of(outcome, group).increment(1);
        self.wait.of(outcome, group).record(waited());
    }

    pub(crate) fn guard_opens(&self) {
        self.guards.increment(1.0);
    }

    pub(crate) fn guard_closes(&self) {
        self.guards.decrement(1.0);
    }

    /// A hold begins, and lasts until what this returns is dropped.
    pub(crate) fn hold_begins(&self, id: u64) -> Open {
        self.oldest.opens(id)
    }

    pub(crate) fn hold_ends(&self, name: &str, how: Ended, held: impl FnOnce() -> Duration) {
        let group = self.group.of(name);
        self.holds.of(how, group).record(held());
        if how.is_loss() {
            self.losses.of(how, group).increment(1);
        }
    }

    pub(crate) fn renewed(&self, outcome: Renewed) {
        self.renewals.of(outcome, None).increment(1);
    }

    /// A claim is to be cleaned up.
    pub(crate) fn clean_up_due(&self) {
        self.pending.increment(1.0);
    }

    /// So many claims are cleaned up, or nobody is left to do it.
    pub(crate) fn clean_ups_over(&self, count: usize) {
        self.pending.decrement(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    }

    /// One attempt to clean up has ended.
    pub(crate) fn cleaned_up(&self, outcome: CleanedUp) {
        self.clean_ups.of(outcome, None).increment(1);
    }

    pub(crate) fn called(&self, what: Called, outcome: Outcome, took: impl FnOnce() -> Duration) {
        self.calls[what.index()].of(outcome, None).record(took());
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("group", &self.group).finish_non_exhaustive()
    }
}

/// One instrument for each value of a label.
struct Family<I, L> {
    name: &'static str,
    key: &'static str,
    common: Vec<Label>,
    ready: Vec<Option<I>>,
    values: std::marker::PhantomData<fn(L)>,
}

impl<I: Instrument, L: Labels> Family<I, L> {
    /// Looks up the instruments of these values, so that each series is there before its first event.
    fn new(name: &'static str, key: &'static str, common: &[Label], values: &[L]) -> Self {
        let mut family = Family {
            name,
            key,
            common: common.to_vec(),
            ready: L::ALL.iter().map(|_| None).collect(),
            values: std::marker::PhantomData,
        };
        for value in values {
            family.ready[value.index()] = Some(family.made(*value, None));
        }
        family
    }

    fn of(&self, value: L, group: Option<&str>) -> Cow<'_, I> {
        match (&self.ready[value.index()], group) {
            (Some(ready), None) => Cow::Borrowed(ready),
            _ => Cow::Owned(self.made(value, group)),
        }
    }

    fn made(&self, value: L, group: Option<&str>) -> I {
        let mut labels = self.common.clone();
        labels.push(Label::new(self.key, value.label()));
        labels.extend(group.map(|group| Label::new("group", group.to_owned())));
        I::made(self.name, labels)
    }
}

/// An instrument of the recorder.
trait Instrument: Clone {
    fn made(name: &'static str, labels: Vec<Label>) -> Self;
}

impl Instrument for Counter {
    fn made(name: &'static str, labels: Vec<Label>) -> Self {
        metrics::counter!(name, labels)
    }
}

impl Instrument for Gauge {
    fn made(name: &'static str, labels: Vec<Label>) -> Self {
        metrics::gauge!(name, labels)
    }
}

impl Instrument for Histogram {
    fn made(name: &'static str, labels: Vec<Label>) -> Self {
        metrics::histogram!(name, labels)
    }
}

/// Tells the recorder what each name means, for those who read its output.
fn describe() {
    metrics::describe_counter!("leasehold_acquisitions_total", Unit::Count, "Acquisitions that ended, by how.");
    metrics::describe_histogram!("leasehold_wait_seconds", Unit::Seconds, "From asking for a lock to the answer.");
    metrics::describe_histogram!("leasehold_hold_seconds", Unit::Seconds, "From the grant of a lock to its end.");
    metrics::describe_counter!("leasehold_losses_total", Unit::Count, "Locks that were lost while held, by why.");
    metrics::describe_counter!("leasehold_renewals_total", Unit::Count, "Renewals of held locks, by outcome.");
    metrics::describe_counter!(
        "leasehold_cleanups_total",
        Unit::Count,
        "Attempts to remove a claim in the background."
    );
    metrics::describe_histogram!("leasehold_call_seconds", Unit::Seconds, "Calls to the store, by kind and outcome.");
    metrics::describe_gauge!("leasehold_waiters", Unit::Count, "Acquisitions under way.");
    metrics::describe_gauge!("leasehold_open_guards", Unit::Count, "Guards that are neither released nor dropped.");
    metrics::describe_gauge!(
        "leasehold_oldest_hold_timestamp_seconds",
        Unit::Seconds,
        "When the oldest lock that is held now was granted, since 1970; 0 while none is held."
    );
    metrics::describe_gauge!("leasehold_pending_cleanups", Unit::Count, "Claims that wait to be removed.");
}
