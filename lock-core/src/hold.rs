//! The state of one hold, shared by its guards, the engine and whoever waits for its loss.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;
use tracing::Span;

use crate::{
    FencingToken, Grant, LossReason, Renew, deadline::Deadlines, fate::Fate, meter::Open, request::Request,
    sync::Guarded,
};

/// One hold: from the grant until its last guard is gone, or it is lost.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) fate: Arc<Fate>,
    pub(crate) token: FencingToken,
    pub(crate) renew: Renew,
    pub(crate) request_timeout: Duration,
    store_margin: Duration,
    /// Fires when the hold is lost or over; those who wait read the state again.
    pub(crate) changed: Arc<Notify>,
    /// Where the engine's agenda has this hold; read and written under the agenda's lock alone.
    pub(crate) due: AtomicU64,
    pub(crate) id: u64,
    pub(crate) granted_at: Duration,
    /// The last guard goes no earlier than this.
    stay_until: Option<Duration>,
    /// The longest that the engine may sleep without reading the clock again, so that a suspend is noticed (L8).
    pub(crate) nap: Duration,
    state: Guarded<State>,
    /// How the hold is seen from outside, from its admission until the end is told.
    seen: Guarded<Option<Seen>>,
}

/// How a hold is seen from outside.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Its place in its caller's trace.
    pub(crate) span: Span,
    /// Its place among those that are held now.
    pub(crate) _open: Open,
}

#[derive(Debug)]
struct State {
    deadlines: Deadlines,
    /// What a renewal asks for; a longer lease of a re-entry raises it.
    lease: Duration,
    guards: u32,
    loss: Option<LossReason>,
    /// Released, or being released: there is nothing to renew and nothing to lose.
    over: bool,
    /// Guards whose release was asked for and has not begun. Where these are all, nothing is renewed any more, but the
    /// end of the lease is still watched.
    leaving: u32,
    renewal: Renewal,
    /// Extensions under way.
    extending: u32,
}

/// When to renew next.
#[derive(Debug)]
struct Renewal {
    next_at: Duration,
    /// When the latest confirmed request was sent; an older one's answer says nothing new.
    confirmed_at: Duration,
    failures: u32,
}

/// Whether a guard that goes has announced it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    Yes,
    No,
}

/// What the engine has to do for a hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Nothing before this moment.
    Wait(Duration),
    /// Renew to this lease, and look again at this moment, whether or not an answer has come.
    Renew { lease: Duration, again_at: Duration },
    /// It is lost: tell, and remove what the store still has.
    Lost(LossReason),
    /// It is over.
    Forget,
}

/// However long the lease, a suspend is noticed within this.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// A source of ids that tell holds apart in the agenda.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Hold {
    pub(crate) fn new(
        request: &Request,
        fate: Arc<Fate>,
        (sent_at, granted_at): (Duration, Duration),
        grant: &Grant,
        token: FencingToken,
        store_margin: Duration,
    ) -> Arc<Self> {
        let deadlines =
            Deadlines::new(sent_at, grant.lease, store_margin, request.renew == Renew::Auto, request.max_hold);
        let state = State {
            deadlines,
            lease: request.lease,
            guards: 1,
            loss: None,
            over: false,
            leaving: 0,
            renewal: Renewal {
                next_at: next_renewal(sent_at, request.lease.min(grant.lease)),
                confirmed_at: sent_at,
                failures: 0,
            },
            extending: 0,
        };
        Arc::new(Hold {
            fate,
            token,
            renew: request.renew,
            request_timeout: request.request_timeout,
            store_margin,
            changed: Arc::new(Notify::new()),
            due: AtomicU64::new(u64::MAX),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            granted_at,
            stay_until: request.min_hold.map(|min_hold| granted_at.saturating_add(min_hold)),
            nap: (request.lease / 10).min(LONGEST_NAP),
            state: Guarded::new(state),
            seen: Guarded::new(None),
        })
    }

    /// What is left, by a clock read just now; an error is the loss. The first look after the deadline makes the loss
    /// final, whatever the clock says later (L4).
    pub(crate) fn remaining(&self, now: Duration) -> Result<Duration, LossReason> {
        self.state.lock().remaining(now)
    }

    /// The loss that `lost` tells; none once the hold has been released in time.
    pub(crate) fn told_loss(&self, now: Duration) -> Option<LossReason> {
        let mut state = self.state.lock();
        if state.over && state.loss.is_none() { None } else { state.remaining(now).err() }
    }

    /// The hold is lost for this reason, unless it already was or is over. Answers whether it is news.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        let news = {
            let mut state = self.state.lock();
            let news = state.loss.is_none() && !state.over;
            if news {
                state.loss = Some(reason);
            }
            news
        };
        if news {
            self.changed.notify_waiters();
        }
        news
    }

    /// The span that what happens to this hold belongs to; none once the end is told.
    pub(crate) fn span(&self) -> Span {
        self.seen.lock().as_ref().map_or_else(Span::none, |seen| seen.span.clone())
    }

    /// From here on it is seen from outside.
    pub(crate) fn show(&self, seen: Seen) {
        *self.seen.lock() = Some(seen);
    }

    /// Hides it again, for whoever is the first to tell the end.
    pub(crate) fn hide(&self) -> Option<Seen> {
        self.seen.lock().take()
    }

    /// Another guard of the same owner. False once the last guard has gone.
    pub(crate) fn join(&self) -> bool {
        let mut state = self.state.lock();
        let alive = state.guards > 0;
        if alive {
            state.guards += 1;
        }
        alive
    }

    /// A guard goes, with or without having announced it. True if it was the last.
    pub(crate) fn leave(&self, announced: Announced) -> bool {
        let mut state = self.state.lock();
        if announced == Announced::Yes {
            state.leaving = state.leaving.saturating_sub(1);
        }
        state.guards = state.guards.saturating_sub(1);
        state.guards == 0
    }

    pub(crate) fn guards(&self) -> u32 {
        self.state.lock().guards
    }

    /// A guard is to be released: once all are, the lease is not renewed, even if the release never begins.
    pub(crate) fn announce_leave(&self) {
        self.state.lock().leaving += 1;
    }

    /// Announces the same, unless the guard is the last and the shortest time of the hold has not passed: then nothing
    /// is announced, and the answer is until when it must stay.
    pub(crate) fn announce_or_stay(&self, now: impl FnOnce() -> Duration) -> Option<Duration> {
        let mut state = self.state.lock();
        let last = state.leaving + 1 >= state.guards;
        let stay = self.stay_until.filter(|until| {
            let now = now();
            last && now < *until && !state.over && state.remaining(now).is_ok()
        });
        if stay.is_none() {
            state.leaving += 1;
        }
        stay
    }

    /// The release begins while the hold is valid, and with it the hold is over; or it was lost before.
    pub(crate) fn finish(&self, now: Duration) -> Result<(), LossReason> {
        let result = {
            let mut state = self.state.lock();
            let result = state.remaining(now).map(drop);
            state.over = true;
            result
        };
        self.changed.notify_waiters();
        result
    }

    /// The claim's lease at the store, longer from here on if a re-entry asks for it.
    pub(crate) fn lengthen(&self, lease: Duration) -> Duration {
        let mut state = self.state.lock();
        state.lease = state.lease.max(lease);
        state.lease
    }

    /// How long the user may still extend, if `max_hold` bounds it.
    pub(crate) fn max_remaining(&self, now: Duration) -> Option<Duration> {
        self.state.lock().deadlines.max_until().map(|until| until.saturating_sub(now))
    }

    /// The store keeps the claim. Too late an answer changes nothing: the loss is final.
    pub(crate) fn confirm(&self, now: Duration, sent_at: Duration, kept: Duration, extended_by: Option<Duration>) {
        let mut state = self.state.lock();
        if state.remaining(now).is_err() {
            return;
        }
        state.deadlines.confirm(sent_at, kept, self.store_margin);
        if let Some(by) = extended_by {
            state.deadlines.extend(sent_at, by);
        }
        if sent_at >= state.renewal.confirmed_at {
            let next_at = next_renewal(sent_at, state.lease.min(kept));
            state.renewal = Renewal { next_at, confirmed_at: sent_at, failures: 0 };
        }
    }

    /// An extension is about to be sent. False once the hold is over: nothing is sent after the release (L7).
    pub(crate) fn begin_extension(&self) -> bool {
        let mut state = self.state.lock();
        let wanted = !state.over && state.loss.is_none();
        if wanted {
            state.extending += 1;
        }
        wanted
    }

    /// An extension has ended.
    pub(crate) fn end_extension(&self) {
        let last_of_all = {
            let mut state = self.state.lock();
            state.extending -= 1;
            state.over && state.extending == 0
        };
        if last_of_all {
            self.changed.notify_waiters();
        }
    }

    /// Resolves when no extension is under way; none begins once the hold is over.
    pub(crate) async fn extensions_ended(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.state.lock().extending == 0 {
                return;
            }
            changed.await;
        }
    }

    /// A renewal got no answer that counts: the next is due after a short pause.
    pub(crate) fn renewal_failed(&self, now: Duration) {
        let mut state = self.state.lock();
        let pause = (state.lease / 20).min(Duration::from_millis(50) * 2_u32.pow(state.renewal.failures.min(4)));
        state.renewal.failures += 1;
        state.renewal.next_at = now.saturating_add(pause);
    }

    /// What to do for this hold now.
    pub(crate) fn task(&self, now: Duration) -> Task {
        let mut state = self.state.lock();
        if state.over {
            return Task::Forget;
        }
        if let Err(reason) = state.remaining(now) {
            return Task::Lost(reason);
        }
        let end = state.deadlines.end();
        if self.renew == Renew::Off || state.leaving >= state.guards {
            return Task::Wait(end);
        }
        if state.renewal.next_at > now {
            return Task::Wait(state.renewal.next_at.min(end));
        }
        // An answer that comes sooner moves this; one that does not come must not stop the next try.
        let again_at = now.saturating_add(self.request_timeout.min(state.lease / 3));
        state.renewal.next_at = again_at;
        Task::Renew { lease: state.lease, again_at: again_at.min(end) }
    }

    /// When the engine must look at this hold next.
    pub(crate) fn next_look(&self) -> Duration {
        let state = self.state.lock();
        let end = state.deadlines.end();
        if self.renew == Renew::Off || state.leaving >= state.guards { end } else { state.renewal.next_at.min(end) }
    }

    /// What a check after a hint of loss asks for: a hold that is not renewed must not be lengthened by it.
    pub(crate) fn check_lease(&self, shortest: Duration) -> Duration {
        match self.renew {
            Renew::Auto => self.state.lock().lease,
            Renew::Off => shortest,
        }
    }

    /// Whether a release has begun: it tells the end, whatever a late answer says.
    pub(crate) fn is_over(&self) -> bool {
        self.state.lock().over
    }

    /// Whether there is nothing to watch any more.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.state.lock();
        state.over || state.loss.is_some()
    }
}

impl State {
    fn remaining(&mut self, now: Duration) -> Result<Duration, LossReason> {
        if let Some(reason) = self.loss {
            return Err(reason);
        }
        let left = self.deadlines.end().saturating_sub(now);
        if left.is_zero() {
            let reason = self.deadlines.reason();
            if !self.over {
                self.loss = Some(reason);
            }
            return Err(reason);
        }
        Ok(left)
    }
}

/// Every third of the lease, a little early at random so that holds taken together are not renewed together.
fn next_renewal(sent_at: Duration, lease: Duration) -> Duration {
    sent_at.saturating_add((lease / 3).mul_f64(0.85 + 0.15 * fastrand::f64()))
}
