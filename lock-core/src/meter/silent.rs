//! The meter of a build without the feature `metrics`: it counts nothing and costs nothing.

use std::time::Duration;

use super::{Acquired, Called, CleanedUp, Ended, Outcome, Renewed};
use crate::options::Options;

/// Counts nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter;

/// A hold that is not counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open;

impl Meter {
    pub(crate) fn new(_store: &str, _options: &Options) -> Self {
        Meter
    }

    pub(crate) fn acquisition_begins(self) {}

    pub(crate) fn acquisition_ends(self, _name: &str, _outcome: Acquired, _waited: impl FnOnce() -> Duration) {}

    pub(crate) fn guard_opens(self) {}

    pub(crate) fn guard_closes(self) {}

    pub(crate) fn hold_begins(self, _id: u64) -> Open {
        Open
    }

    pub(crate) fn hold_ends(self, _name: &str, _how: Ended, _held: impl FnOnce() -> Duration) {}

    pub(crate) fn renewed(self, _outcome: Renewed) {}

    pub(crate) fn clean_up_due(self) {}

    pub(crate) fn clean_ups_over(self, _count: usize) {}

    pub(crate) fn cleaned_up(self, _outcome: CleanedUp) {}

    pub(crate) fn called(self, _what: Called, _outcome: Outcome, _took: impl FnOnce() -> Duration) {}
}
