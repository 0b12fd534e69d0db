//! The claim: one attempt to hold one lock, under an id of its own (L4).

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use uuid::Uuid;

use crate::{FencingToken, HolderInfo, LockKind, LockName, Namespace};

/// One attempt to hold one lock. Every acquisition has its own, and it is never used for a second one (L4).
#[derive(Clone, Debug)]
pub struct Claim {
    /// Where the name lives; namespaces do not meet (L17).
    pub namespace: Namespace,
    /// The lock.
    pub name: LockName,
    /// What sort of lock.
    pub kind: LockKind,
    /// This claim's identity. A store decides by it, and by nothing else, whether a record is ours.
    pub id: ClaimId,
    /// Whether a place in the store's queue is wanted.
    pub intent: Intent,
    /// How long a grant is to last, counted by the store from when it applies the attempt.
    pub lease: Duration,
    /// Who asks, for people who look into the store.
    pub holder: Arc<HolderInfo>,
    /// The grant's token must not be below this; zero except where a quorum raises it.
    pub min_token: FencingToken,
}

/// What an attempt does when the lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Nothing: no place in a queue, no subscription (L9).
    Try,
    /// A store with a queue keeps the claim's place, and the answer arms its wake-up.
    Wait,
}

/// A claim's identity: 128 random bits, written as 32 lowercase hexadecimal digits.
///
/// The fixed length lets a store compare it as a prefix of a longer value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(u128);

impl ClaimId {
    /// How many characters an id has when written.
    pub const LEN: usize = 32;

    /// A new id, from the operating system's randomness.
    #[must_use]
    pub fn random() -> Self {
        ClaimId(Uuid::new_v4().as_u128())
    }

    /// The id as a number, for stores that keep it in binary.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// The id that has this number.
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        ClaimId(bits)
    }
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimId({self})")
    }
}

/// A text that is not a claim id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseClaimIdError {
    len: usize,
}

impl fmt::Display for ParseClaimIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a claim id: {} bytes given, 32 lowercase hexadecimal digits expected", self.len)
    }
}

impl std::error::Error for ParseClaimIdError {}

impl FromStr for ClaimId {
    type Err = ParseClaimIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = ParseClaimIdError { len: text.len() };
        let digits = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != Self::LEN || !digits {
            return Err(malformed);
        }
        u128::from_str_radix(text, 16).map(ClaimId).map_err(|_| malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_written() {
        let id = ClaimId::random();
        assert_eq!(id.to_string().len(), ClaimId::LEN);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(ClaimId::from_u128(1).to_string().parse(), Ok(ClaimId::from_u128(1)));
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in ["", "1", "+0000000000000000000000000000001", "A0000000000000000000000000000000"] {
            assert!(text.parse::<ClaimId>().is_err(), "{text:?}");
        }
    }
}
