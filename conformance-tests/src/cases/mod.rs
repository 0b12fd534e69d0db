//! The cases, a topic to a file.

mod cancellation;
mod crash_recovery;
mod deadlines;
mod dropping;
mod exclusion;
mod extend_renew;
mod faults;
mod fencing;
mod forgetting;
mod leaks;
mod loss;
mod names_input;
mod reentrancy;
mod release;
mod waiting;

use std::{fmt::Debug, time::Duration};

use lock_core::{Error, ErrorKind, LockClient, LockGuard};

use crate::{Case, Faulty, Outcome, Stop, World};

/// Every case of the suite.
#[must_use]
pub fn all() -> Vec<Case> {
    [
        exclusion::cases(),
        release::cases(),
        deadlines::cases(),
        extend_renew::cases(),
        loss::cases(),
        waiting::cases(),
        cancellation::cases(),
        forgetting::cases(),
        dropping::cases(),
        reentrancy::cases(),
        fencing::cases(),
        names_input::cases(),
        crash_recovery::cases(),
        leaks::cases(),
        faults::cases(),
    ]
    .concat()
}

/// The case of this name, such as `release::frees_at_once`.
#[must_use]
pub fn find(name: &str) -> Option<Case> {
    all().into_iter().find(|case| case.name() == name)
}

/// Proves that a call failed with an error of this kind, and gives the error.
#[track_caller]
fn refused<T: Debug>(clause: &'static str, what: &str, result: Result<T, Error>, kind: ErrorKind) -> Outcome<Error> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        other => Err(Stop::failed(clause, format!("{what} gave {other:?}, expected an error of kind {kind:?}"))),
    }
}

/// Takes a lock that must be free.
#[track_caller]
fn taken(clause: &'static str, client: &LockClient, name: &str) -> impl Future<Output = Outcome<LockGuard>> + use<> {
    let failed = Stop::failed(clause, format!("{name:?} could not be taken, though it was free"));
    let attempt = client.lock(name).try_acquire();
    async move { attempt.await?.ok_or(failed) }
}

/// Proves that a lock is held by someone else.
#[track_caller]
fn busy(clause: &'static str, client: &LockClient, name: &str) -> impl Future<Output = Outcome> + use<> {
    let failed = Stop::failed(clause, format!("{name:?} was granted, though another holds it"));
    let attempt = client.lock(name).try_acquire();
    async move { if attempt.await?.is_some() { Err(failed) } else { Ok(()) } }
}

impl World {
    /// A new connection whose calls go wrong on demand.
    async fn faulty(&self) -> Outcome<Faulty> {
        Ok(Faulty::over(self.backend().await?))
    }

    /// Proves that the store shows this guard's claim as the one holder.
    async fn shows(&self, clause: &'static str, guard: &LockGuard) -> Outcome {
        let holder = self.holder(guard.name()).await?;
        let claim = holder.as_ref().map(|holder| holder.claim);
        crate::ensure_eq!(clause, claim, Some(guard.claim_id()), "the store's holder of {:?}", guard.name());
        Ok(())
    }
}

/// Watches, for a while, that something stays true. The only use of passing time: to see that nothing happens.
async fn stays(
    clause: &'static str,
    time: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Outcome<bool>,
) -> Outcome {
    let end = tokio::time::Instant::now() + time;
    while tokio::time::Instant::now() < end {
        crate::ensure!(clause, look().await?, "no longer: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
