//! The keys and the channel of a lock, and the way back from a key to a name (L14, L17).

use lock_core::{Claim, LockKind, LockName, Namespace, Pattern, Selector, decode_name, encode_name};

/// What all keys and channels of this crate begin with.
const PREFIX: &str = "leasehold/";

/// The keys of one lock.
///
/// Encoded names have neither `/` nor braces, so that no two locks meet, whatever is in their names, also where the
/// namespace is empty. What is in braces decides a key's slot in a cluster: it is the same for both keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) claim: String,
    pub(crate) fence: String,
}

impl Keys {
    pub(crate) fn of(claim: &Claim) -> Self {
        Keys::new(&claim.namespace, claim.kind, claim.name.encoded())
    }

    pub(crate) fn new(namespace: &Namespace, kind: LockKind, encoded: &str) -> Self {
        let claim = [&start(namespace, kind), encoded, "}"].concat();
        let fence = [claim.as_str(), "/fence"].concat();
        Keys { claim, fence }
    }

    /// The channel on which a release is told. Channels are not parted by database, so the database is in its name.
    pub(crate) fn channel(&self, database: u32) -> String {
        format!("{}/free/{database}", self.claim)
    }
}

fn start(namespace: &Namespace, kind: LockKind) -> String {
    [PREFIX, "{", namespace.encoded(), "/", kind.family(), "/"].concat()
}

/// Where `inspect` looks for claims of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this key alone.
    Key(String),
    /// At all keys that match this pattern.
    Pattern(String),
    /// Nowhere: no lock can have such a name.
    Nowhere,
    /// By a pattern that came after this crate.
    Unknown,
}

impl Place {
    pub(crate) fn of(selector: &Selector, kind: LockKind) -> Self {
        let namespace = selector.namespace();
        match selector.pattern() {
            Pattern::Name(name) => match LockName::new(name) {
                Ok(name) => Place::Key(Keys::new(namespace, kind, name.encoded()).claim),
                Err(_) => Place::Nowhere,
            },
            // The encoding leaves nothing that a pattern would take for more than itself.
            Pattern::Prefix(prefix) => {
                Place::Pattern([&start(namespace, kind), encode_name(prefix).as_str(), "*}"].concat())
            }
            _ => Place::Unknown,
        }
    }
}

/// The name whose claim is at this key; None for a key that is not ours.
pub(crate) fn name_of(key: &[u8], namespace: &Namespace, kind: LockKind) -> Option<LockName> {
    let key = std::str::from_utf8(key).ok()?;
    let encoded = key.strip_prefix(&start(namespace, kind))?.strip_suffix('}')?;
    LockName::new(&decode_name(encoded)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(namespace: &str, name: &str) -> Keys {
        let namespace = Namespace::new(namespace).expect("a namespace");
        Keys::new(&namespace, LockKind::Exclusive, LockName::new(name).expect("a name").encoded())
    }

    /// The part of a key that decides its slot: what is between the first brace and the next closing one.
    fn tag(key: &str) -> &str {
        let inner = key.split_once('{').expect("a brace").1;
        inner.split_once('}').expect("a closing brace").0
    }

    #[test]
    fn both_keys_of_a_lock_have_one_slot() {
        for name in ["x", "{a}b", "}", "{}", "a/b"] {
            let keys = keys("shop", name);
            assert_eq!(tag(&keys.claim), tag(&keys.fence), "{keys:?}");
            assert!(!tag(&keys.claim).is_empty());
        }
        assert_eq!(keys("shop", "order:1001").claim, "leasehold/{shop/lock/order:1001}");
    }

    #[test]
    fn no_two_locks_meet() {
        let texts = ["", "a", "lock", "a/lock/b", "lock/a", "/", "}", "{", "}/fence", "x}/fence", "*", "%2F"];
        let mut all = std::collections::HashSet::new();
        for namespace in texts {
            for name in texts.iter().filter(|name| !name.is_empty()) {
                let keys = keys(namespace, name);
                assert!(all.insert(keys.claim.clone()) && all.insert(keys.fence.clone()), "{namespace:?} {name:?}");
                let channels: Vec<_> = [0, 1, 10].map(|database| keys.channel(database)).into();
                assert!(channels.into_iter().all(|channel| all.insert(channel)));
            }
        }
    }

    #[test]
    fn a_key_reads_back_as_its_name_and_others_are_not_ours() {
        let namespace = Namespace::new("n").expect("a namespace");
        let read = |key: &str| name_of(key.as_bytes(), &namespace, LockKind::Exclusive);
        assert_eq!(read(&keys("n", "a/b }").claim).as_ref().map(LockName::as_str), Some("a/b }"));
        let foreign =
            ["leasehold/{n/lock/}", "leasehold/{n/lock/a}/fence", "leasehold/{n/lock/%61}", "leasehold/{m/lock/a}"];
        for key in foreign {
            assert_eq!(read(key), None, "{key}");
        }
        assert_eq!(name_of(b"leasehold/{n/lock/\xFF}", &namespace, LockKind::Exclusive), None);
    }

    #[test]
    fn a_pattern_has_one_star_and_nothing_else_that_is_special() {
        let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | '^');
        for prefix in ["", "a*", "[a-z]", "\\", "^?", "{x"] {
            let Place::Pattern(pattern) = Place::of(&Selector::prefix(prefix), LockKind::Exclusive) else {
                panic!("a pattern for {prefix:?}");
            };
            assert_eq!(pattern.matches(special).collect::<Vec<_>>(), ["*"], "{pattern}");
        }
    }
}
