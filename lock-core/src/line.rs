//! The lines of waiters: of each client's waiters for a name, one is at the store and the others queue here (L9, L19).

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::sync::Notify;

use crate::{LockName, fate::Fate, shared::Shared, sync::Guarded};

/// A head that has not reacted this long after it should have is passed over.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the engine looks for heads to pass over, while anyone waits.
const SWEEP_EVERY: Duration = Duration::from_millis(250);

/// A client's lines, one for each name that is waited for.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    by_name: Guarded<HashMap<LockName, Line>>,
}

#[derive(Debug, Default)]
struct Line {
    /// By ticket: first come, first served.
    waiters: BTreeMap<u64, Waiter>,
    next_ticket: u64,
    /// How many releases of the name this client has seen; the head asks again if one fell into its attempt.
    releases: u64,
    standing: Standing,
}

#[derive(Debug)]
struct Waiter {
    wake: Arc<Notify>,
    /// The claim that the head is at the store with.
    fate: Option<Arc<Fate>>,
    /// By when the head will have moved if anyone polls it.
    due: Duration,
    /// A call is under way, whose end sets the time that counts.
    asking: bool,
    /// The store has woken the head, which has not been polled since.
    woken: Arc<AtomicBool>,
}

/// Notes that the store woke a head, and wakes it: if nobody polls it, the line must know.
struct HeadWaker {
    woken: Arc<AtomicBool>,
    task: Waker,
}

impl Wake for HeadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

/// What the store last said of a name; the whole line shares it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// When the store last answered.
    pub(crate) answered_at: Option<Duration>,
    /// Since when it has been asked without an answer.
    pub(crate) asking_since: Option<Duration>,
}

impl Standing {
    pub(crate) fn asked(&mut self, now: Duration) {
        self.asking_since.get_or_insert(now);
    }

    pub(crate) fn answered(&mut self, now: Duration) {
        self.answered_at = Some(now);
        self.asking_since = None;
    }
}

/// Whether a call reached the store, as far as anyone knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Answered,
    Unanswered,
}

/// A waiter's place in its line. Dropping it lets the next step up.
#[derive(Debug)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    name: LockName,
    ticket: u64,
    pub(crate) wake: Arc<Notify>,
    woken: Arc<AtomicBool>,
}

impl Line {
    fn head(&mut self) -> Option<&mut Waiter> {
        self.waiters.values_mut().next()
    }

    /// The head is to move now.
    fn call_head(&mut self, now: Duration) {
        if let Some(head) = self.head() {
            if !head.asking {
                head.due = now;
            }
            head.wake.notify_one();
        }
    }

    fn is_head(&self, ticket: u64) -> bool {
        self.waiters.keys().next() == Some(&ticket)
    }

    fn seat(&mut self, wake: &Arc<Notify>, woken: &Arc<AtomicBool>, now: Duration) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let (wake, woken) = (Arc::clone(wake), Arc::clone(woken));
        self.waiters.insert(ticket, Waiter { wake, fate: None, due: now, asking: false, woken });
        ticket
    }
}

impl Lines {
    pub(crate) fn join(&self, shared: &Arc<Shared>, name: &LockName, now: Duration) -> Place {
        let (wake, woken) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let mut lines = self.by_name.lock();
        let line = lines.entry(name.clone()).or_default();
        let ticket = line.seat(&wake, &woken, now);
        let second = line.waiters.len() == 2;
        drop(lines);
        if second {
            // A head alone holds up nobody; from the second on, someone must see that it moves.
            shared.engine.mind_lines();
        }
        Place { shared: Arc::clone(shared), name: name.clone(), ticket, wake, woken }
    }

    /// A claim on this name was removed: whoever is next in this process need not wait for the store to say so.
    pub(crate) fn wake(&self, name: &LockName, now: Duration) {
        if let Some(line) = self.by_name.lock().get_mut(name) {
            line.releases += 1;
            line.call_head(now);
        }
    }

    /// A call has ended. The line learns of an answer here, since a caller that is not polled tells it nothing; if the
    /// head made the call, it must take the answer now.
    pub(crate) fn call_ended(&self, fate: &Arc<Fate>, reach: Reach, now: Duration) {
        let mut lines = self.by_name.lock();
        let Some(line) = lines.get_mut(&fate.claim.name) else { return };
        if reach == Reach::Answered {
            line.standing.answered(now);
        }
        if let Some(head) = line.head()
            && head.fate.as_ref().is_some_and(|at_store| Arc::ptr_eq(at_store, fate))
        {
            head.due = now;
            head.asking = false;
        }
    }

    /// What the store last said of a name that is waited for.
    pub(crate) fn standing(&self, name: &LockName) -> Standing {
        self.by_name.lock().get(name).map(|line| line.standing).unwrap_or_default()
    }

    /// Sends heads that do not move to the end of their lines, and tells when to look again.
    pub(crate) fn sweep(&self, shared: &Shared, now: Duration) -> Option<Duration> {
        let mut given_up = Vec::new();
        let mut minded = false;
        for line in self.by_name.lock().values_mut().filter(|line| line.waiters.len() > 1) {
            minded = true;
            let Some(mut first) = line.waiters.first_entry() else { continue };
            if !first.get().asking && first.get().woken.load(Ordering::Acquire) {
                let due = &mut first.get_mut().due;
                *due = (*due).min(now);
            }
            if first.get().due.saturating_add(PATIENCE) > now {
                continue;
            }
            let late = first.remove();
            given_up.extend(late.fate);
            // Its ticket is dead: when it is polled after all, it finds that and queues again.
            line.call_head(now);
        }
        for fate in &given_up {
            shared.end_seeking(fate);
        }
        minded.then(|| now.saturating_add(SWEEP_EVERY))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_name.lock().len()
    }
}

impl Place {
    fn with<T>(&self, f: impl FnOnce(&mut Line) -> T) -> Option<T> {
        self.shared.lines.by_name.lock().get_mut(&self.name).map(f)
    }

    /// Whether it is this waiter's turn at the store. One that was passed over queues again first.
    pub(crate) fn is_head(&mut self, now: Duration) -> bool {
        let mut lines = self.shared.lines.by_name.lock();
        let line = lines.entry(self.name.clone()).or_default();
        let reseated = !line.waiters.contains_key(&self.ticket);
        if reseated {
            self.ticket = line.seat(&self.wake, &self.woken, now);
        }
        let head = line.is_head(self.ticket);
        let minded = line.waiters.len() > 1;
        drop(lines);
        if minded && reseated {
            self.shared.engine.mind_lines();
        }
        head
    }

    /// The head asks the store with this claim; the call ends by `due`.
    pub(crate) fn asks(&self, fate: &Arc<Fate>, due: Duration) {
        // What was told before the question is in the answer.
        let _ = self.wake.notified().now_or_never();
        self.woken.store(false, Ordering::Release);
        self.expect(fate, due, true);
    }

    /// The head rests, and will move by `due` at the latest if it is polled.
    pub(crate) fn rests(&self, fate: &Arc<Fate>, due: Duration) {
        self.expect(fate, due, false);
    }

    /// Polls the store's wake-up so that the line learns of it, also if this head is never polled again.
    pub(crate) fn poll_changed(
        &self,
        fate: &Arc<Fate>,
        due: Duration,
        changed: Pin<&mut impl Future<Output = ()>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if self.woken.swap(false, Ordering::AcqRel) {
            self.rests(fate, due);
        }
        let waker = Waker::from(Arc::new(HeadWaker { woken: Arc::clone(&self.woken), task: cx.waker().clone() }));
        changed.poll(&mut Context::from_waker(&waker))
    }

    fn expect(&self, fate: &Arc<Fate>, due: Duration, asking: bool) {
        self.with(|line| {
            if let Some(waiter) = line.waiters.get_mut(&self.ticket) {
                waiter.fate = Some(Arc::clone(fate));
                waiter.due = due;
                waiter.asking = asking;
            }
        });
    }

    /// How many releases of the name this client has seen.
    pub(crate) fn releases(&self) -> u64 {
        self.with(|line| line.releases).unwrap_or(0)
    }

    /// What the store last said; the whole line shares it.
    pub(crate) fn standing(&self) -> Standing {
        self.with(|line| line.standing).unwrap_or_default()
    }

    pub(crate) fn update_standing(&self, update: impl FnOnce(&mut Standing)) {
        self.with(|line| update(&mut line.standing));
    }

    /// Has the head ask the store now, because a waiter's limit is near and the last answer is old.
    pub(crate) fn nudge(&self, now: Duration) {
        self.with(|line| line.call_head(now));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.shared.lines.by_name.lock();
        let Entry::Occupied(mut line) = lines.entry(self.name.clone()) else { return };
        let was_head = line.get().is_head(self.ticket);
        line.get_mut().waiters.remove(&self.ticket);
        if line.get().waiters.is_empty() {
            line.remove();
        } else if was_head {
            // Also passes on a wake-up that this waiter consumed and did not use.
            line.get_mut().call_head(self.shared.clock.now());
        }
    }
}
