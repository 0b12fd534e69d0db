//! The one reversible encoding of names, for stores whose keys cannot take every character (L14).

use std::fmt::Write as _;

/// Writes `raw` so that every store's keys can hold it.
///
/// It works character by character, so the encoding of a prefix is a prefix of the encoding. A character that is not
/// plain becomes `%XX` for each of its UTF-8 bytes. The result never has a `/`, so backends may part their keys with it.
///
/// ```
/// use lock_core::{decode_name, encode_name};
/// assert_eq!(encode_name("order:1001"), "order:1001");
/// assert_eq!(encode_name("a/b"), "a%2Fb");
/// assert_eq!(decode_name("a%2Fb").as_deref(), Some("a/b"));
/// ```
#[must_use]
pub fn encode_name(raw: &str) -> String {
    let mut encoded = String::with_capacity(raw.len());
    for c in raw.chars() {
        if is_plain(c) {
            encoded.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

/// Reads what [`encode_name`] wrote; None for a text that it never writes, such as a foreign key.
#[must_use]
pub fn decode_name(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let [high, low, tail @ ..] = tail else { return None };
            bytes.push(hex(*high)? << 4 | hex(*low)?);
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    let raw = String::from_utf8(bytes).ok()?;
    // Only one spelling of each name is ours: `%61` for `a` would give a second key to one lock.
    (encode_name(&raw) == encoded).then_some(raw)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Whether every store takes this character as it is and a person can tell it from others.
fn is_plain(c: char) -> bool {
    match c {
        // `/` parts keys and paths; `.` and `..` are path steps to ZooKeeper; `{}` are Redis hash tags; `*?[]\^` are
        // Redis patterns; quotes and blanks are a nuisance in every tool; `%` is ours.
        '/' | '.' | '{' | '}' | '*' | '?' | '[' | ']' | '\\' | '^' | '"' | '\'' | '`' | '%' => false,
        '!'..='~' => true,
        // ZooKeeper refuses control characters, surrogates (so everything beyond U+FFFF), the private use area and the
        // specials (`PathUtils.validatePath`).
        '\u{0}'..='\u{9F}' | '\u{E000}'..='\u{F8FF}' | '\u{FFF0}'..='\u{10FFFF}' => false,
        // Invisible ones: two names that look alike must not be two locks.
        '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' => false,
        _ => !c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_of_any_script_stay_readable() {
        for name in ["order:1001", "Łódź", "注文", "заказ-7", "e\u{301}"] {
            assert_eq!(encode_name(name), name);
        }
    }

    #[test]
    fn path_steps_patterns_and_blanks_are_escaped() {
        assert_eq!(encode_name(".."), "%2E%2E");
        assert_eq!(encode_name("a "), "a%20");
        assert_eq!(encode_name("{x}*"), "%7Bx%7D%2A");
        assert_eq!(encode_name("\u{1F512}"), "%F0%9F%94%92");
    }

    #[test]
    fn foreign_spellings_are_no_names() {
        for text in ["%", "%2", "%2f", "%61", "a/b", "%FF"] {
            assert_eq!(decode_name(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_reads_back(raw in any::<String>()) {
            prop_assert_eq!(decode_name(&encode_name(&raw)), Some(raw));
        }

        #[test]
        fn the_encoding_of_a_prefix_is_a_prefix(a in any::<String>(), b in any::<String>()) {
            let whole = format!("{a}{b}");
            prop_assert!(encode_name(&whole).starts_with(&encode_name(&a)));
        }

        #[test]
        fn no_store_meets_a_character_it_refuses(raw in any::<String>()) {
            let refused = |c: char| {
                let listed = matches!(c, '/' | '.' | '{' | '}' | '*' | '?' | '\u{E000}'..='\u{F8FF}' | '\u{FFF0}'..);
                listed || c.is_control() || c.is_whitespace()
            };
            prop_assert!(!encode_name(&raw).chars().any(refused));
        }
    }
}
