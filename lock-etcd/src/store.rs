//! What one backend has: the members, the watches, its claims and its idle leases; and the smallest calls on them.

use std::{sync::Arc, time::Duration};

use lock_core::{Capabilities, Claim, ClaimId, Clock as _, SystemClock};

use crate::{
    claims::{Claims, Known},
    error::{Failure, Fault},
    keys::LockKeys,
    leases::{IdleLeases, Lease, lease_id},
    member::KeepAlive,
    members::{Answer, Members},
    requests::{At, Entry, Line, entries, everyone},
    watches::Watches,
};

/// How many idle leases are revoked at once when a client closes.
const REVOKED_AT_ONCE: usize = 16;

/// The inside of a backend. Shared with the tasks that clean up behind it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) members: Arc<Members>,
    pub(crate) watches: Watches,
    pub(crate) claims: Claims,
    pub(crate) idle: IdleLeases,
    pub(crate) capabilities: Capabilities,
}

/// Whether a lease has its whole length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// As good as: it was made in this call, or made or kept alive so shortly before that the difference is within what
    /// core takes off every lease anyway.
    Whole,
    /// It must be kept alive in this call.
    Used,
}

impl Store {
    /// By the clock that counts suspended time: leases run on while this machine sleeps (L3).
    pub(crate) fn now(&self) -> Duration {
        SystemClock.now()
    }

    /// A lease for a claim: its own, an idle one, or a new one.
    pub(crate) async fn lease_for(&self, claim: &Claim, ttl_s: i64) -> Result<(Lease, Age), Failure> {
        let known = self.claims.begin(claim.id);
        if let Some(lease) = known.lease {
            return Ok((lease, Age::Used));
        }
        let (lease, age) = match self.idle.take(ttl_s, self.now()) {
            Some(lease) if lease.remaining(self.now()) >= lease.length() - lease.length() / 100 => (lease, Age::Whole),
            Some(lease) => (lease, Age::Used),
            None => self.make_lease(claim, ttl_s, known.leases_made).await?,
        };
        self.claims.update(claim.id, |known| known.lease = Some(lease));
        Ok((lease, age))
    }

    /// Makes the n-th lease of a claim. One of unknown outcome is noted, and revoked with the claim.
    pub(crate) async fn make_lease(&self, claim: &Claim, ttl_s: i64, n: u32) -> Result<(Lease, Age), Failure> {
        let id = lease_id(claim.id, n);
        self.claims.update(claim.id, |known| {
            known.leases_made = n.wrapping_add(1);
            known.stray.push(id);
        });
        let refreshed_at = self.now();
        let options = etcd_client::LeaseGrantOptions::new().with_id(id);
        let limit = self.members.limit(claim.lease);
        let options = &options;
        let asked =
            self.members.ask(limit, async |member| member.lease().grant(ttl_s, Some(options.clone())).await).await;
        let made = match asked {
            Ok(Answer { value, repeated: false }) => (Lease { id, ttl_s: value.ttl(), refreshed_at }, Age::Whole),
            Ok(Answer { value, repeated: true }) => (Lease { id, ttl_s: value.ttl(), refreshed_at }, Age::Used),
            // An earlier request made it whose answer was lost.
            Err(failure) if failure.fault == Fault::LeaseExists => {
                (Lease { id, ttl_s, refreshed_at: Duration::ZERO }, Age::Used)
            }
            Err(failure) => {
                if failure.is_final() {
                    self.claims.update(claim.id, |known| known.stray.retain(|stray| *stray != id));
                }
                return Err(failure);
            }
        };
        self.claims.update(claim.id, |known| known.stray.retain(|stray| *stray != id));
        Ok(made)
    }

    pub(crate) async fn keep_alive(&self, limit: Duration, id: i64) -> Result<KeepAlive, Failure> {
        Ok(self.members.ask(limit, async |member| member.keep_alive(id).await).await?.value)
    }

    /// Revokes a lease: its keys go, and nothing can be bound to it any more.
    pub(crate) async fn revoke(&self, limit: Duration, id: i64) -> Result<(), Failure> {
        match self.members.ask(limit, async |member| member.lease().revoke(id).await).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.fault == Fault::LeaseNotFound => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Revokes leases without waiting. One that fails ends by itself.
    pub(crate) fn revoke_behind(self: &Arc<Self>, ids: Vec<i64>) {
        if ids.is_empty() {
            return;
        }
        let store = Arc::clone(self);
        tokio::spawn(async move {
            let limit = store.members.limit(Duration::MAX);
            for id in ids {
                if let Err(failure) = store.revoke(limit, id).await {
                    tracing::debug!(%failure, "a lease is left to run out");
                }
            }
        });
    }

    /// Forgets a claim that has no key, and keeps its lease for later claims where no write can come under it.
    pub(crate) fn retire(self: &Arc<Self>, id: ClaimId) {
        let Some(known) = self.claims.forget(id) else { return };
        self.reuse_or_revoke(&known);
    }

    /// A claim's key is gone, and so its lease serves others if no write under it can come any more.
    pub(crate) fn reuse_or_revoke(self: &Arc<Self>, known: &Known) {
        let kept = known.is_settled() && known.lease.is_none_or(|lease| self.idle.put(lease, self.now()));
        if !kept {
            self.revoke_behind(known.leases().collect());
        }
    }

    /// A claim's own key, by a read that a majority stands behind.
    pub(crate) async fn own(
        &self,
        limit: Duration,
        keys: &LockKeys,
        id: ClaimId,
    ) -> Result<(At, Option<Entry>), Failure> {
        let key = keys.claim(id);
        let key = &key;
        let found = self.members.ask(limit, async |member| member.kv().get(key.as_str(), None).await).await?.value;
        Ok((At::of(found.header()), entries(keys, &found).into_iter().next()))
    }

    /// A line without foreign keys, and those (L17). Only where one was met is everything read.
    pub(crate) async fn ours(
        &self,
        limit: Duration,
        keys: &LockKeys,
        line: Line,
    ) -> Result<(Line, Vec<Vec<u8>>), Failure> {
        let is_foreign = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.claim.is_none());
        if !is_foreign(&line.ahead) && !is_foreign(&line.first) {
            return Ok((line, Vec::new()));
        }
        let options = everyone(keys);
        let options = &options;
        let start = keys.start.as_str();
        let found = self.members.ask(limit, async |member| member.kv().get(start, Some(options.clone())).await).await?;
        let (mut claims, mut foreign) = (Vec::new(), Vec::new());
        for entry in entries(keys, &found.value) {
            match entry.claim {
                Some(_) => claims.push(entry),
                None => foreign.push(entry.key),
            }
        }
        foreign.sort_unstable();
        let before = line.own.as_ref().map_or(0, |own| own.revision);
        let ahead = claims.iter().rev().find(|entry| entry.revision < before).cloned();
        let at = At::of(found.value.header());
        Ok((Line { at, own: line.own, ahead, first: claims.into_iter().next() }, foreign))
    }

    /// Revokes what is idle and lets the connections go.
    pub(crate) async fn close(&self) {
        use futures_util::StreamExt as _;
        let limit = self.members.limit(Duration::from_secs(1));
        let idle = futures_util::stream::iter(self.idle.drain());
        idle.for_each_concurrent(REVOKED_AT_ONCE, async |lease| {
            if let Err(failure) = self.revoke(limit, lease.id).await {
                tracing::debug!(%failure, "an idle lease is left to run out");
            }
        })
        .await;
        self.watches.close();
        self.members.close();
    }
}
