//! Attempts: entering a lock's line, and finding out whether it is the claim's turn.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use lock_core::{Attempt, BackendError, BackendErrorKind, Busy, Claim, ClaimId, Grant, Intent};

use crate::{
    error::{Failure, Fault},
    keys::{LockKeys, token_of, value_of},
    leases::{Lease, ttl_s},
    member::KeepAlive,
    requests::{Entered, Line, enter, entered, stand, stands},
    store::{Age, Store},
    watches::{Events, Told},
};

/// How often one attempt begins anew, when its lease had died, a leader changed or a foreign key was met.
const ROUNDS: usize = 5;

/// A hold shorter than this is not watched: the watch begins later, from the revision at which the hold began.
const UNWATCHED: Duration = Duration::from_millis(100);

/// How long to wait where there is no stream of watches: the next one is then tried.
const UNHEARD: Duration = Duration::from_millis(500);

/// What one round came to.
enum Round {
    Done(Attempt),
    Again,
    /// These keys among the lock's are nobody's claims.
    Foreign(Vec<Vec<u8>>),
}

impl Store {
    /// One attempt. Idempotent by the claim's id: its key is found again under it.
    pub(crate) async fn attempt(self: &Arc<Self>, claim: &Claim) -> Result<Attempt, BackendError> {
        let outcome = self.seek(claim).await;
        let over = match &outcome {
            Ok(Attempt::Granted(_)) => false,
            Ok(Attempt::Busy(_)) => claim.intent == Intent::Try,
            // After a refusal core has nothing to release.
            Err(error) => !error.is_unknown(),
        };
        if over {
            self.retire(claim.id);
        }
        outcome
    }

    async fn seek(self: &Arc<Self>, claim: &Claim) -> Result<Attempt, BackendError> {
        if claim.min_token.get() > 0 {
            return Err(BackendError::new(
                BackendErrorKind::Unsupported,
                "etcd's tokens are its revisions, which cannot be raised to a wanted minimum",
            ));
        }
        let ttl_s = ttl_s(claim.lease, &self.capabilities)?;
        let keys = LockKeys::of(claim);
        let mut foreign = Vec::new();
        for _ in 0..ROUNDS {
            let round = match self.claims.begin(claim.id).revision {
                Some(revision) => self.confirm(claim, &keys, revision).await?,
                None => self.enter(claim, &keys, ttl_s, &foreign).await?,
            };
            match round {
                Round::Done(attempt) => return Ok(attempt),
                Round::Again => {}
                Round::Foreign(keys) => foreign = keys,
            }
        }
        Err(BackendError::unavailable(format!("etcd changed {ROUNDS} times under one attempt; it is made again")))
    }

    /// Writes the claim's key if the lock is free, or behind the others if it may wait.
    async fn enter(
        self: &Arc<Self>,
        claim: &Claim,
        keys: &LockKeys,
        ttl_s: i64,
        foreign: &[Vec<u8>],
    ) -> Result<Round, Failure> {
        let began_at = self.now();
        let (lease, age) = self.lease_for(claim, ttl_s).await?;
        let limit = self.members.limit(claim.lease);
        let request = enter(keys, claim.id, &value_of(&claim.holder), lease.id, claim.intent, foreign);
        let request = &request;
        let asked_at = self.now();
        self.claims.sends(claim.id);
        let writing = self.members.ask(limit, async |member| member.kv().txn(request.clone()).await);
        let (written, kept) = match age {
            Age::Whole => (writing.await, None),
            Age::Used => {
                let (written, kept) = tokio::join!(writing, self.keep_alive(limit, lease.id));
                (written, Some(kept))
            }
        };
        let written = match written {
            Ok(answer) => {
                if !answer.repeated {
                    self.claims.answered(claim.id);
                }
                answer.value
            }
            Err(failure) if failure.fault == Fault::LeaseNotFound => {
                // Nothing was written under this lease, and nothing can be.
                self.claims.answered(claim.id);
                self.claims.update(claim.id, |known| known.lease = None);
                return Ok(Round::Again);
            }
            Err(failure) => {
                if failure.is_final() {
                    self.claims.answered(claim.id);
                }
                return Err(failure);
            }
        };
        match entered(keys, &written) {
            Entered::Granted(at) => {
                self.claims.update(claim.id, |known| known.revision = Some(at.revision));
                match kept {
                    None => Ok(Round::Done(self.grant(claim, keys, at.revision, lease, began_at))),
                    Some(Ok(KeepAlive::Alive { ttl_s, term })) if term == at.term => {
                        let lease = Lease { ttl_s, refreshed_at: asked_at, ..lease };
                        Ok(Round::Done(self.grant(claim, keys, at.revision, lease, began_at)))
                    }
                    Some(Ok(KeepAlive::Dead)) => self.leave_dead(claim, limit, lease).await,
                    // The key is there; whether its lease has its length is asked again.
                    Some(_) => Ok(Round::Again),
                }
            }
            Entered::Line(line) => self.in_line(claim, keys, limit, lease, *line, foreign).await,
        }
    }

    /// Others are there, or the claim itself is already.
    async fn in_line(
        self: &Arc<Self>,
        claim: &Claim,
        keys: &LockKeys,
        limit: Duration,
        lease: Lease,
        line: Line,
        foreign: &[Vec<u8>],
    ) -> Result<Round, Failure> {
        if let Some(own) = &line.own {
            let (revision, bound) = (own.revision, own.lease);
            self.claims.update(claim.id, |known| {
                known.revision = Some(revision);
                if bound != lease.id {
                    // An earlier attempt wrote it, under a lease of which this one did not know.
                    known.stray.push(lease.id);
                    known.lease = Some(Lease { id: bound, refreshed_at: Duration::ZERO, ..lease });
                }
            });
            if revision != line.at.revision {
                return Ok(Round::Again);
            }
        }
        let (line, met) = self.ours(limit, keys, line).await?;
        let alone = if line.own.is_some() { line.ahead.is_none() } else { line.first.is_none() };
        if !alone {
            return Ok(Round::Done(self.busy(claim, line)));
        }
        // Whoever was there has left meanwhile, or nobody was but foreign keys.
        Ok(if line.own.is_none() && met != foreign { Round::Foreign(met) } else { Round::Again })
    }

    /// Finds out whether a claim that has a key holds: its lease lives, its key is there, and nobody is ahead.
    async fn confirm(self: &Arc<Self>, claim: &Claim, keys: &LockKeys, revision: i64) -> Result<Round, Failure> {
        let known = self.claims.begin(claim.id);
        let Some(lease) = known.lease else {
            self.claims.update(claim.id, |known| known.revision = None);
            return Ok(Round::Again);
        };
        let limit = self.members.limit(claim.lease);
        let request = stand(keys, claim.id, revision);
        let request = &request;
        let asked_at = self.now();
        let (seen, kept) = tokio::join!(
            self.members.ask(limit, async |member| member.kv().txn(request.clone()).await),
            self.keep_alive(limit, lease.id)
        );
        let (line, kept) = (stands(keys, &seen?.value), kept?);
        let KeepAlive::Alive { ttl_s, term } = kept else {
            return self.leave_dead(claim, limit, lease).await;
        };
        let bound = line.own.as_ref().map(|own| (own.revision, own.lease));
        if bound != Some((revision, lease.id)) {
            // Someone removed the key or wrote it anew by hand; or it was written late, after an earlier one had gone.
            self.claims.update(claim.id, |known| {
                known.revision = bound.map(|(revision, _)| revision);
                if let Some((_, id)) = bound.filter(|(_, id)| *id != lease.id) {
                    known.stray.push(lease.id);
                    known.lease = Some(Lease { id, refreshed_at: Duration::ZERO, ..lease });
                }
            });
            return Ok(Round::Again);
        }
        if term != line.at.term {
            tracing::debug!(term, at = line.at.term, "the leader changed under a keep-alive, which does not count");
            return Ok(Round::Again);
        }
        let lease = Lease { ttl_s, refreshed_at: asked_at, ..lease };
        self.claims.update(claim.id, |known| known.lease = Some(lease));
        let (line, _) = self.ours(limit, keys, line).await?;
        Ok(Round::Done(match line.ahead {
            None => self.grant(claim, keys, revision, lease, asked_at),
            Some(_) => self.busy(claim, line),
        }))
    }

    /// A claim's lease is dead: its key goes with it, and the claim begins anew, behind all others.
    async fn leave_dead(&self, claim: &Claim, limit: Duration, lease: Lease) -> Result<Round, Failure> {
        // One that has run out is there until its end is written: only after this is its key surely gone.
        self.revoke(limit, lease.id).await?;
        self.claims.update(claim.id, |known| {
            known.lease = None;
            known.revision = None;
            known.held = false;
        });
        Ok(Round::Again)
    }

    /// The claim holds, for what its lease had left at `began_at`.
    fn grant(
        self: &Arc<Self>,
        claim: &Claim,
        keys: &LockKeys,
        revision: i64,
        lease: Lease,
        began_at: Duration,
    ) -> Attempt {
        self.claims.update(claim.id, |known| {
            known.lease = Some(lease);
            known.held = true;
        });
        let mut grant = Grant::new(token_of(revision), lease.remaining(began_at).min(lease.length()));
        grant.disturbed = disturbed(Arc::clone(self), claim.id, keys.claim(claim.id), revision + 1).boxed();
        Attempt::Granted(grant)
    }

    fn busy(&self, claim: &Claim, line: Line) -> Attempt {
        let holders = line.first.as_ref().and_then(crate::requests::Entry::holder).into_iter().collect();
        let mut busy = Busy::new(None, holders);
        if claim.intent == Intent::Wait
            && let Some(ahead) = line.ahead.and_then(|ahead| String::from_utf8(ahead.key).ok())
        {
            // From the revision of the answer on: no end of the one ahead falls between the two (L9).
            let watch = self.watches.watch(ahead, line.at.revision + 1, Events::Deletes);
            busy.changed = Box::pin(async move {
                if watch.await == Told::Broken {
                    // Asking again at once would only find the same as long as there is no stream.
                    tokio::time::sleep(UNHEARD).await;
                }
            });
        }
        Attempt::Busy(busy)
    }
}

/// Hints that the key of a hold may have been removed or written by others (L8).
fn disturbed(
    store: Arc<Store>,
    claim: ClaimId,
    key: String,
    from: i64,
) -> impl stream::Stream<Item = ()> + Send + 'static {
    let begin = (store, key, from, UNWATCHED);
    stream::unfold(begin, move |(store, key, mut from, mut pause)| async move {
        loop {
            tokio::time::sleep(pause).await;
            let told = store.watches.watch(key.clone(), from, Events::All).await;
            (from, pause) = match told {
                Told::Changed(revision) => (revision + 1, Duration::ZERO),
                Told::Compacted(revision) => (revision, Duration::ZERO),
                Told::Broken => (from, UNHEARD),
            };
            // What this client itself has written is no news: the extension that wrote it looks at the key as well.
            let own = matches!(told, Told::Changed(revision) if store.claims.get(claim).is_some_and(|known| {
                known.moving.is_some() || revision <= known.rebound_at
            }));
            if !own {
                return Some(((), (store, key, from, pause)));
            }
        }
    })
}
