//! What a look at a store's settings found: one finding for each rule, with its evidence and its remedy.

use std::{borrow::Cow, fmt, time::Duration};

use crate::Namespace;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing: a limit of this setup, or something that could not be looked at.
    Note,
    /// Endangers locks, or will stop them from working.
    Warning,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Good => "good",
            Level::Note => "note",
            Level::Warning => "warning",
        })
    }
}

/// What one rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule: a short name that stays the same, such as `clock`.
    pub rule: Cow<'static, str>,
    /// How much it matters.
    pub level: Level,
    /// What was seen, with its value. Never a password.
    pub evidence: String,
    /// What to do about it; always there for a warning.
    pub remedy: Option<String>,
}

impl Finding {
    /// All is well with this rule.
    pub fn good(rule: impl Into<Cow<'static, str>>, evidence: impl Into<String>) -> Self {
        Finding { rule: rule.into(), level: Level::Good, evidence: evidence.into(), remedy: None }
    }

    /// Something that users should know.
    pub fn note(rule: impl Into<Cow<'static, str>>, evidence: impl Into<String>) -> Self {
        Finding { rule: rule.into(), level: Level::Note, evidence: evidence.into(), remedy: None }
    }

    /// Something that endangers locks, and what to do about it.
    pub fn warning(rule: impl Into<Cow<'static, str>>, evidence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { rule: rule.into(), level: Level::Warning, evidence: evidence.into(), remedy: Some(remedy.into()) }
    }
}

/// For what use a backend is to judge its store's settings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Usage {
    /// The namespace of the client's locks.
    pub namespace: Namespace,
    /// The lease of the client's locks.
    pub lease: Duration,
}

impl Usage {
    /// Locks of this lease in this namespace.
    #[must_use]
    pub fn new(namespace: Namespace, lease: Duration) -> Self {
        Usage { namespace, lease }
    }
}
