//! The work under one claim id: asking, waiting for a reason to ask again, and asking again (L9).

use std::{
    future::{Future as _, poll_fn},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use super::Acquisition;
use crate::{
    Attempt, Busy, Error, Grant, Queue, Wakes,
    backoff::Backoff,
    call::{Answered, no_answer},
    carry::RIDE,
    fate::Fate,
    line::{Place, Standing},
    timer::{Entered, sleep_until},
};

/// How much later than the holder's lease a waiter asks again, at most: many wait for the same moment.
const EXPIRY_JITTER: Duration = Duration::from_millis(50);

/// The pauses between attempts at a store that cannot be reached.
const RETRY: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));

/// How the work under one claim id ends without an error.
pub(super) enum Pass {
    Granted(Duration, Grant),
    Busy,
    /// The claim was given up because nobody polled this acquisition: it goes on under a new id.
    PassedOver,
}

impl Acquisition<'_> {
    /// Asks, waits and asks again under one claim id.
    pub(super) async fn pass(&mut self, fate: &Arc<Fate>) -> Result<Pass, Error> {
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
                    Box::pin(self.rest(fate, busy, &mut poll)).await?;
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
                    Box::pin(self.pause(until)).await?;
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
            Box::pin(async {
                tokio::select! {
                    biased;
                    () = place.wake.notified() => Ok(()),
                    () = self.shared.closed.cancelled() => Err(self.shared.closed_error()),
                    () = self.sleep_until(until) => Ok(()),
                }
            })
            .await?;
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
        Box::pin(async {
            tokio::select! {
                biased;
                answered = answer => Ok(Some(answered.unwrap_or_else(no_answer))),
                () = self.shared.closed.cancelled() => Err(self.shared.closed_error()),
                () = self.sleep_until(Some(self.patience())) => Err(self.at_patience()),
            }
        })
        .await
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

    pub(super) async fn sleep_until(&self, until: Option<Duration>) {
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

    pub(super) fn standing(&self) -> Standing {
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
}
