//! One play: the steps carried out, and what must hold during and after them.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::{Backend, ClaimId, ErrorKind, FencingToken, Lock, LockClient, LockGuard, Owner, Renew};
use tokio::task::JoinSet;

use super::steps::{CLIENTS, NAMES, OWNERS, Step, Wanted};
use crate::{
    Outcome, Stop, ensure, eventually,
    polls::{Fate, poll_n_then},
};

/// The lease that every play asks for; a store may give more.
const LEASE: Duration = Duration::from_millis(200);

/// Long enough for any call of a store that answers, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Plays of one process do not meet.
static PLAYS: AtomicU64 = AtomicU64::new(0);

/// A grant, as its caller saw it.
#[derive(Clone, Copy, Debug)]
struct Granted {
    name: usize,
    claim: ClaimId,
    token: FencingToken,
    asked_at: Instant,
    returned_at: Instant,
}

#[derive(Default)]
struct Ledger {
    guards: Vec<(usize, LockGuard)>,
    grants: Vec<Granted>,
    /// Claims that a play broke: their holders believe that they hold until they are told.
    broken: Vec<ClaimId>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Ledger>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn granted(&self, name: usize, asked_at: Instant, guard: LockGuard) {
        let grant = Granted {
            name,
            claim: guard.claim_id(),
            token: guard.fencing_token(),
            asked_at,
            returned_at: Instant::now(),
        };
        let mut ledger = self.lock();
        ledger.grants.push(grant);
        ledger.guards.push((name, guard));
    }

    /// Takes a guard out, if there is any.
    fn take(&self, index: usize) -> Option<LockGuard> {
        let mut ledger = self.lock();
        let count = ledger.guards.len();
        (count > 0).then(|| ledger.guards.swap_remove(index % count).1)
    }

    /// L1: a hold that is valid after another was seen valid was valid then too, since a loss is final.
    fn check_exclusion(&self) -> Outcome {
        let ledger = self.lock();
        for (i, (name, first)) in ledger.guards.iter().enumerate() {
            for (other, second) in &ledger.guards[i + 1..] {
                let (one, two) = (first.claim_id(), second.claim_id());
                let apart = name == other && one != two;
                let broken = ledger.broken.contains(&one) || ledger.broken.contains(&two);
                let both = apart && !broken && second.is_held() && first.is_held();
                ensure!("L1.a", !both || !second.is_held(), "two claims are valid at once: {first:?} and {second:?}");
            }
        }
        Ok(())
    }

    /// L13: a claim that was asked for after another was returned has the larger token.
    fn check_tokens(&self) -> Outcome {
        let ledger = self.lock();
        for a in &ledger.grants {
            for b in ledger.grants.iter().filter(|b| b.name == a.name && b.claim != a.claim) {
                ensure!("L13.a", a.token != b.token, "two claims have one token: {a:?} and {b:?}");
                let later = a.returned_at < b.asked_at;
                ensure!("L13.a", !later || a.token < b.token, "{b:?} came after {a:?}");
            }
        }
        Ok(())
    }
}

struct Stage<'a, F> {
    connect: &'a F,
    namespace: String,
    clients: Vec<LockClient>,
    owners: Vec<Owner>,
    shared: Shared,
    waiting: JoinSet<Result<(), lock_core::Error>>,
}

pub(super) async fn play<F, C>(connect: &F, steps: &[Step]) -> Outcome
where
    F: Fn() -> C + Send + Sync,
    C: Future<Output = Outcome<Arc<dyn Backend>>> + Send,
{
    let namespace = format!("play-{}-{}", std::process::id(), PLAYS.fetch_add(1, Ordering::Relaxed));
    let mut stage = Stage {
        connect,
        namespace,
        clients: Vec::new(),
        owners: (0..OWNERS).map(|_| Owner::new()).collect(),
        shared: Shared::default(),
        waiting: JoinSet::new(),
    };
    for _ in 0..CLIENTS {
        let client = stage.client().await?;
        stage.clients.push(client);
    }
    for step in steps {
        stage.step(step.clone()).await?;
        stage.shared.check_exclusion()?;
    }
    stage.end().await
}

impl<F, C> Stage<'_, F>
where
    F: Fn() -> C + Send + Sync,
    C: Future<Output = Outcome<Arc<dyn Backend>>> + Send,
{
    async fn client(&self) -> Outcome<LockClient> {
        let backend = (self.connect)().await?;
        let client = LockClient::builder(backend).namespace(self.namespace.as_str()).lease(LEASE);
        Ok(client.request_timeout(Duration::from_secs(2)).build()?)
    }

    fn lock(&self, wanted: &Wanted) -> Lock {
        let mut lock = self.clients[wanted.client].lock(format!("name {}", wanted.name));
        if let Some(owner) = wanted.owner {
            lock = lock.owner(&self.owners[owner]);
        }
        if let Some(ms) = wanted.max_hold_ms {
            lock = lock.max_hold(Duration::from_millis(ms));
        }
        lock.renew(if wanted.renewed { Renew::Auto } else { Renew::Off })
    }

    async fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Try(wanted) => {
                let asked_at = Instant::now();
                let outcome = self.lock(&wanted).try_acquire().await;
                if let Some(guard) = expected(outcome, &[])?.flatten() {
                    self.shared.granted(wanted.name, asked_at, guard);
                }
            }
            Step::Acquire(wanted, wait_ms) => {
                let (shared, asked_at) = (self.shared.clone(), Instant::now());
                let acquire = self.lock(&wanted).wait(Duration::from_millis(wait_ms)).acquire();
                self.waiting.spawn(async move {
                    shared.granted(wanted.name, asked_at, acquire.await?);
                    Ok(())
                });
                tokio::task::yield_now().await;
            }
            Step::GiveUp(wanted, polls) => {
                let (asked_at, acquire) = (Instant::now(), self.lock(&wanted).acquire());
                let left = poll_n_then(polls, Fate::Dropped, Duration::from_millis(20), acquire).await;
                if let Some(guard) = left.ended().map(|outcome| expected(outcome, &[])).transpose()?.flatten() {
                    self.shared.granted(wanted.name, asked_at, guard);
                }
            }
            Step::Release(index) => {
                if let Some(guard) = self.shared.take(index) {
                    expected(guard.release().await, &[])?;
                }
            }
            Step::Drop(index) => drop(self.shared.take(index)),
            Step::Extend(index, by_ms) => {
                if let Some(guard) = self.shared.take(index) {
                    let name = guard.name().trim_start_matches("name ").parse().unwrap_or(0);
                    // Beyond max_hold it is refused.
                    let outcome = guard.extend(Duration::from_millis(by_ms)).await;
                    expected(outcome, &[ErrorKind::InvalidInput])?;
                    self.shared.lock().guards.push((name, guard));
                }
            }
            Step::ReleaseHalfway(index, polls) => {
                if let Some(guard) = self.shared.take(index) {
                    poll_n_then(polls, Fate::Dropped, Duration::from_millis(20), guard.release()).await;
                }
            }
            Step::Break(client, name) => {
                let broken = self.clients[client].break_lock(format!("name {name}"), None).await;
                let broken = expected(broken, &[])?.unwrap_or_default();
                self.shared.lock().broken.extend(broken.iter().map(|holder| holder.claim));
            }
            Step::Inspect(client) => {
                expected(self.clients[client].inspect("").await, &[])?;
            }
            Step::Pause(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Close(client) => {
                expected(self.clients[client].close().await, &[])?;
                self.clients[client] = self.client().await?;
            }
        }
        Ok(())
    }

    /// Everyone goes, and the store and its locks must be as if nobody had been there.
    async fn end(mut self) -> Outcome {
        while let Some(ended) = self.waiting.join_next().await {
            expected(ended?, &[])?;
            self.shared.check_exclusion()?;
        }
        self.shared.check_tokens()?;
        self.shared.lock().guards.clear();
        for client in self.clients.drain(..) {
            client.close().await?;
        }
        let client = (self.client()).await?;
        eventually("L20.a", PATIENCE, "nothing is left in the store", async || {
            Ok(client.inspect("").await.is_ok_and(|records| records.is_empty()))
        })
        .await?;
        for name in 0..NAMES {
            let guard = client.lock(format!("name {name}")).wait(PATIENCE).acquire().await?;
            guard.release().await?;
        }
        client.close().await?;
        Ok(())
    }
}

/// What a call gave. A lock that was busy, lost or closed is part of the play; nothing else is, unless `also` says so.
fn expected<T>(outcome: Result<T, lock_core::Error>, also: &[ErrorKind]) -> Outcome<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.kind() {
            ErrorKind::TimedOut | ErrorKind::Lost | ErrorKind::Closed => Ok(None),
            kind if also.contains(&kind) => Ok(None),
            // A wait that is shorter than a round trip, on a busy machine, ends before the store has answered.
            ErrorKind::Unavailable => Ok(None),
            kind => Err(Stop::broken(format!("unexpected error {kind:?}: {error}"))),
        },
    }
}
