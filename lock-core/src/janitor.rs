//! The janitor: one task per client that removes what ended acquisitions and dropped guards may have left (L10, L11).

use std::{
    collections::{BTreeMap, HashMap},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::sync::{Notify, watch};
use tracing::{debug, warn};

use crate::{
    ClaimId, LeaseModel,
    call::Polled,
    fate::{Duty, Fate},
    meter::CleanedUp,
    shared::Shared,
    sync::Guarded,
};

/// How many releases the janitor has under way at once: enough to keep a store busy, few enough for a small pool.
const AT_ONCE: usize = 64;

/// How often forgotten acquisitions are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The longest pause between two releases of one claim.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What is still to be cleaned up.
#[derive(Debug)]
pub(crate) struct Janitor {
    book: Guarded<Book>,
    wake: Notify,
    /// Calls under way that may yet leave something to clean up: the backend stays open for them.
    abroad: AtomicUsize,
    end: watch::Sender<End>,
}

/// How far the janitor's task has come with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It works.
    NotYet,
    /// Everything is cleaned up, and the backend is closed.
    Closed,
    /// The client's runtime has ended under it.
    CutShort,
}

#[derive(Debug, Default)]
struct Book {
    /// Acquisitions under way. A forgotten one is found here.
    seeking: HashMap<ClaimId, Weak<Fate>>,
    /// The task looks for forgotten ones every second, until it finds none under way at all.
    looking: bool,
    /// Claims to be released, by when; the number keeps two of one moment apart.
    due: BTreeMap<(Duration, u64), Chore>,
    next_number: u64,
    /// Releases under way.
    under_way: usize,
    /// The client is closed, or its last handle is gone: when nothing is left, the backend is closed.
    finish: bool,
}

#[derive(Debug)]
struct Chore {
    fate: Arc<Fate>,
    tries: u32,
}

/// A call under way that may yet leave something to clean up.
#[derive(Debug)]
pub(crate) struct Abroad(Arc<Shared>);

impl Drop for Abroad {
    fn drop(&mut self) {
        let janitor = &self.0.janitor;
        if janitor.abroad.fetch_sub(1, Ordering::SeqCst) == 1 && janitor.book.lock().finish {
            janitor.wake.notify_one();
        }
    }
}

impl Chore {
    fn again(&self) -> Chore {
        Chore { fate: Arc::clone(&self.fate), tries: self.tries + 1 }
    }
}

impl Default for Janitor {
    fn default() -> Self {
        Janitor {
            book: Guarded::default(),
            wake: Notify::new(),
            abroad: AtomicUsize::new(0),
            end: watch::Sender::new(End::NotYet),
        }
    }
}

impl Book {
    fn put(&mut self, at: Duration, chore: Chore) {
        let number = self.next_number;
        self.next_number += 1;
        self.due.insert((at, number), chore);
    }
}

impl Janitor {
    /// Whether another acquisition can be answered for.
    pub(crate) fn has_room(&self, limit: usize) -> bool {
        let book = self.book.lock();
        book.seeking.len() + book.due.len() + book.under_way < limit
    }

    /// An acquisition begins.
    pub(crate) fn seek(&self, fate: &Arc<Fate>) {
        let mut book = self.book.lock();
        book.seeking.insert(fate.claim.id, Arc::downgrade(fate));
        // Waking the task costs more than the rest of this: once it looks every second, it needs no telling.
        let told = std::mem::replace(&mut book.looking, true);
        drop(book);
        if !told {
            self.wake.notify_one();
        }
    }

    /// An acquisition is over, one way or the other.
    pub(crate) fn sought(&self, fate: &Fate) {
        self.book.lock().seeking.remove(&fate.claim.id);
    }

    /// Whether an acquisition of this client seeks by this claim.
    pub(crate) fn is_sought(&self, claim: ClaimId) -> bool {
        self.book.lock().seeking.contains_key(&claim)
    }

    /// This claim must be released now.
    pub(crate) fn oblige(shared: &Shared, fate: &Arc<Fate>, now: Duration) {
        shared.janitor.book.lock().put(now, Chore { fate: Arc::clone(fate), tries: 0 });
        shared.janitor.wake.notify_one();
        // Last: a recorder that panics must not cost the clean-up.
        shared.meter.clean_up_due();
    }

    /// This claim was released once, but a late request may bring it back until it is released again.
    pub(crate) fn oblige_again(shared: &Shared, fate: &Arc<Fate>, now: Duration, until: Duration) {
        let chore = Chore { fate: Arc::clone(fate), tries: 1 };
        shared.janitor.book.lock().put(until.min(now.saturating_add(pause(0))), chore);
        shared.janitor.wake.notify_one();
        shared.meter.clean_up_due();
    }

    /// Every acquisition under way is over.
    pub(crate) fn end_all_seeking(&self, shared: &Shared) {
        let seeking: Vec<_> = self.book.lock().seeking.values().filter_map(Weak::upgrade).collect();
        for fate in seeking {
            shared.end_seeking(&fate);
        }
    }

    /// Nothing new comes: when all is cleaned up, close the backend.
    pub(crate) fn finish(&self) {
        self.book.lock().finish = true;
        self.wake.notify_one();
    }

    /// Tells when the task has ended, and how.
    pub(crate) fn end(&self) -> watch::Receiver<End> {
        self.end.subscribe()
    }

    /// Counts a call that may yet leave something to clean up, until what this returns is dropped.
    pub(crate) fn call_goes_abroad(shared: &Arc<Shared>) -> Abroad {
        shared.janitor.abroad.fetch_add(1, Ordering::SeqCst);
        Abroad(Arc::clone(shared))
    }

    /// How many clean-ups are pending.
    pub(crate) fn pending(&self) -> usize {
        let book = self.book.lock();
        // A call under way may yet leave something.
        book.due.len() + book.under_way + self.abroad.load(Ordering::SeqCst)
    }

    /// How many claims wait to be cleaned up or are being cleaned up.
    pub(crate) fn clean_ups(&self) -> usize {
        let book = self.book.lock();
        book.due.len() + book.under_way
    }

    #[cfg(test)]
    pub(crate) fn seeking(&self) -> usize {
        self.book.lock().seeking.len()
    }
}

/// The n-th pause between two releases of one claim: 1 s, 2 s, 4 s and so on.
fn pause(tries: u32) -> Duration {
    Duration::from_secs(1_u64 << tries.min(5)).min(LONGEST_PAUSE)
}

/// Tells the end of the task, also of one whose runtime ended before it was polled once.
struct EndOfRuntime(Arc<Shared>);

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        self.0.janitor.end.send_if_modified(|end| {
            let cut_short = *end == End::NotYet;
            if cut_short {
                *end = End::CutShort;
            }
            cut_short
        });
    }
}

/// The janitor's task.
pub(crate) fn run(shared: Arc<Shared>) -> impl Future<Output = ()> + Send {
    let end = EndOfRuntime(shared);
    async move {
        let end = end;
        clean(&end.0).await;
    }
}

async fn clean(shared: &Arc<Shared>) {
    let mut under_way = FuturesUnordered::new();
    let mut look_at = tokio::time::Instant::now() + LOOK_EVERY;
    loop {
        let now = shared.clock.now();
        if tokio::time::Instant::now() >= look_at {
            // Also on a client whose releases wake this task all the time.
            find_forgotten(shared);
            look_at = tokio::time::Instant::now() + LOOK_EVERY;
        }
        while under_way.len() < AT_ONCE
            && let Some(chore) = next_due(&shared.janitor, now)
        {
            let shared = Arc::clone(shared);
            under_way.push(tokio::spawn(async move { clean_up(&shared, chore).await }).map(drop));
        }
        let Some(nap) = plan_nap(shared, now) else { break };
        tokio::select! {
            () = shared.janitor.wake.notified() => {}
            () = tokio::time::sleep(nap) => {}
            Some(()) = under_way.next() => {}
        }
    }
    // A backend that panics here must not leave `close` waiting for ever.
    let closing = AssertUnwindSafe(shared.backend().close()).catch_unwind();
    let closed = tokio::time::timeout(shared.request_timeout(), closing).await;
    if matches!(closed, Ok(Err(_))) {
        warn!(store = %shared.capabilities.store, "closing the store's connections panicked; they are left");
    }
    if closed.is_err() {
        warn!(store = %shared.capabilities.store, "closing the store's connections took too long; they are left");
    }
    shared.engine.retire();
    shared.janitor.end.send_replace(End::Closed);
}

fn next_due(janitor: &Janitor, now: Duration) -> Option<Chore> {
    let mut book = janitor.book.lock();
    let first = book.due.first_entry()?;
    let chore = (first.key().0 <= now).then(|| first.remove())?;
    book.under_way += 1;
    Some(chore)
}

/// How long to sleep; None when all is done.
fn plan_nap(shared: &Shared, now: Duration) -> Option<Duration> {
    const IDLE: Duration = Duration::from_secs(3_600);
    let book = shared.janitor.book.lock();
    if book.finish && book.due.is_empty() && book.under_way == 0 && shared.janitor.abroad.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let next = book.due.first_key_value().map_or(IDLE, |((at, _), _)| at.saturating_sub(now));
    // Forgotten acquisitions tell nobody; while there are any, someone has to look.
    let look = if book.looking { LOOK_EVERY } else { IDLE };
    Some(next.min(look).max(Duration::from_millis(1)))
}

fn find_forgotten(shared: &Shared) {
    let now = shared.clock.now();
    let seeking: Vec<_> = {
        let mut book = shared.janitor.book.lock();
        book.looking = !book.seeking.is_empty();
        book.seeking.values().filter_map(Weak::upgrade).collect()
    };
    for fate in seeking {
        if fate.end_if_forgotten(now) {
            Janitor::oblige(shared, &fate, now);
        }
    }
}

/// One release of a claim, and the decision whether another is due later.
async fn clean_up(shared: &Arc<Shared>, chore: Chore) {
    let mut settle =
        Settle { shared, next: Some((shared.clock.now().saturating_add(pause(chore.tries)), chore.again())) };
    let fate = &chore.fate;
    let request_timeout = shared.options.request_timeout(fate.claim.lease);
    let answered = shared.release(fate, Polled::ByTask, request_timeout).await;
    shared.meter.cleaned_up(CleanedUp::of(&answered.result));
    // Whoever waits for this outcome to re-enter has waited long enough, whatever it was.
    shared.owners.vacate(fate);
    let now = shared.clock.now();
    let duty = match &answered.result {
        Ok(_) => fate.released(now),
        Err(error) => {
            debug!(name = %fate.claim.name, %error, tries = chore.tries, "a clean-up failed");
            fate.duty(now, shared.capabilities.lease_model == LeaseModel::PerClaim)
        }
    };
    settle.next = match duty {
        Duty::Done => None,
        Duty::Release { until } => {
            let at = now.saturating_add(pause(chore.tries));
            // On a store with sessions a claim has no end of its own, so `until` may lie behind us.
            Some((if until > now { at.min(until) } else { at }, chore.again()))
        }
    };
}

/// Counts a clean-up out and puts the next one down, also if the backend panicked: nothing is forgotten.
struct Settle<'a> {
    shared: &'a Shared,
    next: Option<(Duration, Chore)>,
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        let mut book = self.shared.janitor.book.lock();
        book.under_way -= 1;
        if let Some((at, chore)) = self.next.take() {
            book.put(at, chore);
            drop(book);
        } else {
            drop(book);
            // Not under the lock: a recorder may do anything, such as dropping a guard.
            self.shared.meter.clean_ups_over(1);
        }
        self.shared.janitor.wake.notify_one();
    }
}
