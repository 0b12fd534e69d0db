//! The memory backend itself: the trait over the data.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::sync::Notify;

use super::store::{Key, Store};
use crate::{
    Attempt, Backend, BackendError, Busy, Capabilities, Claim, Clock, Extension, FencingToken, Grant, Intent,
    LockRecord, LossPush, Queue, Release, Selector, SystemClock, Verdict, Verdicts, Wakes, sync::Guarded,
};

/// A store in this process's memory, for unit tests and for locks within one process.
///
/// Clones share one store, as connections to one server would. It keeps the whole contract, with one limit that its
/// capabilities state: the store ends with its process.
///
/// ```
/// # use lock_core::{LockClient, MemoryBackend};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_core::Error> {
/// let store = MemoryBackend::new();
/// let one = LockClient::builder(store.clone()).build()?;
/// let other = LockClient::builder(store).build()?;
/// let guard = one.lock("x").acquire().await?;
/// assert!(other.lock("x").try_acquire().await?.is_none());
/// # drop(guard);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MemoryBackend {
    store: Arc<Guarded<Store>>,
    clock: Arc<dyn Clock>,
    capabilities: Arc<Capabilities>,
}

impl MemoryBackend {
    /// An empty store that wakes its waiters, and leaves their order to the client.
    #[must_use]
    pub fn new() -> Self {
        let mut capabilities = Capabilities::new("memory");
        capabilities.wakes = Wakes::Push;
        capabilities.loss_push = LossPush::Prompt;
        capabilities.token_source = "a counter for each name".into();
        let lives = Verdicts {
            client_pause: Verdict::No,
            server_restart: Verdict::If("the process lives: the store ends with it".into()),
            data_loss: Verdict::No,
            async_failover: Verdict::Yes,
            clock_step: Verdict::Yes,
        };
        capabilities.token_order = Verdicts { client_pause: Verdict::Yes, ..lives.clone() };
        capabilities.exclusion =
            Verdicts { client_pause: Verdict::If("the resource checks the fencing token".into()), ..lives };
        MemoryBackend { store: Arc::default(), clock: Arc::new(SystemClock), capabilities: Arc::new(capabilities) }
    }

    /// The same store with leases counted by this clock; give the client the same one.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The same store with a queue of its own: first come, first served among all clients.
    #[must_use]
    pub fn with_queue(mut self) -> Self {
        Arc::make_mut(&mut self.capabilities).queue = Queue::InStore;
        self
    }

    /// The same store without wake-ups or hints of loss, as a database that can only be polled.
    #[must_use]
    pub fn with_polling(mut self) -> Self {
        let capabilities = Arc::make_mut(&mut self.capabilities);
        capabilities.wakes = Wakes::Poll;
        capabilities.loss_push = LossPush::AtRenewal;
        self
    }

    fn key(claim: &Claim) -> Key {
        (claim.namespace.clone(), claim.name.clone(), claim.kind)
    }

    fn grant(&self, token: u64, lease: Duration, changed: &Arc<Notify>) -> Attempt {
        let mut grant = Grant::new(FencingToken::new(token), lease);
        if self.capabilities.loss_push == LossPush::Prompt {
            // A notification that exists hears of every change from then on, polled or not.
            let heard = Arc::clone(changed).notified_owned();
            grant.disturbed = stream::unfold((Arc::clone(changed), heard), |(changed, heard)| async move {
                heard.await;
                let heard = Arc::clone(&changed).notified_owned();
                Some(((), (changed, heard)))
            })
            .boxed();
        }
        Attempt::Granted(grant)
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        let now = self.clock.now();
        let in_store = self.capabilities.queue == Queue::InStore;
        let mut store = self.store.lock();
        let entry = store.entry(&Self::key(claim), now);
        let changed = Arc::clone(&entry.changed);
        if let Some(held) = entry.held.as_mut().filter(|held| held.claim == claim.id) {
            held.until = held.until.max(now.saturating_add(claim.lease));
            let (token, lease) = (held.token, held.until.saturating_sub(now));
            return Ok(self.grant(token, lease, &changed));
        }
        let first = entry.queue.front().is_none_or(|first| first.claim == claim.id);
        if entry.held.is_none() && first {
            let token = entry.grant(claim, now);
            return Ok(self.grant(token, claim.lease, &changed));
        }
        let holder = entry.holder(now);
        let retry_after = holder.as_ref().and_then(|holder| holder.remaining);
        let mut busy = Busy::new(retry_after, holder.into_iter().collect());
        if claim.intent == Intent::Wait {
            let wake = if in_store { entry.enqueue(claim, now) } else { changed };
            if self.capabilities.wakes == Wakes::Push {
                busy.changed = wake.notified_owned().boxed();
            }
        }
        Ok(Attempt::Busy(busy))
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        let now = self.clock.now();
        let mut store = self.store.lock();
        let entry = store.entry(&Self::key(claim), now);
        let Some(held) = entry.held.as_mut().filter(|held| held.claim == claim.id) else {
            return Ok(Extension::NotHeld);
        };
        held.until = held.until.max(now.saturating_add(lease));
        Ok(Extension::Extended(held.until.saturating_sub(now)))
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        let now = self.clock.now();
        let mut store = self.store.lock();
        let entry = store.entry(&Self::key(claim), now);
        let held = entry.holds(claim.id);
        if held {
            entry.held = None;
        }
        let before = entry.queue.len();
        entry.queue.retain(|queued| queued.claim != claim.id);
        let removed = held || entry.queue.len() < before;
        if removed {
            entry.tell();
        }
        Ok(if removed { Release::Removed } else { Release::Absent })
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        let now = self.clock.now();
        let in_store = self.capabilities.queue == Queue::InStore;
        let mut store = self.store.lock();
        let mut records = Vec::new();
        for ((namespace, name, kind), entry) in &mut store.entries {
            if namespace != selector.namespace() || !selector.matches(name.as_str()) {
                continue;
            }
            entry.expire(now);
            let holders: Vec<_> = entry.holder(now).into_iter().collect();
            if holders.is_empty() && entry.queue.is_empty() {
                continue;
            }
            let record = LockRecord::new(namespace, name, *kind, holders);
            let queue = || entry.queue.iter().map(|queued| queued.claim).collect();
            records.push(if in_store { record.with_queue(queue()) } else { record });
        }
        Ok(records)
    }

    async fn close(&self) {}
}

impl Default for MemoryBackend {
    fn default() -> Self {
        MemoryBackend::new()
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend")
            .field("queue", &self.capabilities.queue)
            .field("wakes", &self.capabilities.wakes)
            .finish_non_exhaustive()
    }
}
