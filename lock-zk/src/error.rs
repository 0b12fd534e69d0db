//! What ZooKeeper's errors mean to core, and what a person can do about them.

use lock_core::{BackendError, BackendErrorKind};
use zookeeper_client::Error;

/// Whether the server answered and has done nothing.
pub(crate) fn did_nothing(error: &Error) -> bool {
    kind(error) != BackendErrorKind::Unavailable || matches!(error, Error::NoNode | Error::NodeExists)
}

fn kind(error: &Error) -> BackendErrorKind {
    match error {
        Error::NoAuth | Error::InvalidAcl | Error::QuotaExceeded | Error::MarshallingError | Error::BadArguments(_) => {
            BackendErrorKind::Refused
        }
        Error::Unimplemented => BackendErrorKind::Unsupported,
        Error::AuthFailed => BackendErrorKind::Config,
        // Above all a lost connection, which comes in many forms, and a session that has ended, which is replaced: the
        // outcome is unknown.
        _ => BackendErrorKind::Unavailable,
    }
}

/// What core is told of an error from the ensemble at `hosts`, met while doing `what`.
pub(crate) fn told(hosts: &str, what: &str, error: Error) -> BackendError {
    let advice = match &error {
        Error::NoAuth => "; check the access lists of its nodes, or the user and password",
        Error::QuotaExceeded => "; raise its quota",
        Error::Unimplemented => "; it takes ZooKeeper 3.5.3 or later",
        Error::AuthFailed => "; check the user and password",
        Error::SessionExpired => "; a new session replaces it",
        _ => "",
    };
    BackendError::new(kind(&error), format!("ZooKeeper {hosts}: {what}: {error}{advice}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_says_that_nothing_was_done() {
        for error in [Error::NoAuth, Error::InvalidAcl, Error::QuotaExceeded, Error::NoNode] {
            assert!(did_nothing(&error), "{error}");
        }
        for error in [
            Error::ConnectionLoss,
            Error::SessionExpired,
            Error::SessionMoved,
            Error::Timeout,
            Error::ClientClosed,
            Error::Throttled,
            Error::UnexpectedError("no answer".to_owned()),
        ] {
            assert!(!did_nothing(&error), "{error}");
            assert!(told("h:1", "creating a node", error.clone()).is_unknown(), "{error}");
        }
        assert_eq!(told("h:1", "x", Error::NoAuth).kind(), BackendErrorKind::Refused);
        assert_eq!(told("h:1", "x", Error::AuthFailed).kind(), BackendErrorKind::Config);
    }
}
