//! How claims are written as keys: `leasehold/NAMESPACE/FAMILY/NAME/CLAIM`, each part encoded, so that none has a `/`.

use lock_core::{
    Claim, ClaimId, FencingToken, Holder, HolderInfo, LockKind, LockName, Namespace, Pattern, Selector, decode_name,
    encode_name,
};
use serde::{Deserialize, Serialize};

/// All keys of one lock: they begin with `start` and are before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockKeys {
    pub(crate) start: String,
    pub(crate) end: String,
}

impl LockKeys {
    /// The keys of the lock that is claimed.
    ///
    /// The last `/` is part of the start, so that a name never meets one that it is a prefix of (L14), and an empty
    /// namespace leaves two of them in a row, which no other namespace can.
    pub(crate) fn of(claim: &Claim) -> Self {
        let start = format!("{}{}/", kind_prefix(&claim.namespace, claim.kind), claim.name.encoded());
        let end = after(&start);
        LockKeys { start, end }
    }

    /// The key of one claim.
    pub(crate) fn claim(&self, id: ClaimId) -> String {
        format!("{}{id}", self.start)
    }

    /// The claim that a key below `start` stands for; None for a foreign key.
    pub(crate) fn claim_of(&self, key: &[u8]) -> Option<ClaimId> {
        std::str::from_utf8(key).ok()?.strip_prefix(&self.start)?.parse().ok()
    }
}

fn kind_prefix(namespace: &Namespace, kind: LockKind) -> String {
    format!("leasehold/{}/{}/", namespace.encoded(), kind.family())
}

/// The first text after all those that begin with this one, which ends in a character below 0x7F.
fn after(prefix: &str) -> String {
    let mut end = prefix.to_owned();
    let last = end.pop().unwrap_or('/');
    end.push(char::from(u8::try_from(last).unwrap_or(b'/') + 1));
    end
}

/// The keys of all locks that a selector may show.
#[derive(Clone, Debug)]
pub(crate) struct SelectedKeys {
    pub(crate) start: String,
    pub(crate) end: Vec<u8>,
    prefix: String,
}

impl SelectedKeys {
    /// The keys of one kind of lock that a selector shows; None for a pattern that came after this backend.
    pub(crate) fn of(selector: &Selector, kind: LockKind) -> Option<Self> {
        let prefix = kind_prefix(selector.namespace(), kind);
        let start = match selector.pattern() {
            Pattern::Name(name) => format!("{prefix}{}/", encode_name(name)),
            // The encoding of a prefix is a prefix of the encoding.
            Pattern::Prefix(begin) => format!("{prefix}{}", encode_name(begin)),
            _ => return None,
        };
        let mut end = start.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            // UTF-8 has no byte above 0xF4, so that the sum never overflows.
            *last = last.saturating_add(1);
        }
        Some(SelectedKeys { start, end, prefix })
    }

    /// The lock and the claim that a key stands for; None for a foreign key.
    pub(crate) fn parse(&self, key: &[u8]) -> Option<(LockName, ClaimId)> {
        let (name, id) = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?.split_once('/')?;
        Some((LockName::new(&decode_name(name)?).ok()?, id.parse().ok()?))
    }
}

/// What a claim's key holds, for people: nothing is decided by it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Value<'a> {
    host: std::borrow::Cow<'a, str>,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<std::borrow::Cow<'a, str>>,
}

/// The value of a claim's key.
pub(crate) fn value_of(info: &HolderInfo) -> Vec<u8> {
    let label = info.label.as_deref().map(Into::into);
    let value = Value { host: info.host.as_str().into(), pid: info.pid, label };
    // Texts and a number can always be written.
    serde_json::to_vec(&value).unwrap_or_default()
}

/// The holder that a claim's key tells of. A value that is not ours tells less, and stands for a holder all the same.
pub(crate) fn holder_of(claim: ClaimId, revision: i64, value: &[u8]) -> Holder {
    let value: Value<'_> = serde_json::from_slice(value).unwrap_or_default();
    let info = HolderInfo {
        host: value.host.into_owned(),
        pid: value.pid,
        label: value.label.map(|label| label.into_owned()),
    };
    Holder::new(claim, token_of(revision), &info)
}

/// The token of a claim: the revision that created its key, which the cluster never gives twice (L13).
pub(crate) fn token_of(revision: i64) -> FencingToken {
    FencingToken::new(revision.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use lock_core::Intent;

    use super::*;

    fn keys(namespace: &str, name: &str) -> LockKeys {
        LockKeys::of(&Claim {
            namespace: Namespace::new(namespace).expect("a namespace"),
            name: LockName::new(name).expect("a name"),
            kind: LockKind::Exclusive,
            id: ClaimId::from_u128(1),
            intent: Intent::Try,
            lease: Duration::from_secs(1),
            holder: Arc::new(HolderInfo::default()),
            min_token: FencingToken::ZERO,
        })
    }

    fn meet(a: &LockKeys, b: &LockKeys) -> bool {
        a.start < b.end && b.start < a.end
    }

    #[test]
    fn the_keys_of_two_locks_never_meet() {
        let texts = ["foo", "foo/", "foo/x", "foo0", "fo", "lock", "/", "a b", "é"];
        let namespaces = ["", "lock", "foo", "foo/", "lock/foo"];
        let all: Vec<_> =
            namespaces.iter().flat_map(|namespace| texts.iter().map(move |name| keys(namespace, name))).collect();
        for (i, one) in all.iter().enumerate() {
            for (j, other) in all.iter().enumerate() {
                assert_eq!(meet(one, other), i == j, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_claim_is_read_from_its_key_and_foreign_keys_are_not() {
        let keys = keys("", "foo/x");
        let id = ClaimId::random();
        assert_eq!(keys.claim(id), format!("leasehold//lock/foo%2Fx/{id}"));
        assert_eq!(keys.claim_of(keys.claim(id).as_bytes()), Some(id));
        for foreign in ["", "x", "00", "/00000000000000000000000000000001"] {
            assert_eq!(keys.claim_of(format!("{}{foreign}", keys.start).as_bytes()), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_selector_reads_names_back() {
        let selector = Selector::prefix("foo/");
        let selected = SelectedKeys::of(&selector, LockKind::Exclusive).expect("a known pattern");
        let id = ClaimId::from_u128(7);
        let key = keys("", "foo/x").claim(id);
        assert!(selected.start.as_bytes() <= key.as_bytes() && key.as_bytes() < selected.end.as_slice());
        let (name, claim) = selected.parse(key.as_bytes()).expect("one of ours");
        assert_eq!((name.as_str(), claim), ("foo/x", id));
        assert!(selected.parse(b"leasehold//lock/foo%2fx/00000000000000000000000000000007").is_none());
    }

    #[test]
    fn a_value_tells_of_its_holder_and_a_foreign_one_is_a_holder_all_the_same() {
        let info = HolderInfo { host: "h\"1".to_owned(), pid: 7, label: Some("nightly".to_owned()) };
        let holder = holder_of(ClaimId::from_u128(1), 9, &value_of(&info));
        assert_eq!((holder.host.as_str(), holder.pid, holder.label.as_deref()), ("h\"1", 7, Some("nightly")));
        assert_eq!(holder.token.get(), 9);
        assert_eq!(holder_of(ClaimId::from_u128(1), 9, b"\xFF").pid, 0);
    }
}
