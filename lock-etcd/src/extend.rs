//! Extensions: a keep-alive where the lease has the wanted length, and another lease where it has not (L6).

use std::{sync::Arc, time::Duration};

use etcd_client::TxnOpResponse;
use lock_core::{BackendError, Claim, Extension};

use crate::{
    claims::Known,
    error::{Failure, Fault},
    keys::LockKeys,
    leases::{Lease, ttl_s},
    member::KeepAlive,
    requests::{At, rebind, stand, stands},
    store::Store,
};

/// How often one extension begins anew, when another one or a new leader came in between.
const ROUNDS: usize = 5;

/// Claims of other clients have made an unknown number of leases; ours for them are counted from here.
const BORROWED: u32 = 1 << 31;

impl Store {
    /// Makes what is left at least `lease`, if the claim holds.
    pub(crate) async fn extend(self: &Arc<Self>, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        let ttl_s = ttl_s(lease, &self.capabilities)?;
        let keys = LockKeys::of(claim);
        for _ in 0..ROUNDS {
            let asked_at = self.now();
            let Some((known, revision, bound)) = self.held(claim, &keys).await? else {
                return Ok(Extension::NotHeld);
            };
            let extended = match known.moving {
                // Whether an earlier extension got through is settled before anything is promised.
                Some(longer) => self.rebind(claim, &keys, revision, bound, longer).await?,
                None if bound.ttl_s == ttl_s => self.refresh(claim, &keys, revision, bound).await?,
                None if bound.remaining(asked_at) >= lease => {
                    self.verify(claim, &keys, revision, bound, asked_at).await?
                }
                None => self.lengthen(claim, &keys, revision, bound, ttl_s).await?,
            };
            if let Some(extension) = extended {
                return Ok(extension);
            }
        }
        Err(BackendError::unavailable(format!("etcd changed {ROUNDS} times under one extension; the hold goes on")))
    }

    /// What is known of a claim that holds. One of another client is looked up.
    async fn held(&self, claim: &Claim, keys: &LockKeys) -> Result<Option<(Known, i64, Lease)>, Failure> {
        if let Some(known) = self.claims.get(claim.id) {
            let place = known.lease.zip(known.revision).filter(|_| known.held);
            return Ok(place.map(|(lease, revision)| (known, revision, lease)));
        }
        let limit = self.members.limit(claim.lease);
        let Some(own) = self.own(limit, keys, claim.id).await?.1 else { return Ok(None) };
        let request = stand(keys, claim.id, own.revision);
        let request = &request;
        let seen = self.members.ask(limit, async |member| member.kv().txn(request.clone()).await).await?.value;
        let (line, _) = self.ours(limit, keys, stands(keys, &seen)).await?;
        if line.ahead.is_some() || line.own.is_none() {
            return Ok(None);
        }
        let asked_at = self.now();
        let left =
            self.members.ask(limit, async |member| member.lease().time_to_live(own.lease, None).await).await?.value;
        if left.ttl() <= 0 {
            return Ok(None);
        }
        let used = crate::leases::seconds(left.granted_ttl() - left.ttl());
        let lease = Lease { id: own.lease, ttl_s: left.granted_ttl(), refreshed_at: asked_at.saturating_sub(used) };
        Ok(Some((Known::default(), own.revision, lease)))
    }

    /// Whether what is known of a claim has changed since: another extension came in between.
    fn has_moved(&self, claim: &Claim, bound: Lease) -> bool {
        self.claims
            .get(claim.id)
            .is_some_and(|known| known.moving.is_some() || known.lease.is_some_and(|lease| lease.id != bound.id))
    }

    /// Keeps the lease alive, and looks whether the key is still bound to it.
    async fn refresh(
        &self,
        claim: &Claim,
        keys: &LockKeys,
        revision: i64,
        bound: Lease,
    ) -> Result<Option<Extension>, Failure> {
        let limit = self.members.limit(claim.lease);
        let asked_at = self.now();
        let (own, kept) = tokio::join!(self.own(limit, keys, claim.id), self.keep_alive(limit, bound.id));
        let ((at, own), kept) = (own?, kept?);
        let here = own.is_some_and(|own| own.revision == revision && own.lease == bound.id);
        let KeepAlive::Alive { ttl_s, term } = kept else {
            return Ok(if self.has_moved(claim, bound) { None } else { Some(Extension::NotHeld) });
        };
        if !here {
            return Ok(if self.has_moved(claim, bound) { None } else { Some(Extension::NotHeld) });
        }
        if term != at.term {
            tracing::debug!(term, at = at.term, "the leader changed under a keep-alive, which does not count");
            return Ok(None);
        }
        let lease = Lease { ttl_s, refreshed_at: asked_at, ..bound };
        self.claims.update(claim.id, |known| {
            if let Some(kept) = known.lease.as_mut().filter(|kept| kept.id == lease.id) {
                // Answers may come in another order than they were asked for.
                kept.refreshed_at = kept.refreshed_at.max(lease.refreshed_at);
            }
        });
        Ok(Some(Extension::Extended(lease.length())))
    }

    /// Looks whether the key is there: its lease is long enough as it is.
    async fn verify(
        &self,
        claim: &Claim,
        keys: &LockKeys,
        revision: i64,
        bound: Lease,
        asked_at: Duration,
    ) -> Result<Option<Extension>, Failure> {
        let own = self.own(self.members.limit(claim.lease), keys, claim.id).await?.1;
        if own.is_some_and(|own| own.revision == revision && own.lease == bound.id) {
            return Ok(Some(Extension::Extended(bound.remaining(asked_at))));
        }
        Ok(if self.has_moved(claim, bound) { None } else { Some(Extension::NotHeld) })
    }

    /// Binds the key to a lease of the wanted length.
    async fn lengthen(
        self: &Arc<Self>,
        claim: &Claim,
        keys: &LockKeys,
        revision: i64,
        bound: Lease,
        ttl_s: i64,
    ) -> Result<Option<Extension>, Failure> {
        let made = self.claims.get(claim.id).map_or(BORROWED + fastrand::u32(..BORROWED), |known| known.leases_made);
        let (longer, _) = self.make_lease(claim, ttl_s, made).await?;
        let mut first = true;
        self.claims.update(claim.id, |known| {
            first = known.moving.is_none() && known.lease.is_some_and(|lease| lease.id == bound.id);
            if first {
                known.moving = Some(longer);
            }
        });
        if !first {
            self.revoke_behind(vec![longer.id]);
            return Ok(None);
        }
        self.rebind(claim, keys, revision, bound, longer).await
    }

    /// Binds the key to the other lease, or finds that it is bound already. The old one then has no key.
    async fn rebind(
        self: &Arc<Self>,
        claim: &Claim,
        keys: &LockKeys,
        revision: i64,
        bound: Lease,
        longer: Lease,
    ) -> Result<Option<Extension>, Failure> {
        let key = keys.claim(claim.id);
        let request = rebind(&key, revision, bound.id, longer.id);
        let request = &request;
        let limit = self.members.limit(claim.lease);
        let answer = match self.members.ask(limit, async |member| member.kv().txn(request.clone()).await).await {
            Ok(answer) => answer.value,
            Err(failure) if failure.fault == Fault::LeaseNotFound => {
                // It has run out before the key could be bound to it, so that it never will be.
                self.claims.update(claim.id, |known| {
                    known.moving = known.moving.filter(|moving| moving.id != longer.id);
                });
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        let moved = answer.succeeded()
            || answer.op_responses().iter().any(|op| match op {
                TxnOpResponse::Get(found) => {
                    found.kvs().iter().any(|kv| kv.create_revision() == revision && kv.lease() == longer.id)
                }
                _ => false,
            });
        let revision_of_move = At::of(answer.header()).revision;
        let mut known_still = false;
        self.claims.update(claim.id, |known| {
            known_still = true;
            if known.moving.is_some_and(|moving| moving.id == longer.id) {
                known.moving = None;
                if moved {
                    known.lease = Some(longer);
                    known.rebound_at = revision_of_move;
                }
            }
        });
        if !moved {
            self.revoke_behind(vec![longer.id]);
            return Ok(if self.has_moved(claim, bound) { None } else { Some(Extension::NotHeld) });
        }
        // A claim that was released meanwhile has no key; one of another client keeps its longer lease.
        let over = if known_still { vec![bound.id] } else { Vec::new() };
        self.revoke_behind(over);
        // What is left is counted from the start of the call that is answered: another round says how much.
        Ok(None)
    }
}
