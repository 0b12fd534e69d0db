//! One acquisition, from the first poll to the guard, the same on every store (L9).

mod limit;
mod pass;

use std::{sync::Arc, time::Duration};

use pass::Pass;
use tracing::Instrument as _;

use crate::{
    Error, ErrorKind, Grant, Intent, LockGuard, LockName, LossPush, Queue,
    fate::{Fate, Seeking},
    hold::Hold,
    janitor::Janitor,
    line::{Place, Standing},
    meter::Acquired,
    observe::{self, Sighting},
    owners::{Arrival, Entrance, Owners},
    reenter::reenter,
    request::{Request, Wishes},
    shared::{Alive, Shared},
};

/// Whether an acquisition may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Try,
    Wait,
}

/// An acquisition under way.
struct Acquisition<'a> {
    shared: &'a Arc<Shared>,
    request: &'a Request,
    mode: Mode,
    started_at: Duration,
    /// One attempt that gets an answer is all: a try, or a wait of zero.
    once: bool,
    limit: Option<Duration>,
    place: Option<Place>,
    /// What the store last said, where there is no line that shares it.
    standing: Standing,
    /// Who held when the store last said, for the error's words.
    held_by: Option<String>,
}

/// Acquires; None is a try that found the lock held.
pub(crate) async fn acquire(
    alive: Arc<Alive>,
    name: Result<LockName, Error>,
    wishes: Wishes,
    mode: Mode,
) -> Result<Option<LockGuard>, Error> {
    let sighting = Sighting::begin(&alive.shared, &name);
    let result = match Request::new(&alive.shared, &name, &wishes) {
        Ok(request) => attain(&alive, &request, mode).instrument(sighting.span()).await,
        Err(error) => Err(error),
    };
    sighting.ends(result)
}

/// Acquires as requested, and tells whether the guard is the first of its hold.
async fn attain(alive: &Arc<Alive>, request: &Request, mode: Mode) -> Result<Option<(LockGuard, Acquired)>, Error> {
    let shared = &alive.shared;
    shared.check_open()?;
    let started_at = shared.clock.now();
    let wait = if mode == Mode::Try { Some(Duration::ZERO) } else { request.wait };
    let once = wait.is_some_and(|wait| wait.is_zero());
    let limit = wait.filter(|_| !once).map(|wait| started_at.saturating_add(wait));
    let mut acquisition = Acquisition {
        shared,
        request,
        mode,
        started_at,
        once,
        limit,
        place: None,
        standing: Standing::default(),
        held_by: None,
    };
    let seat = if request.owner.is_none() { Some(Seat::Free) } else { Box::pin(acquisition.seat()).await? };
    let Some(seat) = seat else { return acquisition.busy() };
    let arrival = match seat {
        Seat::Free => None,
        Seat::First(arrival) => Some(arrival),
        Seat::Again(hold) => {
            let guard = LockGuard::new(Arc::clone(alive), hold);
            // In a box, as is all that most acquisitions do not come to: it keeps the future of every one small.
            return Box::pin(reenter(guard, request.lease, limit))
                .await
                .map(|guard| Some((guard, Acquired::Reentered)));
        }
    };
    let hold = match acquisition.seek().await? {
        Some(hold) => hold,
        None => return acquisition.busy(),
    };
    if let Some(arrival) = arrival {
        arrival.fill(&hold);
    }
    Ok(Some((LockGuard::new(Arc::clone(alive), hold), Acquired::Granted)))
}

/// What an acquisition finds of its owner.
enum Seat {
    Free,
    First(Arrival),
    Again(Arc<Hold>),
}

impl Acquisition<'_> {
    /// Looks for an own hold to re-enter (L12). None: the owner's own acquire or release is in flight, and this one does
    /// not wait.
    async fn seat(&self) -> Result<Option<Seat>, Error> {
        let Some(owner) = &self.request.owner else { return Ok(Some(Seat::Free)) };
        loop {
            let now = self.shared.clock.now();
            let outcome = match Owners::enter(self.shared, owner, &self.request.name, now) {
                Entrance::First(arrival) => return Ok(Some(Seat::First(arrival))),
                Entrance::Again(hold) => return Ok(Some(Seat::Again(hold))),
                Entrance::Lost(reason) => {
                    let name = &self.request.name;
                    return Err(Error::new(
                        ErrorKind::Lost,
                        format!("lock {name:?} cannot be re-entered: {reason}; drop its guards, then acquire it anew"),
                    ));
                }
                Entrance::InFlight(_) if self.once => return Ok(None),
                Entrance::InFlight(outcome) => outcome,
            };
            tokio::select! {
                biased;
                () = outcome => {}
                () = self.shared.closed.cancelled() => return Err(self.shared.closed_error()),
                () = self.sleep_until(self.limit) => {
                    return Err(self.at_limit(self.shared.lines.standing(&self.request.name)));
                }
            }
        }
    }

    /// Works under one claim id after another until one is granted, or there is an answer.
    async fn seek(&mut self) -> Result<Option<Arc<Hold>>, Error> {
        let intent = if self.once { Intent::Try } else { Intent::Wait };
        if !self.once && self.shared.capabilities.queue == Queue::InClient {
            self.place = Some(self.shared.lines.join(self.shared, &self.request.name, self.started_at));
        }
        loop {
            self.shared.check_open()?;
            let claim = self.request.claim(self.shared, intent);
            let now = self.shared.clock.now();
            let limit = self.shared.options.cleanup_limit;
            if !self.shared.janitor.has_room(limit) {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!("{limit} claims of this client are sought or wait to be cleaned up, which is its limit"),
                ));
            }
            let seeking = Seeking::new(self.shared, Fate::new(claim, self.request.owner.clone(), now));
            match self.pass(seeking.fate()).await? {
                Pass::Busy => return Ok(None),
                Pass::PassedOver => {}
                Pass::Granted(sent_at, grant) => {
                    if let Some(hold) = self.take(seeking, sent_at, grant)? {
                        return Ok(Some(hold));
                    }
                    // A grant that came too late counts as unanswered (L3, L9).
                    if self.once && self.shared.clock.now() >= self.patience() {
                        return Err(self.unanswered(None));
                    }
                }
            }
        }
    }

    /// Makes the grant a hold that is renewed. None: it came too late, and is being released.
    fn take(&self, seeking: Seeking, sent_at: Duration, mut grant: Grant) -> Result<Option<Arc<Hold>>, Error> {
        let shared = self.shared;
        // Between the claim's taking and the engine's, nobody else answers for it: the janitor must not leave (L11).
        let _abroad = Janitor::call_goes_abroad(shared);
        let Some(fate) = seeking.take() else { return Ok(None) };
        let token = shared.user_token(grant.token);
        let now = shared.clock.now();
        let hold = Hold::new(self.request, fate, (sent_at, now), &grant, token, shared.capabilities.margin);
        if hold.remaining(now).is_err() {
            shared.end(&hold.fate);
            return Ok(None);
        }
        // Before the engine has it, which may find it lost at once.
        observe::hold_begins(shared, &hold, &self.request.caller);
        let hints = (shared.capabilities.loss_push == LossPush::Prompt)
            .then(|| std::mem::replace(&mut grant.disturbed, Box::pin(futures_util::stream::empty())));
        if !shared.engine.admit(&hold, now, hints) {
            shared.end(&hold.fate);
            return Err(shared.closed_error());
        }
        if let Some(place) = &self.place {
            // A grant in time is an answer, for those behind as well.
            place.update_standing(|standing| standing.answered(now));
        }
        tracing::debug!(name = %self.request.name, token = %hold.token, waited = ?now.saturating_sub(self.started_at), "lock acquired");
        Ok(Some(hold))
    }
}
