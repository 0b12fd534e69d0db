//! Where a database server is and how it is used. What is secret in it is in no message.

use std::{fmt, time::Duration};

use lock_core::{BackendError, BackendErrorKind};

use crate::server::tables::Table;

/// The options of a PostgreSQL URL that are handed to the driver, with its meaning of them.
#[cfg(feature = "postgres")]
pub const POSTGRES_OPTIONS: &[&str] =
    &["sslmode", "sslrootcert", "sslcert", "sslkey", "host", "application_name", "options"];

/// The options of a MySQL or MariaDB URL that are handed to the driver, with its meaning of them.
#[cfg(feature = "mysql")]
pub const MYSQL_OPTIONS: &[&str] = &["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

/// The most connections unless it is set: enough for the statements of some hundred locks at once, each of which has a
/// connection for about a millisecond.
const MAX_CONNECTIONS: u32 = 8;

/// Where a PostgreSQL, MySQL or MariaDB server is and how it is used.
///
/// ```
/// # fn main() -> Result<(), lock_core::BackendError> {
/// use std::time::Duration;
/// let config = lock_sql::ServerConfig::new("postgres://shop:secret@db.example/shop?sslmode=verify-full")?
///     .table("shop_locks")?
///     .connect_timeout(Duration::from_secs(1));
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub(crate) dialect: DialectName,
    pub(crate) url: String,
    pub(crate) shown: String,
    pub(crate) table: Table,
    pub(crate) max_connections: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) lock_timeout: Duration,
    pub(crate) listens: bool,
}

/// The databases that a URL can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialectName {
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "mysql")]
    Mysql,
}

impl ServerConfig {
    /// The server that a URL names: `postgres://`, `postgresql://`, `mysql://` or `mariadb://`, then
    /// `user:password@host:port/database` and options of the driver after a `?`.
    ///
    /// # Errors
    ///
    /// `Config` for another scheme, an option that is not in [`POSTGRES_OPTIONS`] or [`MYSQL_OPTIONS`], and a URL
    /// without a database.
    pub fn new(url: impl Into<String>) -> Result<Self, BackendError> {
        let url = url.into();
        let (scheme, rest) = url.split_once("://").ok_or_else(|| config("the store's URL has no ://"))?;
        let (dialect, known) = match scheme {
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => (DialectName::Postgres, POSTGRES_OPTIONS),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => (DialectName::Mysql, MYSQL_OPTIONS),
            _ => return Err(config("the store's URL is of no database server; write postgres:// or mysql://")),
        };
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may have an @ that nobody escaped: what follows the last one is none.
        let behind = place.rsplit_once('@').map_or(place, |(_, behind)| behind);
        if behind.split_once('/').is_none_or(|(_, database)| database.is_empty()) {
            return Err(config(format!("store {scheme}: names no database; write it as {scheme}://HOST/DATABASE")));
        }
        for option in options.split('&').filter(|option| !option.is_empty()) {
            // A value may be a password under a misspelt name.
            let key = option.split_once('=').map_or(option, |(key, _)| key);
            if !known.contains(&key) {
                let known = known.join(", ");
                return Err(config(format!("unknown option {key:?} of store {scheme}; the known ones are {known}")));
            }
        }
        let shown = format!("{scheme}://{behind}");
        Ok(ServerConfig {
            dialect,
            shown,
            url,
            table: Table::default(),
            max_connections: MAX_CONNECTIONS,
            connect_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(1),
            listens: true,
        })
    }

    /// The table of the locks, `leasehold_locks` unless set: letters, digits and underscores, at most 48, and a schema
    /// before a dot if wanted. A table of the same name and `_schema` has its version.
    ///
    /// # Errors
    ///
    /// `Config` for another name.
    pub fn table(mut self, name: &str) -> Result<Self, BackendError> {
        self.table = Table::parse(name).ok_or_else(|| {
            config(format!(
                "table {name:?} is no plain name: letters, digits and underscores, at most 48, are allowed, and a \
                 schema before a dot"
            ))
        })?;
        Ok(self)
    }

    /// The most connections for statements, at least one; 8 unless set. PostgreSQL has one more for notifications while
    /// somebody waits.
    #[must_use]
    pub fn max_connections(mut self, most: u32) -> Self {
        self.max_connections = most.max(1);
        self
    }

    /// How long a connection may take to be made. 5 s unless set.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long a statement waits for a row that another transaction has locked. 1 s unless set; MySQL and MariaDB count
    /// whole seconds.
    ///
    /// Core repeats what did not get its turn. Rows of locks are locked for the time of one statement, unless somebody
    /// else's transaction has them.
    #[must_use]
    pub fn lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit.clamp(Duration::from_millis(10), Duration::from_secs(60));
        self
    }

    /// Waiters ask again and again, PostgreSQL is not asked to notify, and statements are not prepared. For servers
    /// behind a pooler that gives each transaction another session: notifications never arrive there, and what was
    /// prepared is in another session than the one that shall run it.
    #[must_use]
    pub fn without_notifications(mut self) -> Self {
        self.listens = false;
        self
    }

    /// The URL without what may be a user, a password or an option.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("server", &self.shown)
            .field("table", &self.table.as_str())
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

pub(crate) fn config(message: impl Into<String>) -> BackendError {
    BackendError::new(BackendErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        let config = ServerConfig::new("mysql://me:p%40ss@w0rd@db:3307/shop?ssl-mode=REQUIRED").expect("a server");
        assert_eq!(config.shown(), "mysql://db:3307/shop");
        assert!(!format!("{config:?}").contains("ss@"), "{config:?}");
    }

    #[test]
    fn what_is_no_server_is_told_without_its_secrets() {
        let urls = [
            "secret",
            "redis://secret@h/0",
            "postgres://u:secret@h",
            "postgres://u:secret@h/",
            "postgres://h/d?pasword=secret",
            "mysql://h/d?sslmode=secret",
        ];
        for url in urls {
            let error = ServerConfig::new(url).expect_err(url);
            assert_eq!(error.kind(), BackendErrorKind::Config);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
