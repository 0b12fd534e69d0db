//! The fencing token: the number that lets a resource refuse a late holder (L13).

use std::fmt;

/// A number that strictly increases from one grant of a name to the next (L13).
///
/// Hand it to the resource that the lock protects and let the resource refuse a token that is smaller than the largest
/// it has seen. That stops a holder that was paused past its lease, which no lock alone can do (M. Kleppmann, *How to
/// do distributed locking*, 2016).
///
/// Tokens of one name compare within one store's lifetime. They stay the same across `extend` and re-entry.
///
/// ```
/// use lock_core::FencingToken;
/// assert!(FencingToken::new(7) < FencingToken::new(8));
/// assert_eq!(FencingToken::new(8).to_string(), "8");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Below every token that a store gives.
    pub const ZERO: FencingToken = FencingToken(0);

    /// A token with this value.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        FencingToken(value)
    }

    /// The value, for the resource to compare.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This token raised by `base`, never past the end of the range.
    #[must_use]
    pub const fn raised_by(self, base: u64) -> Self {
        FencingToken(self.0.saturating_add(base))
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for FencingToken {
    fn from(value: u64) -> Self {
        FencingToken(value)
    }
}
