//! What a server's errors mean to core, and what a person can do about them. Each dialect reads its own codes.

use lock_core::{BackendError, BackendErrorKind};

use crate::server::tls;

/// What a server said, or that it said nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another transaction was in the way, and nothing was done: asking again is all there is to it.
    Conflict,
    /// The connection is gone: whether the statement was applied is unknown.
    NoConnection,
    /// A pooler between gave the transaction another session, which has other prepared statements.
    #[cfg(feature = "postgres")]
    Pooled,
    /// The server is starting, stopping, or has too much to do.
    NotNow,
    /// The server takes no writes, as a standby does until it takes over.
    ReadOnly,
    /// The user, the password, the database or the encryption is wrong.
    Config,
    /// The tables are missing.
    NoTable,
    /// The user may not do this.
    Denied,
    /// There is no room for another row.
    Full,
    /// The server refused the statement, as it would again.
    Refused,
}

impl Fault {
    /// What an error means that no server sent.
    pub(crate) fn of_client(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Fault::Config,
            sqlx::Error::Io(error) if tls::is_refusal(error) => Fault::Config,
            sqlx::Error::Io(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Fault::NoConnection,
            _ => Fault::Refused,
        }
    }

    /// Whether the connection is in order after this error.
    pub(crate) fn keeps_connection(self) -> bool {
        matches!(self, Fault::Conflict | Fault::NoTable | Fault::Denied | Fault::Full)
    }

    fn kind(self) -> BackendErrorKind {
        match self {
            // What runs under another session's name may be anything: it must not be tried again and again.
            #[cfg(feature = "postgres")]
            Fault::Pooled => BackendErrorKind::Config,
            Fault::Conflict | Fault::NoConnection | Fault::NotNow | Fault::ReadOnly => BackendErrorKind::Unavailable,
            Fault::Config => BackendErrorKind::Config,
            Fault::NoTable | Fault::Denied | Fault::Full | Fault::Refused => BackendErrorKind::Refused,
        }
    }

    /// One sentence: what, and what to do.
    fn sentence(self, server: &str, said: &str) -> String {
        match self {
            Fault::Conflict => {
                format!("{server}: another transaction keeps the lock's row locked ({said}); end that transaction")
            }
            Fault::NoConnection => format!("{server}: there is no connection ({said})"),
            #[cfg(feature = "postgres")]
            Fault::Pooled => format!(
                "{server}: a pooler between gives each transaction another session ({said}); add listen=off to the URL"
            ),
            Fault::NotNow => format!("{server} does not serve now ({said})"),
            Fault::ReadOnly => format!("{server} takes no writes now ({said}); name the primary server"),
            Fault::Config => {
                format!("{server} cannot be used so ({said}); check user, password, database and encryption in the URL")
            }
            Fault::NoTable => format!("{server} lacks leasehold's tables ({said})"),
            Fault::Denied => {
                format!(
                    "{server}: the user lacks rights ({said}); grant them, or create the tables as lock-sql's documentation shows"
                )
            }
            Fault::Full => format!("{server} is full ({said}); make room on its disk"),
            Fault::Refused => format!("{server} refused a statement ({said})"),
        }
    }

    /// What core is told of this error of the server.
    pub(crate) fn told(self, server: &str, error: sqlx::Error) -> BackendError {
        // Not the text of the whole error: it repeats what the sentence says.
        let said = match &error {
            sqlx::Error::Database(answer) => answer.message().to_owned(),
            other => other.to_string(),
        };
        BackendError::new(self.kind(), self.sentence(server, &said)).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_server_sent_has_a_meaning_too() {
        let io = sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!(Fault::of_client(&io), Fault::NoConnection);
        assert!(!Fault::of_client(&io).keeps_connection());
        let told = Fault::of_client(&io).told("postgres at here", io);
        assert!(told.is_unknown() && told.to_string().contains("postgres at here"), "{told}");
        assert_eq!(Fault::of_client(&sqlx::Error::Tls("no".into())), Fault::Config);
    }
}
