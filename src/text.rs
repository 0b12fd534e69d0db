//! Taking a URL apart, and keeping what is secret in it out of every message.

use lock_core::Error;

use crate::scheme::config;

/// A URL in its parts, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) scheme: &'a str,
    /// What is between the scheme and the options.
    pub(crate) place: &'a str,
    pub(crate) query: &'a str,
}

impl<'a> Parts<'a> {
    /// The parts of a URL.
    ///
    /// # Errors
    ///
    /// `Config` for a text without a scheme, or with a fragment.
    pub(crate) fn of(url: &'a str) -> Result<Self, Error> {
        let scheme_ends = |(scheme, _): &(&str, &str)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        };
        let Some((scheme, rest)) = url.split_once(':').filter(scheme_ends) else {
            let shown = without_userinfo(url);
            return Err(config(format!("store {shown:?} is no URL; write it as memory: or sqlite:PATH")));
        };
        if rest.contains('#') {
            return Err(config(format!("store URL {scheme}: has a '#', which ends a URL; write it as %23")));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        Ok(Parts { scheme, place, query })
    }

    /// The options with their values decoded.
    pub(crate) fn options(&self) -> impl Iterator<Item = Result<(String, String), Error>> + use<'a> {
        self.query.split('&').filter(|option| !option.is_empty()).map(|option| {
            // An option that nobody knows may be a misspelt password: its value is in no message.
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let key = decode(key).ok_or_else(|| config(format!("option {key:?} is not percent-encoded UTF-8")))?;
            let value = decode(value).ok_or_else(|| {
                config(format!("the value of option {key:?} is not percent-encoded UTF-8; write % as %25"))
            })?;
            Ok((key, value))
        })
    }
}

/// The text that a percent-encoded one stands for; None if it stands for none. A plus is a plus.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = tail else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// The percent-encoded form of a text, as [`decode`] reads it.
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis", feature = "zookeeper"))]
pub(crate) fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// A text that may be a URL, with stars for all that may be a user and a password.
pub(crate) fn without_userinfo(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, behind)) => format!("***@{behind}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let parts = Parts::of("sqlite:///a/b.db?namespace=s%20t&lease=1s&&wait").expect("a URL");
        assert_eq!((parts.scheme, parts.place), ("sqlite", "///a/b.db"));
        let options: Result<Vec<_>, _> = parts.options().collect();
        let expected = [("namespace", "s t"), ("lease", "1s"), ("wait", "")];
        assert_eq!(options.expect("options"), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_is_no_url_is_told_without_its_password() {
        for text in ["", "locks.db", ":", "/a:b", "1a:b", "user:secret@host", "ba d:x", "me secret@host:1"] {
            match Parts::of(text) {
                Ok(parts) => assert_eq!(parts.scheme, "user", "{text:?} is read as a scheme"),
                Err(error) => assert!(!error.to_string().contains("secret"), "{error}"),
            }
        }
    }

    #[test]
    fn percent_encoding_is_undone_once() {
        assert_eq!(decode("a%2525+b").as_deref(), Some("a%25+b"));
        assert_eq!(decode("%E6%B3%A8").as_deref(), Some("注"));
        for text in ["%", "%4", "%zz", "%FF", "%+1"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
