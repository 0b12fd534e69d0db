//! The guard: what a caller holds while it holds a lock.

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use crate::{
    BackendError, ClaimId, Error, ErrorKind, Extension, FencingToken, LossReason,
    call::no_answer,
    extend::extend_hold,
    hold::{Announced, Hold},
    lost::Lost,
    options::fit_lease,
    release::{abandon, release},
    shared::{Alive, Shared},
    stay::{release_at, runtime_ended},
    timer::sleep_until,
};

/// A held lock. It is renewed by itself until it is released, dropped or lost.
///
/// Dropping it releases in the background, inside a runtime or outside one (L11). It keeps its client alive.
#[must_use = "dropping a guard releases its lock"]
pub struct LockGuard {
    /// None only once the guard has been taken apart by `release`.
    inner: Option<Inner>,
}

struct Inner {
    alive: Arc<Alive>,
    hold: Arc<Hold>,
    announced: Announced,
}

impl LockGuard {
    /// A guard that has been counted in the hold already.
    pub(crate) fn new(alive: Arc<Alive>, hold: Arc<Hold>) -> Self {
        alive.shared.meter.guard_opens();
        LockGuard { inner: Some(Inner { alive, hold, announced: Announced::No }) }
    }

    fn inner(&self) -> &Inner {
        self.inner.as_ref().expect("a guard is whole until release consumes it")
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.inner().hold
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner().alive.shared
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.hold().fate.claim.name.as_str()
    }

    /// The number that lets a resource refuse a late holder (L13). The same for the whole hold.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.hold().token
    }

    /// The claim's identity in the store, as `inspect` shows it.
    #[must_use]
    pub fn claim_id(&self) -> ClaimId {
        self.hold().fate.claim.id
    }

    /// How many guards of the same owner stand for this hold, this one included (L12).
    #[must_use]
    pub fn hold_count(&self) -> u32 {
        self.hold().guards()
    }

    /// Whether the lock is still held, by a clock read now (L8). Between this answer and what you do with it time
    /// passes: guard the resource with the fencing token.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold().remaining(self.shared().clock.now()).is_ok()
    }

    /// How long the hold is still valid without another renewal, by a clock read now; zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold().remaining(self.shared().clock.now()).unwrap_or_default()
    }

    /// Resolves when the lock is lost, at the first poll after the deadline at the latest (L8). Never resolves once
    /// the lock has been released in time.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static + use<> {
        Lost::new(Arc::clone(self.hold()), self.shared())
    }

    /// Lengthens the hold to at least `by` from now; never shortens it (L6).
    ///
    /// # Errors
    ///
    /// `Lost` when the lock is lost or the store says that it is not ours. `Unavailable` when the store does not
    /// answer within the request timeout: the hold goes on to its deadline, and an answer that comes later still
    /// counts. `InvalidInput` for zero, above the store's longest lease, or beyond `max_hold`.
    ///
    /// # Cancel safety
    ///
    /// Dropped after its first poll, the extension may or may not happen; the hold stays valid either way.
    pub async fn extend(&self, by: Duration) -> Result<(), Error> {
        let (shared, hold) = (self.shared(), self.hold());
        let lease = fit_lease(by, &shared.capabilities)?;
        let now = shared.clock.now();
        hold.remaining(now).map_err(|reason| self.lost_error(reason))?;
        if let Some(left) = hold.max_remaining(now).filter(|left| by > *left) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("lock {:?} cannot be extended by {by:?}: its max_hold leaves {left:?}", self.name()),
            ));
        }
        let answer = extend_hold(shared, hold, lease, Some(lease));
        let result = tokio::select! {
            biased;
            answered = answer => answered.unwrap_or_else(|_| Err(no_answer())),
            () = sleep_until(shared, now.saturating_add(hold.request_timeout)) => Err(no_answer_within(hold)),
        };
        match result {
            Ok(Extension::Extended(_)) => match hold.remaining(shared.clock.now()) {
                Ok(_) => Ok(()),
                Err(reason) => Err(self.lost_error(reason)),
            },
            Ok(Extension::NotHeld) => Err(self.lost_error(self.loss_or(LossReason::Gone))),
            Err(error) => Err(Error::from_backend(&format_args!("extending lock {:?}", self.name()), error)),
        }
    }

    /// Runs a future while the lock is held. On loss the future is dropped.
    ///
    /// # Errors
    ///
    /// `Lost`, also when the lock was lost before the first poll, or during the poll that ended the future.
    ///
    /// # Cancel safety
    ///
    /// As safe as the future inside.
    pub async fn protect<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        let mut future = pin!(future);
        let reason = tokio::select! {
            biased;
            reason = self.lost() => reason,
            output = future.as_mut() => match self.hold().remaining(self.shared().clock.now()) {
                Ok(_) => return Ok(output),
                Err(reason) => reason,
            },
        };
        Err(self.lost_error(reason))
    }

    /// Releases the lock: of several guards of one owner, the last one does, and where there is a
    /// [`min_hold`](crate::Lock::min_hold), not before that has passed.
    ///
    /// # Errors
    ///
    /// `Lost` when the lock had been lost; nothing of a successor's is touched. `Unavailable` when the store did not
    /// confirm within the request timeout: the clean-up goes on in the background, and the lease ends the claim.
    ///
    /// # Cancel safety
    ///
    /// The renewal ends when this is called, and the release goes on in the background wherever the future is dropped
    /// or forgotten.
    pub fn release(mut self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let stay = self.inner.as_ref().and_then(|inner| inner.hold.announce_or_stay(|| inner.alive.shared.clock.now()));
        let stays = match stay {
            Some(until) => self.inner.take().map(|inner| {
                let name = inner.hold.fate.claim.name.clone();
                (name, release_at(inner.alive, inner.hold, until))
            }),
            None => {
                if let Some(inner) = &mut self.inner {
                    // Should the future be forgotten before its first poll, the lease ends the hold.
                    inner.announced = Announced::Yes;
                }
                None
            }
        };
        async move {
            if let Some((name, released)) = stays {
                return released.await.unwrap_or_else(|_| Err(runtime_ended(name.as_str())));
            }
            let Some(Inner { alive, hold, announced }) = self.inner.take() else { return Ok(()) };
            release(alive, hold, announced).await
        }
    }

    fn loss_or(&self, otherwise: LossReason) -> LossReason {
        self.hold().remaining(self.shared().clock.now()).err().unwrap_or(otherwise)
    }

    pub(crate) fn lost_error(&self, reason: LossReason) -> Error {
        lost_error(self.name(), reason)
    }
}

/// What a caller is told whose lock is lost.
pub(crate) fn lost_error(name: &str, reason: LossReason) -> Error {
    Error::new(ErrorKind::Lost, format!("lock {name:?} was lost: {reason}"))
}

fn no_answer_within(hold: &Hold) -> BackendError {
    BackendError::unavailable(format!("the store did not answer within {:?}", hold.request_timeout))
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if let Some(Inner { alive, hold, announced }) = self.inner.take() {
            let until = match announced {
                Announced::Yes => None,
                Announced::No => hold.announce_or_stay(|| alive.shared.clock.now()),
            };
            match until {
                // The task that this begins ends the hold, whether or not anybody waits for it.
                Some(until) => drop(release_at(alive, hold, until)),
                None => abandon(&alive.shared, &hold, Announced::Yes),
            }
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("name", &self.name())
            .field("fencing_token", &self.fencing_token().get())
            .field("is_held", &self.is_held())
            .finish_non_exhaustive()
    }
}
