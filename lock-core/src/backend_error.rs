//! What a backend reports when a call did not give the answer that was asked for.

use std::{error::Error as StdError, fmt, sync::Arc};

/// What core does about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendErrorKind {
    /// No answer, or one that says "not now": the outcome is unknown and core repeats under the same claim id.
    Unavailable,
    /// The store answered, did nothing, and would answer the same again.
    Refused,
    /// The store cannot do this at all; nothing was sent.
    Unsupported,
    /// The backend's own configuration is wrong, such as a refused password.
    Config,
}

/// A call that failed, with what to do about it. The message must not hold a secret.
#[derive(Clone)]
pub struct BackendError {
    kind: BackendErrorKind,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl BackendError {
    /// An error of this kind.
    pub fn new(kind: BackendErrorKind, message: impl Into<String>) -> Self {
        BackendError { kind, message: message.into(), source: None }
    }

    /// The store could not be asked, or did not answer: the outcome is unknown.
    pub fn unavailable(message: impl Into<String>) -> Self {
        BackendError::new(BackendErrorKind::Unavailable, message)
    }

    /// The store answered with a refusal and did nothing.
    pub fn refused(message: impl Into<String>) -> Self {
        BackendError::new(BackendErrorKind::Refused, message)
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What core does about it.
    #[must_use]
    pub fn kind(&self) -> BackendErrorKind {
        self.kind
    }

    /// Whether the request may have been applied all the same.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.kind == BackendErrorKind::Unavailable
    }

    pub(crate) fn into_parts(self) -> (String, Option<Arc<dyn StdError + Send + Sync>>) {
        (self.message, self.source)
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendError").field("kind", &self.kind).field("message", &self.message).finish()
    }
}

impl StdError for BackendError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
