//! What a backend is told before it connects.

use std::{fmt, time::Duration};

use lock_core::{BackendError, BackendErrorKind};

use crate::check::Words;

/// The shortest session that is asked for. A server gives none below two of its ticks, which are rarely shorter.
const SHORTEST_SESSION: Duration = Duration::from_millis(100);

/// Where an ensemble is and how it is used.
///
/// ```
/// use std::time::Duration;
/// let config = lock_zk::ZkConfig::new("zk1:2181,zk2:2181")
///     .chroot("/shop")
///     .credentials("locks", "secret")
///     .session_timeout(Duration::from_secs(10));
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ZkConfig {
    pub(crate) hosts: String,
    pub(crate) chroot: Option<String>,
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) session_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::ZkTls>,
}

impl ZkConfig {
    /// The ensemble of these servers: `HOST[:PORT]` parted by commas, with port 2181 unless given.
    pub fn new(hosts: impl Into<String>) -> Self {
        ZkConfig {
            hosts: hosts.into(),
            chroot: None,
            credentials: None,
            session_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The node under which everything is kept, such as `/shop`. It must exist. The root unless set.
    #[must_use]
    pub fn chroot(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.chroot = (path != "/" && !path.is_empty()).then_some(path);
        self
    }

    /// Digest authentication. Everything that is created is then for this user alone.
    ///
    /// ZooKeeper takes any password here; a wrong one is noticed where a node's access list refuses it.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some((user.into(), password.into()));
        self
    }

    /// How long the server keeps a session whose client has gone silent: the lock of a killed holder is free after it.
    /// 30 s unless set. The server bounds it, by default to 2 to 20 of its ticks.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout.clamp(SHORTEST_SESSION, Duration::from_millis(i32::MAX as u64));
        self
    }

    /// How long connecting may take. 5 s unless set.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Speaks TLS with every server, on the ports that are given, and trusts those whom this says.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: crate::ZkTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Whether the servers and the chroot are written as they must be. Nothing is sent.
    ///
    /// # Errors
    ///
    /// `Config` with what is wrong.
    pub fn check(&self) -> Result<(), BackendError> {
        self.connect_string().map(drop)
    }

    /// The servers as the client wants them.
    ///
    /// # Errors
    ///
    /// `Config` for an empty list, a port that is none, and a chroot that is no path.
    pub(crate) fn connect_string(&self) -> Result<String, BackendError> {
        for host in self.hosts.split(',') {
            check_host(host)?;
        }
        let chroot = self.chroot.as_deref().unwrap_or_default();
        let steps = chroot.split('/').skip(1);
        let path = chroot.is_empty()
            || chroot.starts_with('/') && steps.into_iter().all(|step| !matches!(step, "" | "." | ".."));
        if !path || chroot.contains([',', '?']) || chroot.chars().any(char::is_control) {
            return Err(config(format!("chroot {chroot:?} is no path; write it as /shop or /apps/shop")));
        }
        let hosts: Vec<_> = self.hosts.split(',').map(|host| [self.protocol(), host].concat()).collect();
        Ok(format!("{}{chroot}", hosts.join(",")))
    }
}

impl ZkConfig {
    /// What stands before each server for the client library.
    fn protocol(&self) -> &'static str {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return "tcp+tls://";
        }
        ""
    }

    /// Whether the servers' ports take four-letter commands.
    pub(crate) fn words(&self) -> Words {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return Words::Refused;
        }
        Words::Taken
    }
}

fn check_host(host: &str) -> Result<(), BackendError> {
    // An address of IPv6 stands in brackets and has colons of its own.
    let (name, port) = match host.rsplit_once(']') {
        Some((name, rest)) => (name.trim_start_matches('['), rest.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let named = !name.is_empty() && !name.contains(['/', '@', '[']) && !name.chars().any(char::is_whitespace);
    if named && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Ok(());
    }
    // What stands before an @ may be a password, so that the host is shown without it.
    let shown = host.rsplit('@').next().unwrap_or_default();
    Err(config(format!("server {shown:?} is no HOST:PORT; write them as zk1:2181,zk2:2181")))
}

fn config(message: String) -> BackendError {
    BackendError::new(BackendErrorKind::Config, message)
}

impl fmt::Debug for ZkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkConfig")
            .field("hosts", &self.hosts)
            .field("chroot", &self.chroot)
            .field("user", &self.credentials.as_ref().map(|(user, _)| user))
            .field("session_timeout", &self.session_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_chroots_are_checked_before_anything_is_sent() {
        for (hosts, chroot) in [("a", ""), ("a:1,b:2", "/x/y"), ("[::1]:2181", "/é"), ("127.0.0.1:65535", "/")] {
            let config = ZkConfig::new(hosts).chroot(chroot);
            assert_eq!(config.connect_string().expect("right"), format!("{hosts}{}", chroot.trim_end_matches('/')));
        }
        for (hosts, chroot) in [
            ("", ""),
            ("a,", ""),
            (",a", ""),
            ("a:0", ""),
            ("a:x", ""),
            ("a:65536", ""),
            ("a b", ""),
            ("u:secret@a", ""),
        ] {
            let error = ZkConfig::new(hosts).chroot(chroot).connect_string().expect_err(hosts);
            assert_eq!(error.kind(), BackendErrorKind::Config, "{hosts}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        for chroot in ["x", "//", "/x/", "/./x", "/x/..", "/x,y", "/\0"] {
            assert!(ZkConfig::new("a").chroot(chroot).connect_string().is_err(), "{chroot:?}");
        }
    }
}
