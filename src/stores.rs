//! Which stores this build can reach, for programs that show or compare them.

#[cfg(feature = "zookeeper")]
use std::time::Duration;

use lock_core::{Backend as _, Capabilities, MemoryBackend};

/// A kind of store that this build has a backend for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreKind {
    /// What its URLs begin with, the usual one first.
    pub schemes: &'static [&'static str],
    /// What such a store promises unless its options change it.
    pub capabilities: Capabilities,
}

/// The stores that this build has backends for, with what each guarantees. Connects to nothing.
///
/// ```
/// let names: Vec<_> = leasehold::stores().into_iter().map(|kind| kind.capabilities.store).collect();
/// assert!(names.contains(&"memory".into()));
/// ```
#[must_use]
pub fn stores() -> Vec<StoreKind> {
    let kind = |schemes, capabilities| StoreKind { schemes, capabilities };
    vec![
        kind(&["memory:"], MemoryBackend::new().capabilities().clone()),
        #[cfg(feature = "sqlite")]
        kind(&["sqlite:"], lock_sql::SqlBackend::sqlite_capabilities()),
        #[cfg(feature = "redis")]
        kind(&["redis:", "rediss:"], lock_redis::RedisBackend::redis_capabilities()),
        #[cfg(feature = "postgres")]
        kind(&["postgres:", "postgresql:"], lock_sql::SqlBackend::postgres_capabilities()),
        #[cfg(feature = "mysql")]
        kind(&["mysql:", "mariadb:"], lock_sql::SqlBackend::mysql_capabilities()),
        #[cfg(feature = "etcd")]
        kind(&["etcd:", "etcds:"], lock_etcd::EtcdBackend::etcd_capabilities()),
        #[cfg(feature = "zookeeper")]
        kind(&["zk:"], lock_zk::ZkBackend::promises(DEFAULT_LEASE)),
    ]
}

/// The lease of a client that was told none; on a store of sessions, what it asks for.
#[cfg(feature = "zookeeper")]
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
