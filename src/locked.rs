//! What the functions that the attribute `locked` writes need from here, beside the public API. Not for use by hand.

use crate::Error;

/// What a locked function may answer. It is a trait so that a type which does not fit is told in words of ours.
#[diagnostic::on_unimplemented(
    message = "a locked function cannot answer `{Self}`",
    label = "must be a `Result` whose error has `From<leasehold::Error>`, which is what the lock itself may fail with"
)]
pub trait Answer {
    /// The answer when the lock failed.
    fn failed(error: Error) -> Self;

    /// Whether the body did what it was called for.
    fn went_well(&self) -> bool;
}

impl<T, E: From<Error>> Answer for Result<T, E> {
    fn failed(error: Error) -> Self {
        Err(E::from(error))
    }

    fn went_well(&self) -> bool {
        self.is_ok()
    }
}
