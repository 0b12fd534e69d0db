//! Until when an acquisition waits, and what it says when that has come: still held, or no answer (L9).

use std::time::Duration;

use super::{Acquisition, Mode};
use crate::{BackendError, Error, ErrorKind, line::Standing};

impl Acquisition<'_> {
    /// Until when this acquisition waits for a store that does not answer (L9).
    pub(super) fn patience(&self) -> Duration {
        let standing = self.standing();
        let request_timeout = self.request.request_timeout;
        match (self.limit, standing.answered_at) {
            _ if self.once => self.started_at.saturating_add(request_timeout),
            (limit, None) => {
                // A head that has not asked yet says nothing of the store.
                let asking = standing.asking_since.map(|since| since.max(self.started_at));
                let first = asking.map_or(Duration::MAX, |since| since.saturating_add(request_timeout));
                first.min(limit.unwrap_or(Duration::MAX))
            }
            (Some(limit), Some(_)) => limit,
            (None, Some(_)) => standing
                .asking_since
                .map_or(Duration::MAX, |since| since.saturating_add(self.request.lease.max(request_timeout))),
        }
    }

    /// When to ask once more before the limit, so that the last answer is fresh enough to say "timed out".
    pub(super) fn last_look(&self) -> Option<Duration> {
        self.limit.map(|limit| limit.saturating_sub(self.request.request_timeout / 2))
    }

    /// An error once the limit has passed, for one that has asked at least once.
    pub(super) fn check_limit(&self, now: Duration) -> Result<(), Error> {
        match self.limit {
            Some(limit) if limit <= now && self.standing().answered_at.is_some() => Err(self.at_limit(self.standing())),
            _ => Ok(()),
        }
    }

    pub(super) fn at_patience(&self) -> Error {
        let limit_came = self.limit.is_some_and(|limit| limit <= self.shared.clock.now());
        if limit_came { self.at_limit(self.standing()) } else { self.unanswered(None) }
    }

    /// The limit has come: whether the lock was held or the store silent is told apart (L9).
    pub(super) fn at_limit(&self, standing: Standing) -> Error {
        let now = self.shared.clock.now();
        let fresh = standing.answered_at.is_some_and(|at| now.saturating_sub(at) <= self.request.request_timeout);
        if fresh { self.timed_out() } else { self.unanswered(None) }
    }

    fn timed_out(&self) -> Error {
        let holder = self.held_by.as_deref().map(|holder| format!(" by {holder}")).unwrap_or_default();
        let waited = self.request.wait.unwrap_or_default();
        Error::new(ErrorKind::TimedOut, format!("lock {:?} was still held{holder} after {waited:?}", self.request.name))
    }

    pub(super) fn unanswered(&self, error: Option<BackendError>) -> Error {
        let waited = self.shared.clock.now().saturating_sub(self.started_at);
        let name = &self.request.name;
        let store = &self.shared.capabilities.store;
        let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let message =
            format!("{store} gave no answer for lock {name:?} in {waited:?}{why}; what it may have done is cleaned up");
        let told = Error::new(ErrorKind::Unavailable, message);
        match error {
            Some(error) => told.with_source(error),
            None => told,
        }
    }

    pub(super) fn busy<T>(&self) -> Result<Option<T>, Error> {
        if self.mode == Mode::Try { Ok(None) } else { Err(self.timed_out()) }
    }
}
