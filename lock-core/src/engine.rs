//! The engine: one task per client that renews, watches deadlines, tells losses and minds the lines of waiters.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{BoxStream, FuturesUnordered},
};
use tokio::sync::Notify;
use tracing::{debug, trace};

use crate::{
    Extension, LossReason,
    call::Answered,
    extend::extend_hold,
    hold::{Hold, Task},
    meter::Ended,
    observe,
    shared::Shared,
    sync::Guarded,
};

/// The deadlines of a client's holds, in order.
#[derive(Debug, Default)]
pub(crate) struct Engine {
    agenda: Guarded<Agenda>,
    wake: Notify,
}

#[derive(Default)]
struct Agenda {
    by_due: BTreeMap<(u64, u64), Arc<Hold>>,
    /// Streams of loss hints that the engine's task has yet to take over.
    hints: Vec<(Arc<Hold>, BoxStream<'static, ()>)>,
    /// How many holds bound the nap to how much, in nanoseconds.
    naps: BTreeMap<u64, usize>,
    /// When the engine's task looks again by itself.
    asleep_until: Duration,
    /// No hold is admitted any more: the client was closed, or its runtime has ended.
    shut: bool,
    /// The client is done; the engine's task ends.
    retired: bool,
}

impl std::fmt::Debug for Agenda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agenda").field("holds", &self.by_due.len()).field("shut", &self.shut).finish_non_exhaustive()
    }
}

fn nanos(moment: Duration) -> u64 {
    u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX)
}

impl Agenda {
    fn put(&mut self, hold: Arc<Hold>, due: Duration) {
        let due = nanos(due);
        hold.due.store(due, Ordering::Relaxed);
        *self.naps.entry(nanos(hold.nap)).or_default() += 1;
        self.by_due.insert((due, hold.id), hold);
    }

    fn take(&mut self, hold: &Hold) -> Option<Arc<Hold>> {
        let hold = self.by_due.remove(&(hold.due.load(Ordering::Relaxed), hold.id))?;
        self.nap_taken(&hold);
        Some(hold)
    }

    fn pop_due(&mut self, now: Duration) -> Option<Arc<Hold>> {
        let first = self.by_due.first_entry()?;
        let hold = (first.key().0 <= nanos(now)).then(|| first.remove())?;
        self.nap_taken(&hold);
        Some(hold)
    }

    fn nap_taken(&mut self, hold: &Hold) {
        if let Entry::Occupied(mut count) = self.naps.entry(nanos(hold.nap)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// The shortest nap that any hold asks for.
    fn nap(&self) -> Option<Duration> {
        self.naps.first_key_value().map(|(nap, _)| Duration::from_nanos(*nap))
    }
}

impl Engine {
    /// A hold begins: from here on it is renewed and its end is told. False once the client is closed.
    pub(crate) fn admit(&self, hold: &Arc<Hold>, now: Duration, hints: Option<BoxStream<'static, ()>>) -> bool {
        let due = hold.next_look();
        let mut agenda = self.agenda.lock();
        if agenda.shut {
            return false;
        }
        agenda.put(Arc::clone(hold), due);
        let hinted = hints.is_some();
        agenda.hints.extend(hints.map(|hints| (Arc::clone(hold), hints)));
        // Waking the task costs more than the rest of this: it is spared while the task looks soon enough by itself.
        let late = agenda.asleep_until > due || agenda.asleep_until > now.saturating_add(hold.nap);
        drop(agenda);
        if late || hinted {
            self.wake.notify_one();
        }
        true
    }

    /// A hold ends: nothing is renewed after this.
    pub(crate) fn dismiss(&self, hold: &Hold) {
        self.agenda.lock().take(hold);
    }

    /// A hold's next moment has changed.
    pub(crate) fn reschedule(&self, hold: &Hold) {
        let due = hold.next_look();
        let mut agenda = self.agenda.lock();
        let Some(hold) = agenda.take(hold) else { return };
        agenda.put(hold, due);
        if due < agenda.asleep_until {
            drop(agenda);
            self.wake.notify_one();
        }
    }

    /// A line of waiters was begun, which the engine minds.
    pub(crate) fn mind_lines(&self) {
        self.wake.notify_one();
    }

    /// Nothing is admitted any more; the holds that were live.
    pub(crate) fn shut(&self) -> Vec<Arc<Hold>> {
        let mut agenda = self.agenda.lock();
        agenda.shut = true;
        agenda.naps.clear();
        std::mem::take(&mut agenda.by_due).into_values().collect()
    }

    /// The client is done: the engine's task ends.
    pub(crate) fn retire(&self) {
        self.agenda.lock().retired = true;
        self.wake.notify_one();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.agenda.lock().by_due.len()
    }
}

/// The engine's task. What it leaves behind is there from the start: a runtime may end before it has polled this once.
pub(crate) fn run(shared: Arc<Shared>) -> impl Future<Output = ()> + Send {
    let end = EndOfRuntime(shared);
    async move {
        let end = end;
        mind(&end.0).await;
    }
}

async fn mind(shared: &Arc<Shared>) {
    let mut watched: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    loop {
        let now = shared.clock.now();
        for (hold, hints) in std::mem::take(&mut shared.engine.agenda.lock().hints) {
            // A backend that panics over a hint ends the hints of one hold, and not the task that renews for all.
            let watch = AssertUnwindSafe(watch(Arc::clone(shared), hold, hints)).catch_unwind();
            watched.push(Box::pin(watch.map(drop)));
        }
        while let Some(hold) = pop_due(&shared.engine, now) {
            see_to(shared, hold, now);
        }
        let lines_next = shared.lines.sweep(shared, now);
        let Some(nap) = plan_nap(&shared.engine, lines_next, now) else { return };
        tokio::select! {
            () = shared.engine.wake.notified() => {}
            () = sleep(nap) => {}
            Some(()) = watched.next() => {}
        }
    }
}

async fn sleep(nap: Option<Duration>) {
    match nap {
        Some(nap) => tokio::time::sleep(nap).await,
        None => std::future::pending().await,
    }
}

/// The first hold that is due, with the agenda's lock let go again.
fn pop_due(engine: &Engine, now: Duration) -> Option<Arc<Hold>> {
    engine.agenda.lock().pop_due(now)
}

/// How long to sleep; Some(None) is until woken. None once the client is done.
fn plan_nap(engine: &Engine, lines_next: Option<Duration>, now: Duration) -> Option<Option<Duration>> {
    let mut agenda = engine.agenda.lock();
    if agenda.retired {
        return None;
    }
    let first = agenda.by_due.first_key_value().map(|((due, _), _)| Duration::from_nanos(*due));
    let looks = [first, agenda.nap().map(|nap| now.saturating_add(nap)), lines_next];
    let next = looks.into_iter().flatten().min();
    agenda.asleep_until = next.unwrap_or(Duration::MAX);
    // A timer that is a little late costs nothing; one that fires early is a round for nothing.
    Some(next.map(|next| next.saturating_sub(now).max(Duration::from_millis(1))))
}

/// Puts a hold that was taken out back; one that missed a close meanwhile is lost by it (L11).
fn put_back(shared: &Arc<Shared>, hold: &Arc<Hold>, due: Duration) {
    let mut agenda = shared.engine.agenda.lock();
    if !agenda.shut {
        agenda.put(Arc::clone(hold), due);
        return;
    }
    drop(agenda);
    shared.lose_by_close(hold);
    shared.end(&hold.fate);
}

fn see_to(shared: &Arc<Shared>, hold: Arc<Hold>, now: Duration) {
    match hold.task(now) {
        Task::Forget => {}
        Task::Wait(until) => put_back(shared, &hold, until),
        Task::Renew { lease, again_at } => {
            put_back(shared, &hold, again_at);
            // Not waited for: a slow store must not delay the others' renewals.
            drop(extend_hold(shared, &hold, lease, None));
        }
        Task::Lost(reason) => tell_loss(shared, &hold, reason),
    }
}

/// What an extension's answer means for the hold, whoever asked for it.
pub(crate) fn apply_extension(
    shared: &Arc<Shared>,
    hold: &Arc<Hold>,
    answered: &Answered<Extension>,
    extended_by: Option<Duration>,
) {
    let now = shared.clock.now();
    match &answered.result {
        Ok(Extension::Extended(kept)) => {
            trace!(name = %hold.fate.claim.name, kept = ?kept, "extended");
            hold.confirm(now, answered.sent_at, *kept, extended_by);
        }
        Ok(Extension::NotHeld) => {
            // Whether the deadline came first is decided before the store's word, which only comes now.
            let reason = hold.remaining(now).err().unwrap_or(LossReason::Gone);
            shared.engine.dismiss(hold);
            tell_loss(shared, hold, reason);
            return;
        }
        Err(error) if extended_by.is_none() => {
            debug!(name = %hold.fate.claim.name, %error, "a renewal failed; the hold goes on to its deadline");
            hold.renewal_failed(now);
        }
        Err(_) => {}
    }
    shared.engine.reschedule(hold);
}

/// Tells a loss to all who wait for it, and has the janitor remove what the store may still have.
pub(crate) fn tell_loss(shared: &Arc<Shared>, hold: &Arc<Hold>, reason: LossReason) {
    hold.lose(reason);
    // Also when a look at the guard made the loss final before this: those who wait have not been told.
    hold.changed.notify_waiters();
    if !hold.is_over() {
        observe::hold_ends(shared, hold, Ended::lost(reason));
    }
    shared.end(&hold.fate);
}

/// Asks the store whenever it hints that a hold may be gone (L8).
async fn watch(shared: Arc<Shared>, hold: Arc<Hold>, mut hints: BoxStream<'static, ()>) {
    let mut changed = std::pin::pin!(Arc::clone(&hold.changed).notified_owned());
    loop {
        changed.as_mut().enable();
        if hold.is_done() {
            return;
        }
        let hint = tokio::select! {
            () = changed.as_mut() => {
                changed.set(Arc::clone(&hold.changed).notified_owned());
                continue;
            }
            hint = hints.next() => hint,
        };
        if hint.is_none() {
            // The backend has no more to tell; the renewals go on finding out.
            return;
        }
        let lease = hold.check_lease(shared.shortest_lease());
        match shared.extension(&hold, lease).await {
            Some(answered) if answered.result.is_ok() => apply_extension(&shared, &hold, &answered, None),
            _ => {}
        }
    }
}

/// When the client's runtime ends, nothing renews any more: those who wait for a loss must watch the clock themselves.
struct EndOfRuntime(Arc<Shared>);

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        if !self.0.engine.agenda.lock().retired {
            self.0.background_ended();
        }
        for hold in self.0.engine.shut() {
            self.0.leave_hold(&hold);
        }
    }
}
