//! A hold with a shortest time: its last guard goes when that has passed, and not before.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use crate::{
    Error, ErrorKind,
    hold::{Announced, Hold},
    lost::Lost,
    release::{abandon, release},
    shared::Alive,
    timer::sleep_until,
};

/// The last guard of a hold, on its way out.
struct Going(Option<(Arc<Alive>, Arc<Hold>)>);

impl Drop for Going {
    fn drop(&mut self) {
        // The runtime has ended: nobody waits any more, and the claim goes now or with its lease.
        if let Some((alive, hold)) = self.0.take() {
            abandon(&alive.shared, &hold, Announced::No);
        }
    }
}

/// Releases at `until`, in a task of its own: whatever becomes of the caller, the hold stays and then goes (L10). A
/// loss ends the stay.
pub(crate) fn release_at(alive: Arc<Alive>, hold: Arc<Hold>, until: Duration) -> oneshot::Receiver<Result<(), Error>> {
    let (tx, rx) = oneshot::channel();
    let runtime = alive.shared.runtime.clone();
    let mut going = Going(Some((alive, hold)));
    runtime.spawn(async move {
        if let Some((alive, hold)) = &going.0 {
            let lost = Lost::new(Arc::clone(hold), &alive.shared);
            tokio::select! {
                biased;
                _ = lost => {}
                () = sleep_until(&alive.shared, until) => {}
            }
        }
        if let Some((alive, hold)) = going.0.take() {
            hold.announce_leave();
            // Nobody listens when the guard was dropped.
            let _: Result<(), _> = tx.send(release(alive, hold, Announced::Yes).await);
        }
    });
    rx
}

/// What a caller is told whose release found no runtime to happen in.
pub(crate) fn runtime_ended(name: &str) -> Error {
    let told =
        format!("the release of lock {name:?} was cut short: the client's runtime has ended; the lease ends the claim");
    Error::new(ErrorKind::Unavailable, told)
}
