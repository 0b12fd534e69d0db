//! From core's vocabulary to a database's: microseconds, signed tokens, and ranges of names as bytes.

use std::time::Duration;

use lock_core::{BackendError, Capabilities, FencingToken, LockKind, Pattern, Selector};

/// A lease in microseconds, in whole steps and at least the shortest that the store gives (L15).
///
/// # Errors
///
/// `Refused` above the longest. Core refuses it before; this is for those who call a backend themselves.
pub(crate) fn lease_us(lease: Duration, limits: &Capabilities) -> Result<i64, BackendError> {
    if lease > limits.lease_max {
        return Err(BackendError::refused(format!(
            "lease of {lease:?} is above the longest that {} gives, {:?}",
            limits.store, limits.lease_max
        )));
    }
    let step_us = limits.lease_step.as_micros().max(1);
    let lease_us = lease.max(limits.lease_min).as_micros().div_ceil(step_us) * step_us;
    // The longest lease is far below what 64 bits hold.
    Ok(i64::try_from(lease_us).unwrap_or(i64::MAX))
}

/// What is left of a lease; nothing where it has run out.
pub(crate) fn duration(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or(0))
}

/// A token as a database's signed integer.
///
/// # Errors
///
/// `Refused` above 2^63 - 1, which no column can hold.
pub(crate) fn token_i64(token: FencingToken) -> Result<i64, BackendError> {
    i64::try_from(token.get()).map_err(|_| {
        BackendError::refused(format!("fencing token {token} is above {}, the largest of an SQL row", i64::MAX))
    })
}

/// The names from `first` up to and without `end`, both compared as bytes.
///
/// Ranges need no pattern language, so that a prefix is literal whatever characters it has, and the primary key finds
/// them without reading other rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameRange<'a> {
    pub(crate) namespace: &'a [u8],
    pub(crate) kind: LockKind,
    pub(crate) first: &'a [u8],
    pub(crate) end: Vec<u8>,
}

impl<'a> NameRange<'a> {
    /// The names that a selector shows.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a pattern that came after this backend.
    pub(crate) fn of(selector: &'a Selector, kind: LockKind) -> Result<Self, BackendError> {
        let namespace = selector.namespace().as_str().as_bytes();
        match selector.pattern() {
            Pattern::Name(name) => Ok(NameRange::one(namespace, kind, name.as_bytes())),
            Pattern::Prefix(prefix) => {
                Ok(NameRange { namespace, kind, first: prefix.as_bytes(), end: after_prefix(prefix.as_bytes()) })
            }
            other => Err(BackendError::new(
                lock_core::BackendErrorKind::Unsupported,
                format!("the SQL backends cannot select names by {other:?}"),
            )),
        }
    }

    /// One name.
    pub(crate) fn one(namespace: &'a [u8], kind: LockKind, name: &'a [u8]) -> Self {
        // The next byte string after any other is that one with a zero byte behind it.
        let end = [name, &[0]].concat();
        NameRange { namespace, kind, first: name, end }
    }
}

/// The 64-bit FNV-1a hash of several byte strings, the same in every process and version: what is told by one and heard
/// by another has its name from it. Their lengths are hashed as well, so that no two lists look like one.
#[cfg(feature = "postgres")]
pub(crate) fn fnv1a(parts: &[&[u8]]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    parts.iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| {
        let hash = part.len().to_le_bytes().iter().fold(hash, step);
        part.iter().fold(hash, step)
    })
}

/// The first byte string after all those that begin with `prefix`.
fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    match end.last_mut() {
        // UTF-8 has no byte above 0xF4, so that the sum never overflows.
        Some(last) => *last = last.saturating_add(1),
        // And so this is after every name.
        None => end.push(0xFF),
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(selector: &Selector, name: &str) -> bool {
        let range = NameRange::of(selector, LockKind::Exclusive).expect("both patterns are known");
        range.first <= name.as_bytes() && name.as_bytes() < range.end.as_slice()
    }

    #[test]
    fn a_range_has_exactly_the_names_that_its_selector_matches() {
        let texts =
            ["", "a", "a%", "a_", "a\u{0}", "aa", "ab", "b", "é", "e\u{301}", "\u{10FFFF}", "\u{7F}", "注", "注文"];
        for pattern in texts {
            for name in texts.iter().filter(|name| !name.is_empty()) {
                for selector in [Selector::prefix(pattern), Selector::name(pattern)] {
                    assert_eq!(shows(&selector, name), selector.matches(name), "{selector:?} {name:?}");
                }
            }
        }
    }

    #[test]
    fn leases_are_rounded_up_and_bounded() {
        let limits = Capabilities::new("test");
        let lease = |lease| lease_us(lease, &limits);
        assert_eq!(lease(Duration::from_millis(1)).expect("short"), 50_000);
        assert_eq!(lease(Duration::from_micros(60_001)).expect("odd"), 61_000);
        let error = lease(Duration::MAX).expect_err("too long");
        assert!(error.to_string().contains("31536000s"), "{error}");
    }

    #[test]
    fn a_token_that_no_column_can_hold_is_refused() {
        assert_eq!(token_i64(FencingToken::new(7)).expect("small"), 7);
        assert!(token_i64(FencingToken::new(u64::MAX)).is_err());
    }
}
