//! A backend of one's own: locks in a map, with nothing but the four atomic things that the trait asks for.
//!
//! It is polled, keeps no queue and gives no hints of loss, which is the least that a backend may do; core does the
//! rest. A real one does the same four things in a store, each in one atomic operation there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Busy, Capabilities, Claim, ClaimId, Extension, FencingToken, Grant, Holder,
    HolderInfo, LockKind, LockName, LockRecord, Namespace, Release, Selector, Verdict,
};

type Key = (Namespace, LockName, LockKind);

/// Locks in a map. Clones share it, as connections share a server.
#[derive(Clone, Debug)]
pub struct OwnBackend {
    capabilities: Arc<Capabilities>,
    rows: Arc<Mutex<HashMap<Key, Row>>>,
}

/// One name's last claim. It stays when it has run out or is released, so that the next token is larger (L13).
#[derive(Debug)]
struct Row {
    claim: Option<ClaimId>,
    token: u64,
    until: Instant,
    since: SystemTime,
    info: Arc<HolderInfo>,
}

impl Row {
    fn in_force(&self, now: Instant) -> bool {
        self.claim.is_some() && self.until > now
    }

    fn holder(&self, now: Instant) -> Option<Holder> {
        let claim = self.claim.filter(|_| self.in_force(now))?;
        let mut holder = Holder::new(claim, FencingToken::new(self.token), &self.info);
        holder.since = Some(self.since);
        holder.remaining = Some(self.until.saturating_duration_since(now));
        Some(holder)
    }
}

impl OwnBackend {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let mut capabilities = Capabilities::new("own");
        capabilities.token_source = "a counter for each name".into();
        capabilities.exclusion.clock_step = Verdict::Yes;
        capabilities.token_order.clock_step = Verdict::Yes;
        capabilities.token_order.client_pause = Verdict::Yes;
        OwnBackend { capabilities: Arc::new(capabilities), rows: Arc::default() }
    }

    /// One atomic operation of the store.
    fn atomically<T>(&self, operation: impl FnOnce(&mut HashMap<Key, Row>, Instant) -> T) -> T {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        operation(&mut rows, Instant::now())
    }

    fn key(claim: &Claim) -> Key {
        (claim.namespace.clone(), claim.name.clone(), claim.kind)
    }
}

impl Default for OwnBackend {
    fn default() -> Self {
        OwnBackend::new()
    }
}

#[async_trait]
impl Backend for OwnBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        Ok(self.atomically(|rows, now| {
            let row = rows.entry(Self::key(claim)).or_insert_with(|| Row {
                claim: None,
                token: 0,
                until: now,
                since: SystemTime::now(),
                info: Arc::clone(&claim.holder),
            });
            let ours = row.claim == Some(claim.id) && row.in_force(now);
            if let Some(holder) = row.holder(now).filter(|_| !ours) {
                return Attempt::Busy(Busy::new(holder.remaining, vec![holder]));
            }
            if ours {
                row.until = row.until.max(now + claim.lease);
            } else {
                let token = (row.token + 1).max(claim.min_token.get());
                let info = Arc::clone(&claim.holder);
                let until = now + claim.lease;
                *row = Row { claim: Some(claim.id), token, until, since: SystemTime::now(), info };
            }
            Attempt::Granted(Grant::new(FencingToken::new(row.token), row.until.saturating_duration_since(now)))
        }))
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        Ok(self.atomically(|rows, now| {
            let row = rows.get_mut(&Self::key(claim)).filter(|row| row.claim == Some(claim.id) && row.in_force(now));
            row.map_or(Extension::NotHeld, |row| {
                row.until = row.until.max(now + lease);
                Extension::Extended(row.until.saturating_duration_since(now))
            })
        }))
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        Ok(self.atomically(|rows, now| {
            let row = rows.get_mut(&Self::key(claim)).filter(|row| row.claim == Some(claim.id));
            row.map_or(Release::Absent, |row| {
                let was_in_force = row.in_force(now);
                row.claim = None;
                if was_in_force { Release::Removed } else { Release::Absent }
            })
        }))
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        Ok(self.atomically(|rows, now| {
            rows.iter()
                .filter(|((namespace, name, _), _)| {
                    namespace == selector.namespace() && selector.matches(name.as_str())
                })
                .filter_map(|((namespace, name, kind), row)| {
                    Some(LockRecord::new(namespace, name, *kind, vec![row.holder(now)?]))
                })
                .collect()
        }))
    }

    async fn close(&self) {}
}
