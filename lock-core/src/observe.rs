//! What an acquisition and its hold tell to those who watch: metrics, and spans in the caller's trace.

use std::{sync::Arc, time::Duration};

use tracing::{Span, debug, field, info_span, warn};

use crate::{
    Error, LockGuard, LockName,
    hold::{Hold, Seen},
    meter::{Acquired, Ended, Labels as _},
    shared::Shared,
};

/// An acquisition under way, as it is seen from outside. Dropped before its end it was cancelled.
pub(crate) struct Sighting {
    shared: Arc<Shared>,
    name: Option<LockName>,
    started_at: Duration,
    span: Span,
    outcome: Acquired,
}

impl Sighting {
    /// To be made inside the first poll: its span is a child of the caller's.
    pub(crate) fn begin(shared: &Arc<Shared>, name: &Result<LockName, Error>) -> Self {
        let name = name.as_ref().ok().cloned();
        let span = info_span!(
            "lock.acquire",
            lock.name = name.as_ref().map_or("", LockName::as_str),
            lock.namespace = shared.options.namespace.as_str(),
            lock.store = &*shared.capabilities.store,
            lock.outcome = field::Empty,
            lock.token = field::Empty,
        );
        shared.meter.acquisition_begins();
        let (shared, started_at) = (Arc::clone(shared), shared.clock.now());
        Sighting { shared, name, started_at, span, outcome: Acquired::Cancelled }
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// The acquisition has ended by itself.
    pub(crate) fn ends(
        mut self,
        result: Result<Option<(LockGuard, Acquired)>, Error>,
    ) -> Result<Option<LockGuard>, Error> {
        self.outcome = match &result {
            Ok(Some((_, how))) => *how,
            Ok(None) => Acquired::Busy,
            Err(error) => Acquired::of_error(error.kind()),
        };
        if let Ok(Some((guard, _))) = &result {
            self.span.record("lock.token", guard.fencing_token().get());
        }
        result.map(|granted| granted.map(|(guard, _)| guard))
    }
}

impl Drop for Sighting {
    fn drop(&mut self) {
        self.span.record("lock.outcome", self.outcome.label());
        let name = self.name.as_ref().map_or("", LockName::as_str);
        let waited = || self.shared.clock.now().saturating_sub(self.started_at);
        self.shared.meter.acquisition_ends(name, self.outcome, waited);
    }
}

/// A hold begins: a span that lasts to its end, beside the acquisition's in the caller's trace, so that a trace shows
/// what was done under the lock.
pub(crate) fn hold_begins(shared: &Shared, hold: &Hold, caller: &Span) {
    let span = info_span!(
        parent: caller,
        "lock.hold",
        lock.name = hold.fate.claim.name.as_str(),
        lock.namespace = shared.options.namespace.as_str(),
        lock.store = &*shared.capabilities.store,
        lock.token = hold.token.get(),
        lock.end = field::Empty,
    );
    hold.show(Seen { span, _open: shared.meter.hold_begins(hold.id) });
}

/// A hold has ended. Only the first end that is told counts: a lost hold is released later, for one.
pub(crate) fn hold_ends(shared: &Shared, hold: &Hold, how: Ended) {
    let Some(Seen { span, .. }) = hold.hide() else { return };
    span.record("lock.end", how.label());
    let (name, token) = (&hold.fate.claim.name, hold.token);
    match how {
        Ended::Expired | Ended::Gone | Ended::MaxHold => {
            span.in_scope(|| warn!(%name, %token, reason = how.label(), "lock lost"));
        }
        Ended::Closed => span.in_scope(|| debug!(%name, %token, "lock lost with its client, which was closed")),
        _ => {}
    }
    let held = || shared.clock.now().saturating_sub(hold.granted_at);
    shared.meter.hold_ends(name.as_str(), how, held);
}
