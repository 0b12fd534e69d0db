//! What the core counts and times: for the `metrics` crate where the feature of that name is on, else for nobody.

mod labels;
#[cfg(feature = "metrics")]
mod oldest;
#[cfg(feature = "metrics")]
mod recorded;
#[cfg(not(feature = "metrics"))]
mod silent;

pub(crate) use labels::{Acquired, Called, CleanedUp, Ended, Labels, Outcome, Renewed};
#[cfg(feature = "metrics")]
pub(crate) use oldest::Open;
#[cfg(feature = "metrics")]
pub(crate) use recorded::Meter;
#[cfg(not(feature = "metrics"))]
pub(crate) use silent::{Meter, Open};

/// Whether what is counted of locks is told apart by their names.
///
/// A name often carries the number of an order or a user; each such number would be a time series of its own, for ever.
/// So nothing is told apart unless it is asked for.
#[cfg(feature = "metrics")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricGroup {
    /// Not at all: there is no label `group`.
    #[default]
    None,
    /// By what comes before the first `:`, such as `order` of `order:1001`; names without one are the group `""`. There
    /// are as many series as there are such words in the code.
    Prefix,
    /// By the whole name. There are as many series as there are names, so it is for services that use few.
    Name,
}

#[cfg(feature = "metrics")]
impl MetricGroup {
    /// The group of a name; None where names are not told apart.
    fn of(self, name: &str) -> Option<&str> {
        match self {
            MetricGroup::None => None,
            MetricGroup::Prefix => Some(name.split_once(':').map_or("", |(prefix, _)| prefix)),
            MetricGroup::Name => Some(name),
        }
    }
}
