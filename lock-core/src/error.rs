//! The one public error: a kind to act on, and words for the person who reads the log.

use std::{error::Error as StdError, fmt, sync::Arc};

use crate::{BackendError, BackendErrorKind};

/// What went wrong, in a form that a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, lease, wait or other argument is out of range; nothing was sent (L15).
    InvalidInput,
    /// The URL, the configuration or the client's construction is wrong; nothing was sent.
    Config,
    /// The lock was held by others until the limit (L9). Nothing is left in the store.
    TimedOut,
    /// The hold is over: its lease ran out, or the store says that the claim is gone (L4, L5, L6).
    Lost,
    /// The client was closed (L11).
    Closed,
    /// The store did not answer in time (L9). What it did with the request is unknown; the client cleans up.
    Unavailable,
    /// The store cannot do what was asked.
    Unsupported,
    /// The store answered with a refusal that repeating would not change.
    Backend,
}

/// An error of any operation on locks.
///
/// The text is one sentence that names the value, the allowed range or the remedy. It never shows a password.
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind. The message must not hold a secret.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { inner: Box::new(Inner { kind, message: message.into(), source: None }) }
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.inner.source = Some(Arc::new(source));
        self
    }

    /// What went wrong, to act on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether the same call may succeed later, with nothing changed: true for `TimedOut` and `Unavailable`.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable)
    }

    /// What a backend's error means to the user of `what`, for example `lock "x"`.
    pub(crate) fn from_backend(what: &dyn fmt::Display, error: BackendError) -> Self {
        let kind = match error.kind() {
            BackendErrorKind::Unavailable => ErrorKind::Unavailable,
            BackendErrorKind::Refused => ErrorKind::Backend,
            BackendErrorKind::Unsupported => ErrorKind::Unsupported,
            BackendErrorKind::Config => ErrorKind::Config,
        };
        let (message, source) = error.into_parts();
        Error { inner: Box::new(Inner { kind, message: format!("{what}: {message}"), source }) }
    }
}

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        Error::from_backend(&"store", error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.inner.kind).field("message", &self.inner.message);
        if let Some(source) = &self.inner.source {
            // Display, not Debug: a client library's Debug may show its whole configuration.
            debug.field("source", &format_args!("{source}"));
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
