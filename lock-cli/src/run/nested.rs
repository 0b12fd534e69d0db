//! Which locks the enclosing runs hold: handed down in one variable, so that a run never waits for itself.

use std::ffi::{OsStr, OsString};

use leasehold::{ClaimId, LockRecord};
use sha2::{Digest as _, Sha256};

/// The variable that carries the digests, parted by `:`, the outermost first.
pub(super) const VARIABLE: &str = "LEASEHOLD_HELD";

/// What is known of the enclosing runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Enclosing(OsString);

impl Enclosing {
    /// What the environment says. Foreign text in it matches nothing.
    pub(super) fn from_environment() -> Self {
        Enclosing(std::env::var_os(VARIABLE).unwrap_or_default())
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them holds a claim that these records show.
    pub(super) fn hold_one_of(&self, store: &str, records: &[LockRecord]) -> bool {
        let held = self.0.to_string_lossy();
        records.iter().any(|record| {
            let digests = record.holders.iter().map(|h| digest(store, &record.namespace, &record.name, h.claim));
            digests.into_iter().any(|digest| held.split(':').any(|one| one == digest))
        })
    }

    /// The variable's value for a CMD that runs under one more claim.
    pub(super) fn with(&self, digest: &str) -> OsString {
        let mut value = self.0.clone();
        if !value.is_empty() {
            value.push(":");
        }
        value.push(OsStr::new(digest));
        value
    }
}

/// The digest of one claim: SHA-256 over store, namespace, name and claim id, each behind its length.
///
/// `store` is the kind of store and not its URL: one database has many URLs, and the claim id, which is random, already
/// says which database it was. A digest tells nothing of a name to those who read the environment.
pub(super) fn digest(store: &str, namespace: &str, name: &str, claim: ClaimId) -> String {
    let mut hash = Sha256::new();
    for part in [store, namespace, name, &claim.to_string()] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let claim = ClaimId::from_u128(1);
        let of = |store, namespace, name, claim| digest(store, namespace, name, claim);
        let one = of("sqlite", "a", "b", claim);
        assert_eq!(one, of("sqlite", "a", "b", claim));
        for other in [
            of("redis", "a", "b", claim),
            of("sqlite", "", "b", claim),
            of("sqlite", "a", "c", claim),
            of("sqlite", "ab", "", claim),
            of("sqlite", "a", "b", ClaimId::from_u128(2)),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn the_list_grows_inwards() {
        let outer = Enclosing::default();
        assert!(outer.is_empty());
        let inner = Enclosing(Enclosing(outer.with("x")).with("y"));
        assert_eq!(inner.0, "x:y");
    }
}
