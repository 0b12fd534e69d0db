//! What sort of lock a claim is for; its family is part of every key, so that kinds never meet.

use std::fmt;

/// The sort of lock that is claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LockKind {
    /// One holder at a time.
    #[default]
    Exclusive,
}

impl LockKind {
    /// The part of a store's key that keeps this kind's records apart from other kinds of the same name.
    ///
    /// ASCII letters only, so that it needs no encoding anywhere.
    #[must_use]
    pub const fn family(self) -> &'static str {
        match self {
            LockKind::Exclusive => "lock",
        }
    }

    /// The kind whose records have this family, if there is one.
    #[must_use]
    pub fn from_family(family: &str) -> Option<Self> {
        match family {
            "lock" => Some(LockKind::Exclusive),
            _ => None,
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockKind::Exclusive => "exclusive",
        })
    }
}
