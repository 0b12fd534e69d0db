//! What a backend is told before it connects: where the server is, and how to get in.

use std::{fmt, path::PathBuf, time::Duration};

use lock_core::{BackendError, BackendErrorKind};

const DEFAULT_PORT: u16 = 6379;

/// Where a Redis server is and how it is reached. Its `Debug` shows no password.
///
/// ```
/// let config = lock_redis::RedisConfig::from_url("redis://app:s3cret@cache.internal:6380/2")?;
/// assert_eq!(config.address(), "cache.internal:6380");
/// assert_eq!(config.database(), 2);
/// assert!(!format!("{config:?}").contains("s3cret"));
/// # Ok::<(), lock_core::BackendError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
    pub(crate) tls: Tls,
    pub(crate) connect_timeout: Duration,
}

/// How the connection is kept from others' eyes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    Off,
    /// With the system's roots.
    SystemRoots,
    /// With the roots in this PEM file and no others.
    Roots(PathBuf),
}

impl RedisConfig {
    /// The server of a URL: `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS.
    ///
    /// In the user and the password, `%`, `/`, `?`, `#`, `@` and `:` are written `%25`, `%2F` and so on.
    ///
    /// # Errors
    ///
    /// `Config` for a URL that is wrong. The message has no part of what may be a user or a password.
    pub fn from_url(url: &str) -> Result<Self, BackendError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no ://"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "redis" => Tls::Off,
            "rediss" => Tls::SystemRoots,
            _ => return Err(wrong("it begins neither with redis:// nor with rediss://")),
        };
        if rest.contains(['?', '#']) {
            return Err(wrong("it has a '?' or a '#'; in a password they are written %3F and %23"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, server) = authority.rsplit_once('@').map_or((None, authority), |(login, at)| (Some(login), at));
        let (host, port) = host_and_port(server)?;
        let mut config = RedisConfig::new(host, port);
        config.tls = tls;
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let decoded = |text| decode(text).ok_or_else(|| wrong("its user or password is not percent-encoded UTF-8"));
            config.user = Some(decoded(user)?).filter(|user| !user.is_empty());
            config.password = Some(decoded(password)?).filter(|password| !password.is_empty());
            if config.user.is_some() && config.password.is_none() {
                return Err(wrong("it has a user and no password"));
            }
        }
        config.database = match path.trim_end_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| wrong("what follows the host is not the number of a database"))?,
        };
        Ok(config)
    }

    /// A server without TLS, user and password, and its database 0.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        RedisConfig {
            host: host.into(),
            port,
            user: None,
            password: None,
            database: 0,
            tls: Tls::Off,
            connect_timeout: Duration::from_secs(5),
        }
    }

    /// Trusts the certificates in this PEM file, and no others, to have signed the server's.
    ///
    /// # Errors
    ///
    /// `Config` for a server that is reached without TLS.
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Result<Self, BackendError> {
        if self.tls == Tls::Off {
            return Err(config_error(
                "roots for TLS are given, and the server is reached without TLS; write rediss://",
            ));
        }
        self.tls = Tls::Roots(file.into());
        Ok(self)
    }

    /// How long making a connection may take, TLS and login included. 5 s unless set.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// The server's host and port.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The number of the database.
    #[must_use]
    pub fn database(&self) -> u32 {
        self.database
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("address", &self.address())
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| format_args!("***")))
            .field("database", &self.database)
            .field("tls", &self.tls)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

fn host_and_port(server: &str) -> Result<(String, u16), BackendError> {
    let (host, port) = match server.strip_prefix('[') {
        Some(bracketed) => {
            let (host, port) = bracketed.split_once(']').ok_or_else(|| wrong("its host has a '[' and no ']'"))?;
            (host, port.strip_prefix(':').or((port.is_empty()).then_some("")))
        }
        None => server.split_once(':').map_or((server, Some("")), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(wrong("it has no host"));
    }
    let port = port.ok_or_else(|| wrong("its port is no number from 1 to 65535"))?;
    if port.is_empty() {
        return Ok((host.to_owned(), DEFAULT_PORT));
    }
    let number = port.parse().ok().filter(|number| *number > 0);
    Ok((host.to_owned(), number.ok_or_else(|| wrong("its port is no number from 1 to 65535"))?))
}

/// The text that a percent-encoded one stands for; None if it stands for none.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = tail else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// An error that says what is wrong with a URL without showing it: any part of it may be a password.
fn wrong(what: &str) -> BackendError {
    config_error(format!(
        "the URL of a Redis server is wrong: {what}; write it as redis://user:password@host:port/database"
    ))
}

pub(crate) fn config_error(message: impl Into<String>) -> BackendError {
    BackendError::new(BackendErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> RedisConfig {
        RedisConfig::from_url(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn a_url_is_read_in_all_its_parts() {
        let config = read("redis://h");
        assert_eq!(config, RedisConfig::new("h", 6379));
        let config = read("REDISS://me:p%40ss%3A%2F@[::1]:7000/12/");
        assert_eq!((config.user.as_deref(), config.password.as_deref()), (Some("me"), Some("p@ss:/")));
        assert_eq!((config.address().as_str(), config.database(), config.tls), ("[::1]:7000", 12, Tls::SystemRoots));
        let config = read("redis://:pw@h:1/");
        assert_eq!((config.user, config.password.as_deref(), config.port), (None, Some("pw"), 1));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told_without_its_password() {
        let wrong = [
            "redis:h",
            "http://secret@h",
            "redis://",
            "redis://secret@",
            "redis://:secret@h:0",
            "redis://:secret@h:x",
            "redis://:secret@h/db",
            "redis://:secret@h/-1",
            "redis://:secret%@h",
            "redis://:secret@h?x=1",
            "redis://:sec#ret@h",
            "redis://[::1",
            "redis://[::1]x",
            "redis://secret@h",
            "redis://:secret@h:65536",
        ];
        for url in wrong {
            let error = RedisConfig::from_url(url).expect_err(url);
            assert_eq!(error.kind(), BackendErrorKind::Config, "{url}");
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }

    #[test]
    fn no_debug_shows_a_password_and_roots_need_tls() {
        let config = read("rediss://me:secret@h");
        assert!(!format!("{config:?} {config:#?}").contains("secret"));
        let config = config.tls_ca("/etc/roots.pem").expect("TLS");
        assert_eq!(config.tls, Tls::Roots("/etc/roots.pem".into()));
        assert!(read("redis://h").tls_ca("/etc/roots.pem").is_err());
    }
}
