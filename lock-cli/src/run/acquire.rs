//! The wait for the lock: what is asked of the store, what the terminal shows, and who is in the way.

use std::{
    sync::mpsc::Sender,
    time::{Duration, SystemTime},
};

use leasehold::{ErrorKind, LockClient, LockGuard, Selector};

use super::{Event, Run, limited, nested::Enclosing, wait_line::WaitLine};
use crate::{
    exit::{Exit, Failure},
    look::holder_sentence,
};

/// How often the wait line is drawn.
const DRAW: Duration = Duration::from_millis(100);

/// How often the store is asked who holds the lock, for the wait line.
const ASK_WHO: Duration = Duration::from_secs(1);

/// What one word about the holder may cost, where nothing depends on it.
const ASK_LIMIT: Duration = Duration::from_secs(1);

impl Run {
    /// Waits for the lock.
    pub(super) fn acquire(&self, client: &LockClient) -> Result<LockGuard, Failure> {
        self.refuse_to_wait_for_ourselves(client)?;
        let mut lock = client.lock(&self.name);
        lock = self.args.lease.into_iter().fold(lock, |lock, lease| lock.lease(lease));
        lock = self.args.wait.into_iter().fold(lock, |lock, wait| lock.wait(wait));
        lock = self.args.min_hold.into_iter().fold(lock, |lock, min_hold| lock.min_hold(min_hold));
        lock = self.args.label.iter().fold(lock, |lock, label| lock.label(label));
        if self.args.no_wait {
            return self
                .background
                .wait(lock.try_acquire(), None, drop)??
                .ok_or_else(|| self.busy(|| self.who_is_in_the_way(client)));
        }
        let waited = match self.wait_line() {
            None => self.background.wait(lock.acquire(), None, drop)?,
            Some(mut line) => {
                let who = self.background.ask(who_holds(client.clone(), self.name.clone(), self.background.events()));
                let watch = |event: Option<Event>| {
                    if let Some(Event::Records(records)) = event {
                        line.learn(records);
                    }
                    line.draw();
                };
                let waited = self.background.wait(lock.acquire(), Some(DRAW), watch);
                who.abort();
                waited?
            }
        };
        waited.map_err(|error| match error.kind() {
            ErrorKind::TimedOut => self.busy(|| error.to_string()),
            _ => error.into(),
        })
    }

    /// A run inside a run of the same lock would wait for its own end.
    fn refuse_to_wait_for_ourselves(&self, client: &LockClient) -> Result<(), Failure> {
        let enclosing = Enclosing::from_environment();
        if enclosing.is_empty() {
            return Ok(());
        }
        let looking = client.clone();
        let selector = Selector::name(&self.name);
        // A store that does not answer here will not answer the attempt either, and that tells more.
        let records = self.background.wait(async move { looking.inspect(selector).await }, None, drop)?;
        let records = records.unwrap_or_default();
        if !enclosing.hold_one_of(&client.capabilities().store, &records) {
            return Ok(());
        }
        Err(Failure::new(
            Exit::Busy,
            format!("lock {:?} is held by an enclosing `leasehold run`, which waits for this one to end", self.name),
        ))
    }

    fn wait_line(&self) -> Option<WaitLine> {
        if self.args.quiet { None } else { WaitLine::begin(&self.name) }
    }

    /// What a busy lock means to the caller: a code of its choice, and a sentence unless it wants silence.
    fn busy(&self, sentence: impl FnOnce() -> String) -> Failure {
        let exit = self.args.busy_exit_code.map_or(Exit::Busy, Exit::BusyAs);
        if self.args.quiet { Failure::silent(exit) } else { Failure::new(exit, sentence()) }
    }

    /// A failed try says only that it failed; a look says whom to ask.
    fn who_is_in_the_way(&self, client: &LockClient) -> String {
        let (looking, selector) = (client.clone(), Selector::name(&self.name));
        let looked = self.background.finish(limited(ASK_LIMIT, async move { looking.inspect(selector).await }));
        let records = looked.and_then(Result::ok).unwrap_or_default();
        match records.iter().flat_map(|record| &record.holders).next() {
            Some(holder) => {
                let holder = holder_sentence(holder, Duration::ZERO, SystemTime::now());
                format!("lock {:?} is busy: {holder}", self.name)
            }
            None => format!("lock {:?} was busy", self.name),
        }
    }
}

/// Asks again and again who holds a lock, for the wait line.
async fn who_holds(client: LockClient, name: String, events: Sender<Event>) {
    loop {
        // A store that fails here is the acquisition's to report.
        if let Ok(records) = client.inspect(Selector::name(&name)).await
            && events.send(Event::Records(records)).is_err()
        {
            return;
        }
        tokio::time::sleep(ASK_WHO).await;
    }
}
