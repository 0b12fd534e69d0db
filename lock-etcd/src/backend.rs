//! The backend: core's calls, and what connecting asks for.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Capabilities, Claim, Extension, Finding, LockRecord, Release, Selector, Usage,
};

use crate::{
    capabilities, check,
    claims::Claims,
    config::EtcdConfig,
    error::Failure,
    keys::LockKeys,
    leases::{IdleLeases, seconds},
    members::Members,
    store::Store,
    watches::Watches,
};

/// Locks as keys of an etcd cluster, each bound to a lease.
#[derive(Debug)]
pub struct EtcdBackend {
    store: Arc<Store>,
}

impl EtcdBackend {
    /// What a cluster with etcd's default settings promises, without asking one.
    #[must_use]
    pub fn etcd_capabilities() -> Capabilities {
        capabilities::of_etcd(None)
    }

    /// Connects to the cluster of `config`. One member that answers is enough.
    ///
    /// It asks for the shortest lease there is, which says what the cluster's settings allow.
    ///
    /// # Errors
    ///
    /// `Config` for endpoints that are none, TLS files that cannot be read, and a refused user or password.
    /// `Unavailable` if no member answers within the time to connect. `Refused` if the cluster is full or the user may
    /// not ask.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, a lease without keys may be left for a few seconds.
    pub async fn connect(config: &EtcdConfig) -> Result<Self, BackendError> {
        let members = Arc::new(Members::new(config)?);
        let limit = config.connect_timeout;
        // Each member gets its share of the time, so that one that is silent leaves some for the others.
        let shares = u32::try_from(config.endpoints.len()).unwrap_or(u32::MAX).max(1);
        let asked = members.ask(limit / shares, async |member| member.lease().grant(1, None).await);
        let shortest = asked.await?.value;
        // Opens the stream that later keep-alives go over, which needs a lease; none of these two needs an answer.
        let _ = members.ask(limit, async |member| member.keep_alive(shortest.id()).await).await;
        let _ = members.ask(limit, async |member| member.lease().revoke(shortest.id()).await).await;
        let store = Store {
            watches: Watches::new(Arc::clone(&members)),
            members,
            claims: Claims::default(),
            idle: IdleLeases::default(),
            capabilities: capabilities::of_etcd(Some(seconds(shortest.ttl()))),
        };
        Ok(EtcdBackend { store: Arc::new(store) })
    }
}

#[async_trait]
impl Backend for EtcdBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.store.capabilities
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        self.store.attempt(claim).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        self.store.extend(claim, lease).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        Ok(self.store.release(claim).await?)
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        self.store.inspect(selector).await
    }

    async fn check(&self, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        check::check(&self.store, usage).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

impl Store {
    /// Deletes a claim's key, and revokes its leases where a write under one may yet come.
    async fn release(self: &Arc<Self>, claim: &Claim) -> Result<Release, Failure> {
        let key = LockKeys::of(claim).claim(claim.id);
        let key = &key;
        let limit = self.members.limit(claim.lease);
        let answer = self.members.ask(limit, async |member| member.kv().delete(key.as_str(), None).await).await?;
        let removed = answer.value.deleted() > 0;
        if let Some(known) = self.claims.get(claim.id) {
            if known.is_settled() {
                if removed || known.revision.is_none() {
                    self.retire(claim.id);
                } else if let Some(known) = self.claims.forget(claim.id) {
                    // The key went without us, and its lease probably with it.
                    self.revoke_behind(known.leases().collect());
                }
            } else {
                // A write that was never answered is stopped by the end of its lease, and by nothing else (L10).
                for id in known.leases() {
                    self.revoke(limit, id).await?;
                }
                self.claims.forget(claim.id);
            }
        }
        if !removed && answer.repeated {
            // The first request may have removed it: core asks again, and knows then what "absent" means (L5).
            return Err(Failure::ambiguous());
        }
        Ok(if removed { Release::Removed } else { Release::Absent })
    }
}
