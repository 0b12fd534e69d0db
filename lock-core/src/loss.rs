//! Why a hold ended before its release (L8).

use std::fmt;

/// Why a guard was lost. Told once, and final (L4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// The lease ran out without a renewal that was confirmed in time, or it was not to be renewed.
    Expired,
    /// The store says that the claim is gone: deleted, overwritten, broken, or its session ended.
    Gone,
    /// `max_hold` has passed.
    MaxHold,
    /// The client was closed.
    Closed,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LossReason::Expired => "its lease ran out",
            LossReason::Gone => "the store no longer has its claim",
            LossReason::MaxHold => "it was held for max_hold",
            LossReason::Closed => "its client was closed",
        })
    }
}
