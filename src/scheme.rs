//! The schemes of URLs, and which of them this build has a backend for.

use lock_core::{Error, ErrorKind};

/// A scheme that has a backend here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Memory,
    #[cfg(feature = "etcd")]
    Etcd,
    /// etcd by TLS.
    #[cfg(feature = "etcd")]
    Etcds,
    #[cfg(feature = "redis")]
    Redis,
    /// Redis by TLS.
    #[cfg(feature = "redis")]
    Rediss,
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "zookeeper")]
    ZooKeeper,
    /// ZooKeeper by TLS.
    #[cfg(feature = "zookeeper-tls")]
    ZooKeeperTls,
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "mysql")]
    Mysql,
}

/// What becomes of a scheme that is known.
enum Known {
    Here(Scheme),
    /// The backend exists and this build is without it.
    #[cfg_attr(
        all(
            feature = "etcd",
            feature = "mysql",
            feature = "postgres",
            feature = "redis",
            feature = "sqlite",
            feature = "zookeeper",
            feature = "zookeeper-tls"
        ),
        expect(dead_code, reason = "every backend is compiled in")
    )]
    NeedsFeature(&'static str),
}

/// The schemes that a URL can begin with.
const AVAILABLE: &str = "memory:, sqlite:, redis:, rediss:, etcd:, etcds:, postgres:, mysql:, zk: and zks:";

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
            #[cfg(feature = "redis")]
            "redis" => Known::Here(Scheme::Redis),
            #[cfg(feature = "redis")]
            "rediss" => Known::Here(Scheme::Rediss),
            #[cfg(not(feature = "redis"))]
            "redis" | "rediss" => Known::NeedsFeature("redis"),
            #[cfg(feature = "sqlite")]
            "sqlite" => Known::Here(Scheme::Sqlite),
            #[cfg(not(feature = "sqlite"))]
            "sqlite" => Known::NeedsFeature("sqlite"),
            #[cfg(feature = "etcd")]
            "etcd" => Known::Here(Scheme::Etcd),
            #[cfg(feature = "etcd")]
            "etcds" => Known::Here(Scheme::Etcds),
            #[cfg(not(feature = "etcd"))]
            "etcd" | "etcds" => Known::NeedsFeature("etcd"),
            #[cfg(feature = "zookeeper")]
            "zk" => Known::Here(Scheme::ZooKeeper),
            #[cfg(feature = "zookeeper-tls")]
            "zks" => Known::Here(Scheme::ZooKeeperTls),
            #[cfg(not(feature = "zookeeper-tls"))]
            "zks" => Known::NeedsFeature("zookeeper-tls"),
            #[cfg(not(feature = "zookeeper"))]
            "zk" => Known::NeedsFeature("zookeeper"),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Known::Here(Scheme::Postgres),
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => Known::NeedsFeature("postgres"),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => Known::Here(Scheme::Mysql),
            #[cfg(not(feature = "mysql"))]
            "mysql" | "mariadb" => Known::NeedsFeature("mysql"),
            _ => return Err(config(format!("unknown store {name}:; the known ones are {AVAILABLE}"))),
        };
        match known {
            Known::Here(scheme) => Ok(scheme),
            Known::NeedsFeature(feature) => Err(config(format!(
                "store {name}: is not compiled in; build leasehold with its Cargo feature \"{feature}\""
            ))),
        }
    }

    /// The options that a store of this scheme takes.
    pub(crate) fn options(self) -> Vec<&'static str> {
        const SHARED: &[&str] = &["namespace", "lease", "wait", "connect_timeout", "request_timeout", "fence_base"];
        #[cfg(feature = "metrics")]
        const SEEN: &[&str] = &["metric_group"];
        #[cfg(not(feature = "metrics"))]
        const SEEN: &[&str] = &[];
        #[cfg(any(
            feature = "etcd",
            feature = "mysql",
            feature = "postgres",
            feature = "redis",
            feature = "zookeeper"
        ))]
        const PASSWORD: &[&str] = &["password_file", "password_env"];
        let own: &[&[&str]] = match self {
            Scheme::Memory => &[],
            #[cfg(feature = "redis")]
            Scheme::Redis => &[PASSWORD],
            #[cfg(feature = "redis")]
            Scheme::Rediss => &[PASSWORD, &["tls_ca"]],
            #[cfg(feature = "etcd")]
            Scheme::Etcd => &[PASSWORD],
            #[cfg(feature = "etcd")]
            Scheme::Etcds => &[PASSWORD, &["tls_ca", "tls_cert", "tls_key"]],
            #[cfg(feature = "zookeeper")]
            Scheme::ZooKeeper => &[PASSWORD],
            #[cfg(feature = "zookeeper-tls")]
            Scheme::ZooKeeperTls => &[PASSWORD, &["tls_ca", "tls_cert", "tls_key"]],
            #[cfg(feature = "sqlite")]
            Scheme::Sqlite => &[&["max_connections", "max_page_count"]],
            #[cfg(feature = "postgres")]
            Scheme::Postgres => &[PASSWORD, &["max_connections", "table", "listen"], lock_sql::POSTGRES_OPTIONS],
            #[cfg(feature = "mysql")]
            Scheme::Mysql => &[PASSWORD, &["max_connections", "table"], lock_sql::MYSQL_OPTIONS],
        };
        [SHARED, SEEN, &own.concat()].concat()
    }

    /// The most connections that a store of this scheme may have.
    pub(crate) fn max_connections(self) -> u32 {
        match self {
            Scheme::Memory => 1,
            #[cfg(feature = "etcd")]
            Scheme::Etcd | Scheme::Etcds => 1,
            #[cfg(feature = "redis")]
            Scheme::Redis | Scheme::Rediss => 1,
            #[cfg(feature = "zookeeper")]
            Scheme::ZooKeeper => 1,
            #[cfg(feature = "zookeeper-tls")]
            Scheme::ZooKeeperTls => 1,
            // SQLite writes through one connection; more would only wait for each other.
            #[cfg(feature = "sqlite")]
            Scheme::Sqlite => 1,
            #[cfg(feature = "postgres")]
            Scheme::Postgres => 10_000,
            #[cfg(feature = "mysql")]
            Scheme::Mysql => 10_000,
        }
    }

    #[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres", feature = "redis", feature = "zookeeper"))]
    /// Whether the store knows whom it speaks to by a password alone.
    pub(crate) fn has_default_user(self) -> bool {
        match self {
            #[cfg(feature = "redis")]
            Scheme::Redis | Scheme::Rediss => true,
            _ => false,
        }
    }

    /// The scheme as a URL begins with it.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Scheme::Memory => "memory:",
            #[cfg(feature = "etcd")]
            Scheme::Etcd => "etcd:",
            #[cfg(feature = "etcd")]
            Scheme::Etcds => "etcds:",
            #[cfg(feature = "redis")]
            Scheme::Redis => "redis:",
            #[cfg(feature = "redis")]
            Scheme::Rediss => "rediss:",
            #[cfg(feature = "sqlite")]
            Scheme::Sqlite => "sqlite:",
            #[cfg(feature = "zookeeper")]
            Scheme::ZooKeeper => "zk:",
            #[cfg(feature = "zookeeper-tls")]
            Scheme::ZooKeeperTls => "zks:",
            #[cfg(feature = "postgres")]
            Scheme::Postgres => "postgres:",
            #[cfg(feature = "mysql")]
            Scheme::Mysql => "mysql:",
        }
    }
}

/// An error of the configuration.
pub(crate) fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
