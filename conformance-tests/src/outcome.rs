//! How a case ends: proved, failed at a clause, or not runnable on this store.

use std::{fmt, panic::Location};

use crate::Blind;

/// What a case returns.
pub type Outcome<T = ()> = Result<T, Stop>;

/// Why a case stopped before it had proved what it cites.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The contract does not hold.
    Failed(Failure),
    /// The store cannot run the case, for this reason. Never counted as proved.
    Skipped(String),
}

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The clause that was seen to be broken; None where a step failed that only led up to it.
    pub clause: Option<&'static str>,
    /// What was seen.
    pub message: String,
    /// Where in the suite.
    pub at: &'static Location<'static>,
}

impl Stop {
    /// A failure of this clause, seen at the caller's line.
    #[must_use]
    #[track_caller]
    pub fn failed(clause: &'static str, message: impl Into<String>) -> Self {
        Stop::Failed(Failure { clause: Some(clause), message: message.into(), at: Location::caller() })
    }

    /// A failure on the way to what the case proves.
    #[must_use]
    #[track_caller]
    pub fn broken(message: impl Into<String>) -> Self {
        Stop::Failed(Failure { clause: None, message: message.into(), at: Location::caller() })
    }

    /// The store cannot run this case.
    #[must_use]
    pub fn skipped(reason: impl Into<String>) -> Self {
        Stop::Skipped(reason.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(clause) = self.clause.and_then(crate::contract::find) {
            writeln!(f, "{}: {}", clause.id, clause.title)?;
        }
        write!(f, "{}\n  at {}", self.message, self.at)
    }
}

impl From<lock_core::Error> for Stop {
    #[track_caller]
    fn from(error: lock_core::Error) -> Self {
        Stop::broken(format!("unexpected error {:?}: {error}", error.kind()))
    }
}

impl From<lock_core::BackendError> for Stop {
    #[track_caller]
    fn from(error: lock_core::BackendError) -> Self {
        Stop::broken(format!("unexpected error of the backend: {error}"))
    }
}

impl From<std::io::Error> for Stop {
    #[track_caller]
    fn from(error: std::io::Error) -> Self {
        Stop::broken(format!("unexpected I/O error: {error}"))
    }
}

impl From<tokio::task::JoinError> for Stop {
    #[track_caller]
    fn from(error: tokio::task::JoinError) -> Self {
        Stop::broken(format!("a task of the case did not end well: {error}"))
    }
}

impl From<Blind> for Stop {
    #[track_caller]
    fn from(blind: Blind) -> Self {
        match blind {
            Blind::Unsupported(what) => Stop::skipped(format!("the fixture's oracle cannot {what}")),
            Blind::Failed(message) => Stop::broken(format!("the oracle failed: {message}")),
        }
    }
}

/// Fails the case at a clause unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($clause:expr, $condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Stop::failed($clause, format!($($message)+)));
        }
    };
}

/// Fails the case at a clause unless two values are equal.
#[macro_export]
macro_rules! ensure_eq {
    ($clause:expr, $left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => if *left != *right {
                let message = format!($($message)+);
                return Err($crate::Stop::failed($clause, format!("{message}: {left:?}, expected {right:?}")));
            }
        }
    };
}
