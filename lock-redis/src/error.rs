//! What a server's errors mean to core, and what a person can do about them.

use std::{error::Error as StdError, io, sync::Arc};

use lock_core::{BackendError, BackendErrorKind};
use redis::{ErrorKind, RedisError};

/// What became of a request, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection was cut or cannot be made: what was sent may have been applied.
    Cut,
    /// The server says that it cannot now: it is loading, a replica, or busy with someone's script.
    NotNow,
    /// The script is not in the server's cache: nothing was done.
    NoScript,
    /// The user or the password is wrong, or missing.
    Login,
    /// The server has no such database.
    Database,
    /// The server's certificate is not trusted, or it does not speak TLS.
    Tls,
    /// No room: nothing was done.
    Full,
    /// The user may not do this: nothing was done.
    Forbidden,
    /// The server cannot write to its disk, and so takes no writes: nothing was done.
    Disk,
    /// A key under the lock's name is not what it should be: nothing was done.
    Foreign,
    /// The server is a part of a cluster, and this key is elsewhere.
    Cluster,
    /// The server refused, as it would again.
    Refused,
}

impl Fault {
    pub(crate) fn of(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::AuthenticationFailed => Fault::Login,
            ErrorKind::Server(_) | ErrorKind::Extension => Fault::said(error),
            ErrorKind::Io if is_about_tls(error) => Fault::Tls,
            // An answer that is none, too: whether the request was applied is unknown.
            _ => Fault::Cut,
        }
    }

    /// The code that an error begins with says what it is, see <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
    fn said(error: &RedisError) -> Self {
        let (code, detail) = (error.code().unwrap_or_default(), error.detail().unwrap_or_default());
        let known = Fault::of_code(code);
        if known != Fault::Refused || code != "ERR" {
            return known;
        }
        if detail.contains("max number of clients") {
            return Fault::NotNow;
        }
        if detail.contains("DB index is out of range") {
            return Fault::Database;
        }
        // What a script may not do is told without a code, see `scriptCall` in the server's source.
        if detail.contains("user executing the script can't") {
            return Fault::Forbidden;
        }
        // Before Redis 7 an error within a script is told as ERR, with its own code inside.
        let inner = detail.split([' ', ':']).map(|word| Fault::of_code(word.trim_start_matches('-')));
        inner.into_iter().find(|fault| *fault != Fault::Refused).unwrap_or(Fault::Refused)
    }

    fn of_code(code: &str) -> Self {
        match code {
            "LOADING" | "READONLY" | "BUSY" | "TRYAGAIN" | "MASTERDOWN" | "CLUSTERDOWN" | "NOREPLICAS" => Fault::NotNow,
            "NOSCRIPT" => Fault::NoScript,
            "NOAUTH" | "WRONGPASS" => Fault::Login,
            "OOM" => Fault::Full,
            "NOPERM" => Fault::Forbidden,
            "MISCONF" => Fault::Disk,
            "WRONGTYPE" => Fault::Foreign,
            "MOVED" | "ASK" | "CROSSSLOT" => Fault::Cluster,
            _ => Fault::Refused,
        }
    }

    /// Whether the next call needs another connection.
    pub(crate) fn ends_connection(self) -> bool {
        matches!(self, Fault::Cut | Fault::Login | Fault::Tls)
    }

    fn kind(self) -> BackendErrorKind {
        match self {
            Fault::Cut | Fault::NotNow => BackendErrorKind::Unavailable,
            Fault::Login | Fault::Database | Fault::Tls => BackendErrorKind::Config,
            _ => BackendErrorKind::Refused,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Fault::Cut => "could not be reached, or did not answer",
            Fault::NotNow => "cannot serve now",
            Fault::NoScript => "lost its scripts while they were used",
            Fault::Login => "refused the login; check the user and the password",
            Fault::Database => "has no such database; check the number at the end of the URL",
            Fault::Tls => "is not trusted, or speaks no TLS; check the scheme, the host's name and the roots",
            Fault::Full => "has no memory left; raise maxmemory, or remove keys",
            Fault::Forbidden => {
                "does not allow this to its user; check its ACL, which needs ~leasehold/* and &leasehold/*"
            }
            Fault::Disk => "takes no writes, since it cannot write to its disk; make room there",
            Fault::Foreign => {
                "has something under the lock's name that is no lock; remove it, or use another namespace"
            }
            Fault::Cluster => "is a part of a cluster, which this backend does not serve",
            Fault::Refused => "refused a command",
        }
    }
}

/// What core is told of an error of the server at `place`.
pub(crate) fn backend_error(place: &str, error: RedisError) -> BackendError {
    let fault = Fault::of(&error);
    let said = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    };
    BackendError::new(fault.kind(), format!("redis {place} {} ({said})", fault.advice())).with_source(error)
}

/// Something at a key of ours that no script of ours wrote.
pub(crate) fn foreign(place: &str, key: &str) -> BackendError {
    BackendError::refused(format!("redis {place} {}: key {key}", Fault::Foreign.advice()))
}

/// An answer that no script of ours gives: whether the request was applied is unknown.
pub(crate) fn unread(place: &str) -> BackendError {
    BackendError::unavailable(format!("redis {place} gave an answer that cannot be read"))
}

fn is_about_tls(error: &RedisError) -> bool {
    // The client library wraps what TLS says into an error of input and output, and shares that.
    let shared = error.source().and_then(|source| source.downcast_ref::<Arc<dyn StdError + Send + Sync>>());
    let io = shared.and_then(|inner| inner.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> Fault {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("an error is a value");
        Fault::of(&value.extract_error().expect_err("an error"))
    }

    #[test]
    fn each_code_has_its_meaning() {
        assert_eq!(fault("LOADING Redis is loading the dataset in memory"), Fault::NotNow);
        assert_eq!(
            fault("READONLY You can't write against a read only replica. script: ab, on @user_script:9."),
            Fault::NotNow
        );
        assert_eq!(fault("BUSY Redis is busy running a script."), Fault::NotNow);
        assert_eq!(fault("NOREPLICAS Not enough good replicas to write."), Fault::NotNow);
        assert_eq!(fault("ERR max number of clients reached"), Fault::NotNow);
        assert_eq!(fault("NOSCRIPT No matching script. Please use EVAL."), Fault::NoScript);
        assert_eq!(fault("NOAUTH Authentication required."), Fault::Login);
        assert_eq!(fault("WRONGPASS invalid username-password pair or user is disabled."), Fault::Login);
        assert_eq!(fault("OOM command not allowed when used memory > 'maxmemory'."), Fault::Full);
        assert_eq!(fault("NOPERM this user has no permissions to run the 'evalsha' command"), Fault::Forbidden);
        assert_eq!(fault("WRONGTYPE Operation against a key holding the wrong kind of value"), Fault::Foreign);
        assert_eq!(fault("MISCONF Redis is configured to save RDB snapshots"), Fault::Disk);
        assert_eq!(fault("MOVED 3999 127.0.0.1:6381"), Fault::Cluster);
        assert_eq!(fault("ERR The user executing the script can't run this command or subcommand"), Fault::Forbidden);
        assert_eq!(fault("ERR unknown command 'EVALSHA'"), Fault::Refused);
    }

    #[test]
    fn an_error_within_a_script_of_an_older_server_has_its_code_inside() {
        let line =
            "ERR Error running script (call to f_ab): @user_script:7: @user_script: 7: -READONLY You can't write";
        assert_eq!(fault(line), Fault::NotNow);
        assert_eq!(
            fault("ERR Error running script (call to f_ab): @user_script:7: WRONGTYPE Operation"),
            Fault::Foreign
        );
    }

    #[test]
    fn a_cut_connection_leaves_the_outcome_unknown() {
        let error = RedisError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(Fault::of(&error), Fault::Cut);
        let told = backend_error("h:1", error);
        assert!(told.is_unknown() && told.to_string().contains("h:1"), "{told}");
    }
}
