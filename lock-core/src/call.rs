//! Backend calls: each comes to its end, whatever becomes of its caller (L10).

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep_until},
};
use tracing::Instrument as _;

use crate::{
    Attempt, Backend, BackendError, Extension, Intent, LockRecord, Release, Selector,
    carry::{Carried, RIDE},
    fate::Fate,
    hold::Hold,
    janitor::{Abroad, Janitor},
    line::Reach,
    meter::{Called, Outcome},
    shared::Shared,
};

/// An answer, with the moment that its request left. Deadlines count from there (L3).
#[derive(Debug)]
pub(crate) struct Answered<T> {
    pub(crate) sent_at: Duration,
    pub(crate) result: Result<T, BackendError>,
}

/// Where an answer will arrive. Dropping it does not stop the call.
pub(crate) type Answer<T> = oneshot::Receiver<Answered<T>>;

/// What to say when a call's task ended without an answer: it panicked, or its runtime has ended.
pub(crate) fn no_answer() -> BackendError {
    BackendError::unavailable("the call ended without an answer: it panicked, or the client's runtime has ended")
}

/// Who polls a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// A task, from the first poll on.
    ByTask,
    /// Its caller at first, and from the end of the ride a task, which polls it at once.
    ByCaller,
}

impl Shared {
    /// Runs one call, and gives it up after twice the request timeout by dropping its future.
    async fn call<T>(
        &self,
        what: Called,
        polled: Polled,
        request_timeout: Duration,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Answered<T> {
        let sent_at = self.clock.now();
        let mut timed = Timed { shared: self, what, sent_at, outcome: Outcome::Unknown };
        let give_up_after = request_timeout.saturating_mul(2);
        // A panic is an answer that nobody knows: it must not end the task that renews for all.
        let call = AssertUnwindSafe(call).catch_unwind();
        let result = match within(give_up_after, polled, call).await {
            Some(result) => result.unwrap_or_else(|_| Err(no_answer())),
            None => Err(BackendError::unavailable(format!("the store did not answer within {give_up_after:?}"))),
        };
        timed.outcome = Outcome::of(&result);
        Answered { sent_at, result }
    }

    /// Sends an attempt. None if the claim has ended: its id is never attempted again.
    pub(crate) fn attempt(
        self: &Arc<Self>,
        fate: &Arc<Fate>,
        request_timeout: Duration,
    ) -> Option<Carried<Answered<Attempt>>> {
        // Counted before the look at `closed`: a close that comes later waits for this call (L11).
        let abroad = Janitor::call_goes_abroad(self);
        if self.closed.is_cancelled() || !fate.begin_attempt() {
            return None;
        }
        let mut under_way =
            UnderWay { shared: Arc::clone(self), fate: Arc::clone(fate), ended: false, _abroad: abroad };
        let call = async move {
            let (shared, fate) = (Arc::clone(&under_way.shared), Arc::clone(&under_way.fate));
            fate.sent(shared.clock.now());
            let attempt = shared.backend().attempt(&fate.claim);
            let answered = shared.call(Called::Attempt, Polled::ByCaller, request_timeout, attempt).await;
            under_way.end(Some(&answered.result));
            // A caller that is gone has left the claim to its fate, which has just been counted.
            answered
        };
        // What the store's client tells belongs to the caller's trace.
        Some(self.carrier.carry(call.in_current_span()))
    }

    /// Sends one extension. None once the hold is lost or over.
    pub(crate) async fn extension(&self, hold: &Hold, lease: Duration) -> Option<Answered<Extension>> {
        let fate = &hold.fate;
        let _under_way = Extending::begin(hold)?;
        fate.may_be_kept_until(self.clock.now().saturating_add(lease));
        let extend = self.backend().extend(&fate.claim, lease);
        let answered = self.call(Called::Extend, Polled::ByTask, hold.request_timeout, extend).await;
        if let Ok(Extension::Extended(kept)) = &answered.result {
            fate.may_be_kept_until(self.clock.now().saturating_add(*kept));
        }
        Some(answered)
    }

    /// Sends one release.
    pub(crate) async fn release(
        &self,
        fate: &Arc<Fate>,
        polled: Polled,
        request_timeout: Duration,
    ) -> Answered<Release> {
        let release = self.backend().release(&fate.claim);
        let answered = self.call(Called::Release, polled, request_timeout, release).await;
        if let Ok(answer) = answered.result {
            self.after_release(fate, answer);
        }
        answered
    }

    /// Asks who holds what.
    pub(crate) fn records(self: &Arc<Self>, selector: Selector) -> Answer<Vec<LockRecord>> {
        self.question(move |backend| async move { backend.inspect(&selector).await })
    }

    /// Asks anything that concerns no claim.
    pub(crate) fn question<T, F>(
        self: &Arc<Self>,
        ask: impl FnOnce(Arc<dyn Backend>) -> F + Send + 'static,
    ) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, BackendError>> + Send,
    {
        let (tx, rx) = oneshot::channel();
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            let call = ask(Arc::clone(shared.shared_backend()));
            let answered = shared.call(Called::Ask, Polled::ByTask, shared.request_timeout(), call).await;
            let _ = tx.send(answered);
        });
        rx
    }
}

/// What a future resolves to, or None if that takes longer than `limit`.
///
/// A timer costs more than the rest of the core's part of a fast call, so a ride has none: whatever takes longer than
/// half a ride is polled once more at the ride's end, and gets its timer then.
async fn within<T>(limit: Duration, polled: Polled, future: impl Future<Output = T>) -> Option<T> {
    let begun = Instant::now();
    let (mut future, mut timer) = (pin!(future), None::<Pin<Box<Sleep>>>);
    let patient = if polled == Polled::ByCaller { RIDE / 2 } else { Duration::ZERO };
    poll_fn(|cx| {
        if let Poll::Ready(answer) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        if timer.is_none() && (patient.is_zero() || begun.elapsed() >= patient) {
            timer = Some(Box::pin(sleep_until(begun + limit)));
        }
        timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(cx).map(|()| None))
    })
    .await
}

/// Counts a call when it ends, also when it is dropped with its runtime.
struct Timed<'a> {
    shared: &'a Shared,
    what: Called,
    sent_at: Duration,
    outcome: Outcome,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let took = || self.shared.clock.now().saturating_sub(self.sent_at);
        self.shared.meter.called(self.what, self.outcome, took);
    }
}

/// Counts an extension out also when it is dropped with its runtime.
struct Extending<'a>(&'a Hold);

impl<'a> Extending<'a> {
    fn begin(hold: &'a Hold) -> Option<Self> {
        hold.begin_extension().then(|| Extending(hold))
    }
}

impl Drop for Extending<'_> {
    fn drop(&mut self) {
        self.0.end_extension();
    }
}

/// Counts an attempt out also when its task panics or is dropped with its runtime.
struct UnderWay {
    shared: Arc<Shared>,
    fate: Arc<Fate>,
    ended: bool,
    /// Dropped after the rest: what is left to clean up is put down before the backend may be closed.
    _abroad: Abroad,
}

impl UnderWay {
    fn end(&mut self, outcome: Option<&Result<Attempt, BackendError>>) {
        self.ended = true;
        let now = self.shared.clock.now();
        if self.fate.claim.intent == Intent::Wait {
            // A grant that nobody takes comes too late, and that counts as unanswered (L9).
            let answered = match outcome {
                Some(Ok(Attempt::Busy(_))) => true,
                Some(Err(error)) => !error.is_unknown(),
                Some(Ok(Attempt::Granted(_))) | None => false,
            };
            let reach = if answered { Reach::Answered } else { Reach::Unanswered };
            self.shared.lines.call_ended(&self.fate, reach, now);
        }
        if self.fate.end_attempt(outcome, self.shared.capabilities.queue, now) {
            Janitor::oblige(&self.shared, &self.fate, now);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.ended {
            self.end(None);
        }
    }
}
