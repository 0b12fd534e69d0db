//! What a backend is told before it reaches its cluster.

use std::{fmt, path::PathBuf, time::Duration};

/// Where an etcd cluster is and how it is used. Its `Debug` shows no password.
///
/// ```
/// let config = lock_etcd::EtcdConfig::new(["10.0.0.1:2379", "10.0.0.2:2379"]).user("shop", "secret");
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct EtcdConfig {
    pub(crate) endpoints: Vec<String>,
    pub(crate) user: Option<(String, String)>,
    pub(crate) tls: Option<EtcdTls>,
    pub(crate) connect_timeout: Duration,
    pub(crate) request_timeout: Duration,
}

impl EtcdConfig {
    /// The cluster whose members listen at these addresses, each `HOST:PORT`. One that answers is enough.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> Self {
        EtcdConfig {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            user: None,
            tls: None,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(5),
        }
    }

    /// Who asks, where the cluster wants to know. The user needs read and write permission for the keys that begin with
    /// `leasehold/`.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Speaks TLS with the members.
    #[must_use]
    pub fn tls(mut self, tls: EtcdTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long it may take until the first member answers. 5 s unless set.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long one request waits for a member's answer, at most. 5 s unless set.
    ///
    /// With several members a request waits for a sixth of the lock's lease and at most a second, then asks the next.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One with an `@` is no address, and what it has instead may be a misplaced password.
        let endpoints: Vec<_> =
            self.endpoints.iter().map(|endpoint| if endpoint.contains('@') { "***" } else { endpoint }).collect();
        f.debug_struct("EtcdConfig")
            .field("endpoints", &endpoints)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("tls", &self.tls)
            .field("connect_timeout", &self.connect_timeout)
            .field("request_timeout", &self.request_timeout)
            .finish()
    }
}

/// How TLS is spoken: files in PEM form, read when connecting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdTls {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl EtcdTls {
    /// Members are trusted if the system's authorities vouch for them, and no certificate of ours is shown.
    #[must_use]
    pub fn new() -> Self {
        EtcdTls::default()
    }

    /// Trusts the authorities in this file, and no others.
    #[must_use]
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Shows this certificate, whose private key is in the other file.
    #[must_use]
    pub fn identity(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }
}
