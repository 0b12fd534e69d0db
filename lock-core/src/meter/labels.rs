//! The values that labels have: few and fixed, so that the number of time series is bounded.

use crate::{BackendError, ErrorKind, Extension, LossReason, Release};

/// A label whose values are all known.
pub(crate) trait Labels: Copy + 'static {
    /// Every value, in the order of the variants.
    #[cfg(feature = "metrics")]
    const ALL: &'static [Self];

    /// How it is written, in spans as well.
    fn label(self) -> &'static str;

    /// Its place among all.
    #[cfg(feature = "metrics")]
    fn index(self) -> usize;
}

macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $variant:ident => $label:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$note])* $variant),+ }

        impl Labels for $name {
            #[cfg(feature = "metrics")]
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn label(self) -> &'static str {
                match self { $(Self::$variant => $label),+ }
            }

            #[cfg(feature = "metrics")]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

labels! {
    /// How an acquisition ended.
    Acquired {
        Granted => "granted",
        Reentered => "reentered",
        Busy => "busy",
        TimedOut => "timed_out",
        Unavailable => "unavailable",
        /// An owner re-entered a hold that is lost.
        Lost => "lost",
        Closed => "closed",
        /// Out of range, not supported, or refused by the store.
        Refused => "refused",
        /// The caller dropped the future.
        Cancelled => "cancelled",
    }
}

labels! {
    /// How a hold ended.
    Ended {
        Released => "released",
        /// By a release that the store has not confirmed in time.
        Unconfirmed => "unconfirmed",
        /// By a guard that was dropped.
        Dropped => "dropped",
        Expired => "expired",
        Gone => "gone",
        MaxHold => "max_hold",
        Closed => "closed",
    }
}

labels! {
    /// How a renewal ended.
    Renewed {
        Extended => "extended",
        NotHeld => "not_held",
        Failed => "failed",
    }
}

labels! {
    /// How an attempt to clean up ended.
    CleanedUp {
        Removed => "removed",
        Absent => "absent",
        Failed => "failed",
    }
}

labels! {
    /// What the store was asked.
    Called {
        Attempt => "attempt",
        Extend => "extend",
        Release => "release",
        /// Anything that concerns no claim: inspect, check, prepare.
        Ask => "ask",
    }
}

labels! {
    /// What became of a call.
    Outcome {
        Answered => "answered",
        /// No answer, or none that tells whether it was done.
        Unknown => "unknown",
        Refused => "refused",
    }
}

impl Acquired {
    pub(crate) fn of_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::TimedOut => Acquired::TimedOut,
            ErrorKind::Unavailable => Acquired::Unavailable,
            ErrorKind::Lost => Acquired::Lost,
            ErrorKind::Closed => Acquired::Closed,
            _ => Acquired::Refused,
        }
    }
}

impl Ended {
    pub(crate) fn lost(reason: LossReason) -> Self {
        match reason {
            LossReason::Expired => Ended::Expired,
            LossReason::Gone => Ended::Gone,
            LossReason::MaxHold => Ended::MaxHold,
            LossReason::Closed => Ended::Closed,
        }
    }

    /// The ways that are losses.
    #[cfg(feature = "metrics")]
    pub(crate) const LOSSES: &[Self] = &[Ended::Expired, Ended::Gone, Ended::MaxHold, Ended::Closed];

    /// Whether the hold was lost, and did not end by its guard's leave.
    #[cfg(feature = "metrics")]
    pub(crate) fn is_loss(self) -> bool {
        matches!(self, Ended::Expired | Ended::Gone | Ended::MaxHold | Ended::Closed)
    }
}

impl Renewed {
    pub(crate) fn of(answer: &Result<Extension, BackendError>) -> Self {
        match answer {
            Ok(Extension::Extended(_)) => Renewed::Extended,
            Ok(Extension::NotHeld) => Renewed::NotHeld,
            Err(_) => Renewed::Failed,
        }
    }
}

impl CleanedUp {
    pub(crate) fn of(answer: &Result<Release, BackendError>) -> Self {
        match answer {
            Ok(Release::Removed) => CleanedUp::Removed,
            Ok(Release::Absent) => CleanedUp::Absent,
            Err(_) => CleanedUp::Failed,
        }
    }
}

impl Outcome {
    pub(crate) fn of<T>(result: &Result<T, BackendError>) -> Self {
        match result {
            Ok(_) => Outcome::Answered,
            Err(error) if error.is_unknown() => Outcome::Unknown,
            Err(_) => Outcome::Refused,
        }
    }
}
