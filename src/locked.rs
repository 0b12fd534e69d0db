//! What the functions that the attribute `locked` writes need from here, beside the public API. Not for use by hand.

use crate::{Error, ErrorKind};

/// What a locked function may answer. It is a trait so that a type which does not fit is told in words of ours.
#[diagnostic::on_unimplemented(
    message = "a locked function cannot answer `{Self}`",
    label = "must be a `Result` whose error has `From<leasehold::Error>`, which is what the lock itself may fail with"
)]
pub trait Answer: Sized {
    /// The function's answer: what the lock failed with, or what the body answered and how the release went.
    fn of(ended: Result<(Self, Result<(), Error>), Error>) -> Self;
}

impl<T, E: From<Error>> Answer for Result<T, E> {
    fn of(ended: Result<(Self, Result<(), Error>), Error>) -> Self {
        match ended? {
            // As `Lock::run` has it: the body has run under a lock whose release is merely not confirmed. An error of
            // the body says more than one of the release.
            (Ok(_), Err(error)) if error.kind() != ErrorKind::Unavailable => Err(error.into()),
            (answer, _) => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(kind: ErrorKind) -> Error {
        Error::new(kind, "of the lock")
    }

    #[test]
    fn a_release_that_is_merely_not_confirmed_is_no_error() {
        let answer: Result<u8, Error> = Answer::of(Ok((Ok(1), Err(lock(ErrorKind::Unavailable)))));
        assert_eq!(answer.expect("the body went well"), 1);
    }

    #[test]
    fn a_release_that_found_the_lock_gone_is_an_error_after_a_body_without_one() {
        let kind = |body| {
            let answer: Result<u8, Error> = Answer::of(Ok((body, Err(lock(ErrorKind::Lost)))));
            answer.expect_err("lost").kind()
        };
        assert_eq!(kind(Ok(1)), ErrorKind::Lost);
        assert_eq!(kind(Err(lock(ErrorKind::InvalidInput))), ErrorKind::InvalidInput, "the body's own");
    }
}
