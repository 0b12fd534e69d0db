//! A claim's fate: what the store may have of it, from the first send until nothing can be left (L10).

use std::{sync::Arc, time::Duration};

use crate::{
    Attempt, BackendError, Claim, Intent, Owner, Queue, Release, janitor::Janitor, shared::Shared, sync::Guarded,
};

/// What may be left of one claim in the store, and who answers for it.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) claim: Claim,
    /// Who may re-enter the hold that comes of it, if anyone.
    pub(crate) owner: Option<Owner>,
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Calls under way that could still create something.
    in_flight: u32,
    /// Whether the store may have something of this claim, from the calls that have ended.
    trace: bool,
    /// Until when an attempt that was never answered may still be applied, by a server that was stopped.
    unknown_until: Duration,
    /// Until when the store keeps the claim at the latest, from all that was sent.
    kept_until: Duration,
    /// When the last attempt was sent or answered.
    touched_at: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// An acquisition works for it.
    Seeking,
    /// A guard stands for it.
    Held,
    /// Nobody wants it: it is never attempted again, and the janitor removes what is left.
    Ended,
}

/// What the janitor has still to do for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Nothing can be left.
    Done,
    /// Release it (again); on a store with a lease per claim only until this moment.
    Release { until: Duration },
}

impl Fate {
    pub(crate) fn new(claim: Claim, owner: Option<Owner>, now: Duration) -> Arc<Self> {
        let state = State {
            stage: Stage::Seeking,
            in_flight: 0,
            trace: false,
            unknown_until: Duration::ZERO,
            kept_until: Duration::ZERO,
            touched_at: now,
        };
        Arc::new(Fate { claim, owner, state: Guarded::new(state) })
    }

    /// Counts an attempt in, unless the claim has ended: then its id is never attempted again.
    pub(crate) fn begin_attempt(&self) -> bool {
        let mut state = self.state.lock();
        if state.stage == Stage::Ended {
            return false;
        }
        state.in_flight += 1;
        true
    }

    /// The request leaves now.
    pub(crate) fn sent(&self, now: Duration) {
        let mut state = self.state.lock();
        state.touched_at = now;
        state.kept_until = state.kept_until.max(now.saturating_add(self.claim.lease));
    }

    /// Counts an attempt out; None is one that was given up. True if the janitor must see to the claim now.
    pub(crate) fn end_attempt(
        &self,
        outcome: Option<&Result<Attempt, BackendError>>,
        queue: Queue,
        now: Duration,
    ) -> bool {
        let mut state = self.state.lock();
        state.in_flight -= 1;
        match outcome {
            Some(Ok(Attempt::Granted(grant))) => {
                state.trace = true;
                state.kept_until = state.kept_until.max(now.saturating_add(grant.lease));
            }
            Some(Ok(Attempt::Busy(_))) => {
                let queued = queue == Queue::InStore && self.claim.intent == Intent::Wait;
                state.trace = queued || state.unknown_until > now;
            }
            // A refusal did nothing, so it leaves no more than there was.
            Some(Err(error)) if !error.is_unknown() => {}
            Some(Err(_)) | None => {
                state.trace = true;
                // Counted from the sending: a server that was stopped may apply what it had received.
                state.unknown_until = state.touched_at.saturating_add(self.claim.lease);
            }
        }
        state.touched_at = now;
        state.stage == Stage::Ended && state.in_flight == 0 && state.trace
    }

    /// An extension of this claim leaves now; it may be applied whether or not an answer comes.
    pub(crate) fn may_be_kept_until(&self, until: Duration) {
        let mut state = self.state.lock();
        state.kept_until = state.kept_until.max(until);
    }

    /// The acquisition takes the grant. False if the claim was given up meanwhile.
    pub(crate) fn take(&self) -> bool {
        let mut state = self.state.lock();
        let live = state.stage == Stage::Seeking;
        if live {
            state.stage = Stage::Held;
        }
        live
    }

    /// Nobody wants the claim any more. True if the janitor must see to it now; else a call under way does so at its
    /// end, or nothing can be left.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state.lock();
        let first = state.stage != Stage::Ended;
        state.stage = Stage::Ended;
        first && state.in_flight == 0 && state.trace
    }

    /// The acquisition gives the claim up, or is passed over; a claim that it has just taken stays. Answers as `end`.
    pub(crate) fn end_seeking(&self) -> bool {
        let mut state = self.state.lock();
        let seeking = state.stage == Stage::Seeking;
        if seeking {
            state.stage = Stage::Ended;
        }
        seeking && state.in_flight == 0 && state.trace
    }

    /// Ends a claim whose acquisition has not touched it for a lease although the store may have it: a forgotten future.
    pub(crate) fn end_if_forgotten(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        let untouched = state.touched_at.saturating_add(self.claim.lease) <= now;
        let forgotten = state.stage == Stage::Seeking && untouched && state.in_flight == 0 && state.trace;
        if forgotten {
            state.stage = Stage::Ended;
        }
        forgotten
    }

    /// The store confirmed a release.
    pub(crate) fn released(&self, now: Duration) -> Duty {
        let mut state = self.state.lock();
        state.stage = Stage::Ended;
        if state.unknown_until > now {
            return Duty::Release { until: state.unknown_until };
        }
        state.trace = false;
        Duty::Done
    }

    /// A release failed, or has not been tried yet.
    pub(crate) fn duty(&self, now: Duration, per_claim: bool) -> Duty {
        let state = self.state.lock();
        let until = state.kept_until.max(state.unknown_until);
        if !state.trace || (per_claim && until <= now) { Duty::Done } else { Duty::Release { until } }
    }
}

/// Ends a seeking claim when its acquisition ends in any way but a guard.
#[derive(Debug)]
pub(crate) struct Seeking {
    shared: Arc<Shared>,
    fate: Arc<Fate>,
}

impl Seeking {
    pub(crate) fn new(shared: &Arc<Shared>, fate: Arc<Fate>) -> Self {
        shared.janitor.seek(&fate);
        Seeking { shared: Arc::clone(shared), fate }
    }

    pub(crate) fn fate(&self) -> &Arc<Fate> {
        &self.fate
    }

    /// The grant becomes a hold. None if the claim was given up meanwhile, as a caller that was too slow.
    pub(crate) fn take(self) -> Option<Arc<Fate>> {
        // The drop that follows finds the claim held and leaves it.
        self.fate.take().then(|| Arc::clone(&self.fate))
    }
}

impl Drop for Seeking {
    fn drop(&mut self) {
        self.shared.janitor.sought(&self.fate);
        self.shared.end_seeking(&self.fate);
    }
}

impl Shared {
    /// Nobody wants this claim: the janitor removes what is left of it.
    pub(crate) fn end(&self, fate: &Arc<Fate>) {
        if fate.end() {
            Janitor::oblige(self, fate, self.clock.now());
        }
    }

    /// An acquisition's claim is given up, unless the acquisition has just taken it.
    pub(crate) fn end_seeking(&self, fate: &Arc<Fate>) {
        if fate.end_seeking() {
            Janitor::oblige(self, fate, self.clock.now());
        }
    }

    /// What a confirmed release means: waiters of this process are woken, and what may come late is cleaned up after.
    pub(crate) fn after_release(&self, fate: &Arc<Fate>, answer: Release) {
        if answer == Release::Removed {
            self.lines.wake(&fate.claim.name, self.clock.now());
        }
    }
}
