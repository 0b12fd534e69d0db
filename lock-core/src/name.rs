//! Validated names and namespaces, raw and encoded (L14).

use std::{fmt, sync::Arc};

use crate::{Error, ErrorKind, encode_name};

/// A lock's name: 1 to 512 bytes of UTF-8, any characters (L14). Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Text);

/// Where names live: 0 to 64 bytes of UTF-8, any characters (L14). Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Namespace(Text);

impl LockName {
    /// The most bytes a name may have.
    pub const MAX_BYTES: usize = 512;

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for an empty name and for one of more than 512 bytes.
    pub fn new(raw: &str) -> Result<Self, Error> {
        if raw.is_empty() || raw.len() > Self::MAX_BYTES {
            return Err(out_of_range("lock name", raw, 1, Self::MAX_BYTES));
        }
        Ok(LockName(Text::new(raw)))
    }

    /// The name as its users write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.raw
    }

    /// The name as [`encode_name`] writes it.
    #[must_use]
    pub fn encoded(&self) -> &str {
        self.0.encoded()
    }
}

impl Namespace {
    /// The most bytes a namespace may have.
    pub const MAX_BYTES: usize = 64;

    /// Checks a namespace. The empty one is a namespace like any other.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for one of more than 64 bytes.
    pub fn new(raw: &str) -> Result<Self, Error> {
        if raw.len() > Self::MAX_BYTES {
            return Err(out_of_range("namespace", raw, 0, Self::MAX_BYTES));
        }
        Ok(Namespace(Text::new(raw)))
    }

    /// The namespace as its users write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.raw
    }

    /// The namespace as [`encode_name`] writes it; empty for the empty one.
    #[must_use]
    pub fn encoded(&self) -> &str {
        self.0.encoded()
    }
}

/// A text with its encoding, kept apart only where the two differ.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
struct Text {
    raw: Arc<str>,
    encoded: Option<Arc<str>>,
}

impl Text {
    fn new(raw: &str) -> Self {
        let encoded = encode_name(raw);
        Text { raw: Arc::from(raw), encoded: (encoded != raw).then(|| Arc::from(encoded)) }
    }

    fn encoded(&self) -> &str {
        self.encoded.as_ref().unwrap_or(&self.raw)
    }
}

fn out_of_range(what: &str, raw: &str, min: usize, max: usize) -> Error {
    // A name this long fills a terminal; its beginning tells which one it was.
    let shown: String = raw.chars().take(40).collect();
    let dots = if shown.len() < raw.len() { "..." } else { "" };
    Error::new(
        ErrorKind::InvalidInput,
        format!("{what} {shown:?}{dots} has {} bytes; {min} to {max} bytes of UTF-8 are allowed", raw.len()),
    )
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_in_bytes() {
        assert!(LockName::new(&"é".repeat(256)).is_ok());
        let error = LockName::new(&"é".repeat(257)).expect_err("514 bytes");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("514 bytes; 1 to 512"), "{error}");
        assert!(LockName::new("").is_err());
        assert!(Namespace::new("").is_ok());
        assert!(Namespace::new(&"n".repeat(65)).is_err());
    }
}
