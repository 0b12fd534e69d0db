//! Which owner holds what in one client, so that it may re-enter (L12).

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use tokio::sync::{Notify, futures::OwnedNotified};

use crate::{
    ClaimId, LockName, LossReason, Owner,
    fate::Fate,
    hold::{Announced, Hold},
    shared::Shared,
    sync::Guarded,
};

/// The seats of a client's owners.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    seats: Guarded<HashMap<Key, Seat>>,
}

type Key = (Owner, LockName);

/// What an owner has of a name.
#[derive(Debug)]
enum Seat {
    /// The first acquisition is under way.
    Arriving(Arc<Notify>),
    /// Held by at least one guard.
    Held(Arc<Hold>),
    /// The last guard has gone, and the release is under way.
    Leaving(ClaimId, Arc<Notify>),
}

/// What an owner finds at its seat.
pub(crate) enum Entrance {
    /// Nothing: it must acquire, and fill the seat or give it up.
    First(Arrival),
    /// Its own hold, with one more guard counted.
    Again(Arc<Hold>),
    /// Its own hold, which has been lost and still has guards.
    Lost(LossReason),
    /// Its own first acquisition or last release, under way; resolves when its outcome is known.
    InFlight(OwnedNotified),
}

/// The duty to fill the seat, or to free it when dropped.
#[derive(Debug)]
pub(crate) struct Arrival {
    shared: Arc<Shared>,
    key: Option<Key>,
}

impl Owners {
    pub(crate) fn enter(shared: &Arc<Shared>, owner: &Owner, name: &LockName, now: Duration) -> Entrance {
        let key = (owner.clone(), name.clone());
        let mut seats = shared.owners.seats.lock();
        match seats.entry(key) {
            Entry::Vacant(seat) => {
                let key = seat.key().clone();
                seat.insert(Seat::Arriving(Arc::new(Notify::new())));
                Entrance::First(Arrival { shared: Arc::clone(shared), key: Some(key) })
            }
            Entry::Occupied(seat) => match seat.get() {
                Seat::Arriving(outcome) | Seat::Leaving(_, outcome) => {
                    // Made under the lock, so that no outcome falls between the look and the wait.
                    Entrance::InFlight(Arc::clone(outcome).notified_owned())
                }
                Seat::Held(hold) => match hold.remaining(now) {
                    Err(reason) => Entrance::Lost(reason),
                    Ok(_) => {
                        hold.join();
                        Entrance::Again(Arc::clone(hold))
                    }
                },
            },
        }
    }

    /// A guard of an owner goes. True if it was the last: then the owner waits for the release, unless the hold is
    /// lost, which is forgotten at once.
    pub(crate) fn leave(&self, owner: &Owner, hold: &Hold, announced: Announced, now: Duration) -> bool {
        let claim = &hold.fate.claim;
        let mut seats = self.seats.lock();
        let last = hold.leave(announced);
        if last && let Entry::Occupied(mut seat) = seats.entry((owner.clone(), claim.name.clone())) {
            let ours = matches!(seat.get(), Seat::Held(held) if held.fate.claim.id == claim.id);
            if ours && hold.remaining(now).is_ok() {
                seat.insert(Seat::Leaving(claim.id, Arc::new(Notify::new())));
            } else if ours {
                seat.remove();
            }
        }
        last
    }

    /// The outcome of a release is known, or as much of it as there will be.
    pub(crate) fn vacate(&self, fate: &Fate) {
        let Some(owner) = &fate.owner else { return };
        let mut seats = self.seats.lock();
        if let Entry::Occupied(seat) = seats.entry((owner.clone(), fate.claim.name.clone()))
            && matches!(seat.get(), Seat::Leaving(id, _) if *id == fate.claim.id)
            && let Seat::Leaving(_, outcome) = seat.remove()
        {
            outcome.notify_waiters();
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.seats.lock().len()
    }
}

impl Arrival {
    /// The owner holds.
    pub(crate) fn fill(mut self, hold: &Arc<Hold>) {
        let Some(key) = self.key.take() else { return };
        let arriving = self.shared.owners.seats.lock().insert(key, Seat::Held(Arc::clone(hold)));
        if let Some(Seat::Arriving(outcome)) = arriving {
            outcome.notify_waiters();
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        if let Some(Seat::Arriving(outcome)) = self.shared.owners.seats.lock().remove(&key) {
            outcome.notify_waiters();
        }
    }
}
