//! One acquisition, from the first poll to the guard: the wait loop that is the same on every store (L9).

use std::{
    future::{Future as _, poll_fn},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tracing::Instrument as _;

use crate::{
    Attempt, BackendError, Busy, Error, ErrorKind, Grant, Intent, LockGuard, LockName, LossPush, Queue, Wakes,
    backoff::Backoff,
    call::{Answered, no_answer},
    carry::RIDE,
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
    timer::{Entered, sleep_until},
};

/// How much later than the holder's lease a waiter asks again, at most: many wait for the same moment.
const EXPIRY_JITTER: Duration = Duration::from_millis(50);

/// The pauses between attempts at a store that cannot be reached.
const RETRY: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));

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

/// How the work under one claim id ends without an error.
enum Pass {
    Granted(Duration, Grant),
    Busy,
    /// The claim was given up because nobody polled this acquisition: it goes on under a new id.
    PassedOver,
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
    let Some(seat) = acquisition.seat().await? else { return acquisition.busy() };
    let arrival = match seat {
        Seat::Free => None,
        Seat::First(arrival) => Some(arrival),
        Seat::Again(hold) => {
            let guard = LockGuard::new(Arc::clone(alive), hold);
            return reenter(guard, request.lease, limit).await.map(|guard| Some((guard, Acquired::Reentered)));
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

    /// Asks, waits and asks again under one claim id.
    async fn pass(&mut self, fate: &Arc<Fate>) -> Result<Pass, Error> {
        let options = &self.shared.options;
        let mut poll = Backoff::new(options.poll_min, options.poll_max);
        let mut retry = Backoff::new(RETRY.0, RETRY.1);
        loop {
            self.turn().await?;
            let releases = self.place.as_ref().map(Place::releases);
            // Everything that is told from here on is newer than the answer.
            let Some(answered) = self.ask(fate).await? else { return Ok(Pass::PassedOver) };
            match answered.result {
                Ok(Attempt::Granted(grant)) => return Ok(Pass::Granted(answered.sent_at, grant)),
                Ok(Attempt::Busy(busy)) => {
                    self.hears_busy(&busy);
                    if self.once {
                        return Ok(Pass::Busy);
                    }
                    // A release that this process saw while it asked makes the answer old.
                    if releases != self.place.as_ref().map(Place::releases) {
                        continue;
                    }
                    retry.reset();
                    self.rest(fate, busy, &mut poll).await?;
                }
                Err(error) if error.is_unknown() => {
                    let now = self.shared.clock.now();
                    // The last question comes just before the end and not a whole pause earlier: the store may be back.
                    let last = self.patience().saturating_sub(RETRY.0);
                    if now >= last {
                        return Err(self.unanswered(Some(error)));
                    }
                    let until = now.saturating_add(retry.next()).min(last);
                    tracing::debug!(name = %self.request.name, %error, "the store did not answer; asking again");
                    self.expect_by(fate, until);
                    self.pause(until).await?;
                }
                Err(error) => {
                    return Err(Error::from_backend(&format_args!("lock {:?}", self.request.name), error));
                }
            }
        }
    }

    /// Waits until it is this acquisition's turn at the store.
    async fn turn(&mut self) -> Result<(), Error> {
        let mut nudged = false;
        loop {
            let now = self.shared.clock.now();
            let Some(place) = &mut self.place else { return self.check_limit(now) };
            if place.is_head(now) {
                return self.check_limit(now);
            }
            self.check_limit(now)?;
            let standing = self.standing();
            if now >= self.patience() {
                return Err(self.unanswered(None));
            }
            // Near its limit a waiter wants to know whether the store still answers, and has the head ask.
            let look = self.last_look();
            if !nudged && look.is_some_and(|look| look <= now) {
                nudged = true;
                let old = standing.answered_at.is_none_or(|at| at + self.request.request_timeout / 4 < now);
                if old && let Some(place) = &self.place {
                    place.nudge(now);
                }
            }
            let again_at = now.saturating_add(self.request.lease.max(Duration::from_secs(1)));
            let until = [Some(again_at), Some(self.patience()), self.limit, look.filter(|look| *look > now)];
            let until = until.into_iter().flatten().min();
            let Some(place) = &self.place else { return Ok(()) };
            tokio::select! {
                biased;
                () = place.wake.notified() => {}
                () = self.shared.closed.cancelled() => return Err(self.shared.closed_error()),
                () = self.sleep_until(until) => {}
            }
        }
    }

    /// Sends one attempt and waits for its answer as long as this acquisition may. None: the claim was given up.
    async fn ask(&mut self, fate: &Arc<Fate>) -> Result<Option<Answered<Attempt>>, Error> {
        let now = self.shared.clock.now();
        if self.standing().asking_since.is_some() && now >= self.patience() {
            return Err(self.unanswered(None));
        }
        let request_timeout = self.request.request_timeout;
        if let Some(place) = &self.place {
            place.asks(fate, now.saturating_add(request_timeout.saturating_mul(2)));
        }
        let Some(mut answer) = self.shared.attempt(fate, request_timeout) else { return Ok(None) };
        self.update_standing(|standing| standing.asked(now));
        let no_answer = || Answered { sent_at: now, result: Err(no_answer()) };
        // No timer and no watch over the client's end for a ride: they cost more than a fast store's answer.
        if self.patience() > now.saturating_add(RIDE * 2)
            && let Some(answered) = answer.ride().await
        {
            return Ok(Some(answered.unwrap_or_else(no_answer)));
        }
        tokio::select! {
            biased;
            answered = answer => Ok(Some(answered.unwrap_or_else(no_answer))),
            () = self.shared.closed.cancelled() => Err(self.shared.closed_error()),
            () = self.sleep_until(Some(self.patience())) => Err(self.at_patience()),
        }
    }

    /// Waits for a reason to ask again: the store's word, a release in this process, an expiry, or the poll.
    async fn rest(&mut self, fate: &Arc<Fate>, busy: Busy, poll: &mut Backoff) -> Result<(), Error> {
        let now = self.shared.clock.now();
        let options = &self.shared.options;
        let capabilities = &self.shared.capabilities;
        let interval = if capabilities.wakes == Wakes::Push { options.safety_poll } else { poll.next() };
        // A place in the store's queue lives by being attempted.
        let keep = (capabilities.queue == Queue::InStore).then_some(self.request.lease / 3);
        let expiry = busy.retry_after.map(|left| left.saturating_add(EXPIRY_JITTER.mul_f64(fastrand::f64())));
        let pause = [Some(interval), keep, expiry].into_iter().flatten().min().unwrap_or(interval);
        let until = now.saturating_add(pause.max(Duration::from_millis(1)));
        let until = [Some(until), self.limit, self.last_look().filter(|look| *look > now)];
        let until = until.into_iter().flatten().min();
        let due = until.unwrap_or(now);
        self.expect_by(fate, due);
        tracing::trace!(name = %self.request.name, ?pause, "lock busy; waiting");
        let mut changed = Entered::new(&self.shared.runtime, busy.changed);
        let changed = poll_fn(|cx| {
            let changed = Pin::new(&mut changed);
            match &self.place {
                Some(place) => place.poll_changed(fate, due, changed, cx),
                None => changed.poll(cx),
            }
        });
        let woken = async {
            match &self.place {
                Some(place) => place.wake.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = woken => poll.reset(),
            () = changed => {}
            () = self.shared.closed.cancelled() => return Err(self.shared.closed_error()),
            () = self.sleep_until(until) => {}
        }
        Ok(())
    }

    async fn pause(&self, until: Duration) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => Err(self.shared.closed_error()),
            () = self.sleep_until(Some(until)) => Ok(()),
        }
    }

    async fn sleep_until(&self, until: Option<Duration>) {
        match until {
            Some(until) => sleep_until(self.shared, until).await,
            None => std::future::pending().await,
        }
    }

    /// Tells the line by when this head will have moved, if anyone polls it.
    fn expect_by(&self, fate: &Arc<Fate>, due: Duration) {
        if let Some(place) = &self.place {
            place.rests(fate, due);
        }
    }

    fn standing(&self) -> Standing {
        self.place.as_ref().map_or(self.standing, Place::standing)
    }

    fn update_standing(&mut self, update: impl FnOnce(&mut Standing)) {
        match &self.place {
            Some(place) => place.update_standing(update),
            None => update(&mut self.standing),
        }
    }

    fn hears_busy(&mut self, busy: &Busy) {
        let now = self.shared.clock.now();
        self.update_standing(|standing| standing.answered(now));
        self.held_by = busy.holders.first().map(|holder| {
            let label = holder.label.as_ref().map(|label| format!(" ({label:?})")).unwrap_or_default();
            format!("{} pid {}{label}", holder.host, holder.pid)
        });
    }

    /// Until when this acquisition waits for a store that does not answer (L9).
    fn patience(&self) -> Duration {
        let standing = self.standing();
        let request_timeout = self.request.request_timeout;
        match (self.limit, standing.answered_at) {
            _ if self.once => self.started_at.saturating_add(request_timeout),
            (limit, None) => {
                // A head that has not asked yet says nothing of the store.
                let asking = standing.asking_since.map(|since| since.max(self.started_at));
                let first = asking.map_or(Duration::MAX, |since| since.saturating_add(request_timeout));
                first.min(limit.unwrap_or(Duration::MAX))
            }
            (Some(limit), Some(_)) => limit,
            (None, Some(_)) => standing
                .asking_since
                .map_or(Duration::MAX, |since| since.saturating_add(self.request.lease.max(request_timeout))),
        }
    }

    /// When to ask once more before the limit, so that the last answer is fresh enough to say "timed out".
    fn last_look(&self) -> Option<Duration> {
        self.limit.map(|limit| limit.saturating_sub(self.request.request_timeout / 2))
    }

    /// An error once the limit has passed, for one that has asked at least once.
    fn check_limit(&self, now: Duration) -> Result<(), Error> {
        match self.limit {
            Some(limit) if limit <= now && self.standing().answered_at.is_some() => Err(self.at_limit(self.standing())),
            _ => Ok(()),
        }
    }

    fn at_patience(&self) -> Error {
        let limit_came = self.limit.is_some_and(|limit| limit <= self.shared.clock.now());
        if limit_came { self.at_limit(self.standing()) } else { self.unanswered(None) }
    }

    /// The limit has come: whether the lock was held or the store silent is told apart (L9).
    fn at_limit(&self, standing: Standing) -> Error {
        let now = self.shared.clock.now();
        let fresh = standing.answered_at.is_some_and(|at| now.saturating_sub(at) <= self.request.request_timeout);
        if fresh { self.timed_out() } else { self.unanswered(None) }
    }

    fn timed_out(&self) -> Error {
        let holder = self.held_by.as_deref().map(|holder| format!(" by {holder}")).unwrap_or_default();
        let waited = self.request.wait.unwrap_or_default();
        Error::new(ErrorKind::TimedOut, format!("lock {:?} was still held{holder} after {waited:?}", self.request.name))
    }

    fn unanswered(&self, error: Option<BackendError>) -> Error {
        let waited = self.shared.clock.now().saturating_sub(self.started_at);
        let name = &self.request.name;
        let store = &self.shared.capabilities.store;
        let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let message =
            format!("{store} gave no answer for lock {name:?} in {waited:?}{why}; what it may have done is cleaned up");
        let told = Error::new(ErrorKind::Unavailable, message);
        match error {
            Some(error) => told.with_source(error),
            None => told,
        }
    }

    fn busy<T>(&self) -> Result<Option<T>, Error> {
        if self.mode == Mode::Try { Ok(None) } else { Err(self.timed_out()) }
    }
}
