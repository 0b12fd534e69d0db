//! What etcd's errors mean to core, and what a person can do about them.

use std::{fmt, time::Duration};

use etcd_client::Error;
use lock_core::{BackendError, BackendErrorKind};
use tonic::Code;

/// What a request came to that did not get the answer it was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No answer, or one that leaves open what was done: another member may know.
    NoAnswer,
    /// The lease that a write was bound to is not there: nothing was written.
    LeaseNotFound,
    /// A lease with this id is there already.
    LeaseExists,
    /// The database is full: nothing was written.
    NoSpace,
    /// The user may not do this: nothing was done.
    Denied,
    /// The token of an earlier authentication is not taken any more: nothing was done, and authenticating again helps.
    StaleToken,
    /// The user, the password or the certificate is refused.
    NotAuthenticated,
    /// The server refused the request, as it would again.
    Refused,
}

impl Fault {
    pub(crate) fn of(error: &Error) -> Self {
        let Error::GRpcStatus(status) = error else {
            return match error {
                Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => Fault::Refused,
                _ => Fault::NoAnswer,
            };
        };
        // The texts are part of etcd's interface (api/v3rpc/rpctypes/error.go): several share one code.
        let says = |text: &str| status.message().contains(text);
        match status.code() {
            Code::NotFound if says("lease not found") => Fault::LeaseNotFound,
            Code::FailedPrecondition if says("lease already exists") => Fault::LeaseExists,
            Code::ResourceExhausted if says("database space exceeded") => Fault::NoSpace,
            Code::PermissionDenied => Fault::Denied,
            Code::Unauthenticated => Fault::StaleToken,
            Code::InvalidArgument if says("revision of auth store is old") => Fault::StaleToken,
            Code::InvalidArgument if says("authentication failed") || says("user name") => Fault::NotAuthenticated,
            Code::FailedPrecondition if says("authentication is not enabled") => Fault::NotAuthenticated,
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange | Code::NotFound => Fault::Refused,
            Code::Unimplemented => Fault::Refused,
            _ => Fault::NoAnswer,
        }
    }

    fn kind(self) -> BackendErrorKind {
        match self {
            Fault::NoAnswer | Fault::LeaseNotFound | Fault::LeaseExists => BackendErrorKind::Unavailable,
            Fault::StaleToken | Fault::NotAuthenticated => BackendErrorKind::Config,
            Fault::NoSpace | Fault::Denied | Fault::Refused => BackendErrorKind::Refused,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Fault::NoAnswer => "; check that a majority of its members is up",
            Fault::LeaseNotFound => "; the lease was revoked or has run out",
            Fault::LeaseExists => "",
            Fault::NoSpace => "; compact and defragment it, then disarm its NOSPACE alarm",
            Fault::Denied => "; grant the user read and write permission for keys that begin with leasehold/",
            Fault::StaleToken | Fault::NotAuthenticated => "; check the user and the password",
            Fault::Refused => "",
        }
    }
}

/// A request that failed, at which member, and how.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// An earlier request of the same call got no answer: it may be applied whatever this one said.
    pub(crate) repeated: bool,
    endpoint: String,
    said: String,
    cause: Option<Error>,
}

impl Failure {
    pub(crate) fn new(endpoint: &str, cause: Error) -> Self {
        let said = match &cause {
            Error::GRpcStatus(status) if status.message().is_empty() => format!("{:?}", status.code()),
            Error::GRpcStatus(status) => status.message().to_owned(),
            other => other.to_string(),
        };
        Failure { fault: Fault::of(&cause), repeated: false, endpoint: endpoint.to_owned(), said, cause: Some(cause) }
    }

    pub(crate) fn silent(endpoint: &str, limit: Duration) -> Self {
        let said = format!("no answer within {limit:?}");
        Failure { fault: Fault::NoAnswer, repeated: false, endpoint: endpoint.to_owned(), said, cause: None }
    }
}

impl Failure {
    /// The same, after an earlier request of the same call that may have got no answer.
    pub(crate) fn after(self, repeated: bool) -> Self {
        Failure { repeated, ..self }
    }

    /// An answer from which it cannot be told what an earlier request did.
    pub(crate) fn ambiguous() -> Self {
        Failure {
            fault: Fault::NoAnswer,
            repeated: true,
            endpoint: "its members".to_owned(),
            said: "the first of them gave no answer, and the next cannot tell what it did".to_owned(),
            cause: None,
        }
    }

    /// Whether what was asked for can no longer be done: the answers say so of every request.
    pub(crate) fn is_final(&self) -> bool {
        self.fault != Fault::NoAnswer && !self.repeated
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "etcd at {}: {}{}", self.endpoint, self.said, self.fault.advice())
    }
}

impl From<Failure> for BackendError {
    fn from(failure: Failure) -> Self {
        let error = BackendError::new(failure.fault.kind(), failure.to_string());
        match failure.cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    fn kind(code: Code, message: &str) -> BackendErrorKind {
        BackendError::from(Failure::new("h:1", Error::GRpcStatus(Status::new(code, message)))).kind()
    }

    #[test]
    fn what_may_have_been_done_is_unavailable_and_what_was_not_is_a_refusal() {
        let unknown = [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
            (Code::DeadlineExceeded, ""),
            (Code::Unknown, "h2 protocol error"),
        ];
        for (code, message) in unknown {
            assert_eq!(kind(code, message), BackendErrorKind::Unavailable, "{message}");
        }
        let refused = [
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::InvalidArgument, "etcdserver: too many operations in txn request"),
        ];
        for (code, message) in refused {
            assert_eq!(kind(code, message), BackendErrorKind::Refused, "{message}");
        }
        let wrong = (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password");
        assert_eq!(kind(wrong.0, wrong.1), BackendErrorKind::Config);
    }
}
