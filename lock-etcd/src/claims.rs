//! What this client knows of its claims: the leases that were asked for, and whether a request may yet be applied.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use lock_core::ClaimId;

use crate::leases::Lease;

/// One claim, from its first attempt until its release is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The lease that the key is bound to, or will be by the next attempt.
    pub(crate) lease: Option<Lease>,
    /// A longer lease that the key is being bound to; it may be bound to either.
    pub(crate) moving: Option<Lease>,
    /// The last revision at which this client itself bound the key to another lease.
    pub(crate) rebound_at: i64,
    /// The revision that created the key, once the store has told.
    pub(crate) revision: Option<i64>,
    /// It has been granted.
    pub(crate) held: bool,
    /// How many leases it has asked for.
    pub(crate) leases_made: u32,
    /// Writes under its leases that have not been answered: one may be applied at any time later, while its lease
    /// lives. Each stays counted for ever if its answer was lost.
    unanswered: u32,
    /// Leases whose state is unknown and that must be revoked with it.
    pub(crate) stray: Vec<i64>,
}

impl Known {
    /// Whether its lease may serve another claim once its key is deleted: no write under it can come any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.unanswered == 0 && self.stray.is_empty() && self.moving.is_none()
    }

    /// Every lease that may be there.
    pub(crate) fn leases(&self) -> impl Iterator<Item = i64> + '_ {
        let bound = [self.lease, self.moving].into_iter().flatten().map(|lease| lease.id);
        bound.chain(self.stray.iter().copied())
    }
}

/// The claims of one client.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    by_id: Mutex<HashMap<ClaimId, Known>>,
}

impl Claims {
    /// What is known of a claim.
    pub(crate) fn get(&self, id: ClaimId) -> Option<Known> {
        self.lock().get(&id).cloned()
    }

    /// What is known of a claim, which is known from now on.
    pub(crate) fn begin(&self, id: ClaimId) -> Known {
        self.lock().entry(id).or_default().clone()
    }

    /// Changes what is known; nothing once the claim is forgotten.
    pub(crate) fn update(&self, id: ClaimId, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.lock().get_mut(&id) {
            change(known);
        }
    }

    /// The claim is over.
    pub(crate) fn forget(&self, id: ClaimId) -> Option<Known> {
        self.lock().remove(&id)
    }

    /// A write under the claim's lease leaves now.
    pub(crate) fn sends(&self, id: ClaimId) {
        self.update(id, |known| known.unanswered += 1);
    }

    /// That write was answered, so that it can no longer be applied.
    pub(crate) fn answered(&self, id: ClaimId) {
        self.update(id, |known| known.unanswered = known.unanswered.saturating_sub(1));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClaimId, Known>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
