//! What a database's errors mean to core, and what a person can do about them.

use std::path::Path;

use lock_core::{BackendError, BackendErrorKind};
use sqlx::sqlite::SqliteError;

/// What SQLite said about a statement, as far as it matters here.
///
/// The primary result codes are those of <https://www.sqlite.org/rescode.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another connection has the lock that the statement needs: nothing was done.
    Busy,
    /// No room for another page: nothing was done.
    Full,
    /// The file or its directory cannot be written: nothing was done.
    ReadOnly,
    /// The file is no database, or a damaged one.
    Unusable,
    /// The file cannot be opened.
    CannotOpen,
    /// A read or a write failed: whether the statement was applied is unknown.
    Io,
    /// The connection's thread has ended: whether the statement was applied is unknown.
    NoConnection,
    /// SQLite refused the statement, as it would again.
    Refused,
}

impl Fault {
    pub(crate) fn of(error: &sqlx::Error) -> Self {
        let sqlx::Error::Database(answer) = error else {
            return match error {
                sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => Fault::NoConnection,
                _ => Fault::Refused,
            };
        };
        match primary_code(answer.as_ref()) {
            // BUSY, LOCKED, and the race of two connections that begin to use a write-ahead log.
            5 | 6 | 15 => Fault::Busy,
            13 => Fault::Full,
            3 | 8 | 23 => Fault::ReadOnly,
            11 | 26 => Fault::Unusable,
            14 => Fault::CannotOpen,
            // NOMEM, INTERRUPT, IOERR.
            7 | 9 | 10 => Fault::Io,
            _ => Fault::Refused,
        }
    }

    /// Whether the next call should open the file anew: after all that may have to do with this file or connection.
    pub(crate) fn ends_connection(self) -> bool {
        !matches!(self, Fault::Busy | Fault::Full)
    }

    fn kind(self) -> BackendErrorKind {
        match self {
            // Nothing was done, but whether the lock is free is not known either: core asks again.
            Fault::Busy | Fault::Io | Fault::NoConnection => BackendErrorKind::Unavailable,
            _ => BackendErrorKind::Refused,
        }
    }

    /// One sentence: what, with its value, and what to do.
    fn sentence(self, path: &Path, said: &str) -> String {
        let path = path.display();
        match self {
            Fault::Busy => {
                format!("sqlite file {path} is kept locked by another program ({said}); end its transaction")
            }
            Fault::Full => format!("sqlite file {path} is full ({said}); make room on its disk"),
            Fault::ReadOnly => format!("sqlite file {path} is read-only ({said}); make it and its directory writable"),
            Fault::Unusable => format!("sqlite file {path} is no usable SQLite database ({said}); name another file"),
            Fault::CannotOpen => {
                format!(
                    "sqlite file {path} cannot be opened ({said}); check the permissions of the file and its directory"
                )
            }
            Fault::Io => format!("sqlite file {path} failed to read or write ({said}); check its disk"),
            Fault::NoConnection => format!("sqlite file {path} lost its connection ({said}); it is opened anew"),
            Fault::Refused => format!("sqlite file {path} refused a statement ({said})"),
        }
    }
}

/// What core is told of an error of the file at `path`.
pub(crate) fn backend_error(path: &Path, error: sqlx::Error) -> BackendError {
    let fault = Fault::of(&error);
    let said = match &error {
        sqlx::Error::Database(answer) => answer.message().to_owned(),
        other => other.to_string(),
    };
    BackendError::new(fault.kind(), fault.sentence(path, &said)).with_source(error)
}

/// The result code without what extends it.
fn primary_code(answer: &dyn sqlx::error::DatabaseError) -> i32 {
    debug_assert!(answer.try_downcast_ref::<SqliteError>().is_some(), "an answer of SQLite");
    answer.code().and_then(|code| code.parse().ok()).map_or(1, |extended: i32| extended & 0xFF)
}
