//! The schemes of URLs, and which of them this build has a backend for.

use lock_core::{Error, ErrorKind};

/// A scheme that has a backend here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "etcd")]
    Etcd,
    #[cfg(feature = "etcd")]
    Etcds,
}

/// What becomes of a scheme that is known.
enum Known {
    Here(Scheme),
    /// The backend exists and this build is without it.
    #[cfg_attr(all(feature = "sqlite", feature = "etcd"), expect(dead_code, reason = "every backend is compiled in"))]
    NeedsFeature(&'static str),
    /// This version has no such backend at all.
    NotYet(&'static str),
}

/// The schemes that a URL can begin with today.
const AVAILABLE: &str = "memory:, sqlite:, etcd: and etcds:";

impl Scheme {
    /// The scheme of this name, in any case of letters.
    ///
    /// # Errors
    ///
    /// `Config`, with what would be right: the feature that is missing, or the schemes that there are.
    pub(crate) fn parse(name: &str) -> Result<Self, Error> {
        let name = name.to_ascii_lowercase();
        let known = match name.as_str() {
            "memory" => Known::Here(Scheme::Memory),
            #[cfg(feature = "sqlite")]
            "sqlite" => Known::Here(Scheme::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Known::NeedsFeature("sqlite"),
            "redis" | "rediss" => Known::NotYet("Redis"),
            #[cfg(feature = "etcd")]
            "etcd" => Known::Here(Scheme::Etcd),
            #[cfg(feature = "etcd")]
            "etcds" => Known::Here(Scheme::Etcds),
            #[cfg(not(feature = "etcd"))]
            "etcd" | "etcds" => Known::NeedsFeature("etcd"),
            "zk" => Known::NotYet("ZooKeeper"),
            "postgres" | "postgresql" => Known::NotYet("PostgreSQL"),
            "mysql" | "mariadb" => Known::NotYet("MySQL and MariaDB"),
            _ => return Err(config(format!("unknown store {name}:; the known ones are {AVAILABLE}"))),
        };
        match known {
            Known::Here(scheme) => Ok(scheme),
            Known::NeedsFeature(feature) => Err(config(format!(
                "store {name}: is not compiled in; build leasehold with its Cargo feature \"{feature}\""
            ))),
            Known::NotYet(server) => Err(config(format!(
                "store {name}: has no backend for {server} in leasehold {}; the stores that it has are {AVAILABLE}",
                env!("CARGO_PKG_VERSION")
            ))),
        }
    }

    /// The options that a store of this scheme takes.
    pub(crate) fn options(self) -> &'static [&'static str] {
        const SHARED: &[&str] = &["namespace", "lease", "wait", "connect_timeout", "request_timeout", "fence_base"];
        match self {
            Scheme::Memory => SHARED,
            #[cfg(feature = "sqlite")]
            Scheme::Sqlite => &[
                "namespace",
                "lease",
                "wait",
                "connect_timeout",
                "request_timeout",
                "fence_base",
                "max_connections",
                "max_page_count",
            ],
            #[cfg(feature = "etcd")]
            Scheme::Etcd => SHARED,
            #[cfg(feature = "etcd")]
            Scheme::Etcds => &[
                "namespace",
                "lease",
                "wait",
                "connect_timeout",
                "request_timeout",
                "fence_base",
                "tls_ca",
                "tls_cert",
                "tls_key",
            ],
        }
    }

    /// The scheme as a URL begins with it.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Scheme::Memory => "memory:",
            #[cfg(feature = "sqlite")]
            Scheme::Sqlite => "sqlite:",
            #[cfg(feature = "etcd")]
            Scheme::Etcd => "etcd:",
            #[cfg(feature = "etcd")]
            Scheme::Etcds => "etcds:",
        }
    }
}

/// An error of the configuration.
pub(crate) fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
