//! The fixture that the suite brings itself: the memory backend, in each of its modes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{Backend, ClaimId, Holder, ManualClock, MemoryBackend, Namespace, SystemClock};

use crate::{Blind, Fixture, Key, Oracle, Outcome, Seen, ThroughBackend};

/// The memory backend. Clones of a backend share their store, as connections share a server.
#[derive(Clone, Debug)]
pub struct Memory {
    name: &'static str,
    make: fn() -> MemoryBackend,
    store: MemoryBackend,
    /// The store's own clock, where one case alone uses the store and may put it forward.
    clock: Option<ManualClock>,
}

impl Memory {
    fn new(name: &'static str, make: fn() -> MemoryBackend) -> Self {
        Memory { name, make, store: make(), clock: None }
    }

    /// As it is: it wakes its waiters and keeps no queue.
    #[must_use]
    pub fn pushing() -> Self {
        Memory::new("memory", MemoryBackend::new)
    }

    /// As a store whose clients must ask again and again.
    #[must_use]
    pub fn polling() -> Self {
        Memory::new("memory_polling", || MemoryBackend::new().with_polling())
    }

    /// As a store that keeps its waiters in a queue.
    #[must_use]
    pub fn queueing() -> Self {
        Memory::new("memory_queueing", || MemoryBackend::new().with_queue())
    }

    /// The store itself.
    #[must_use]
    pub fn store(&self) -> &MemoryBackend {
        &self.store
    }
}

#[async_trait]
impl Fixture for Memory {
    fn name(&self) -> &str {
        self.name
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        Ok(Arc::new(self.store.clone()))
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        let through = ThroughBackend::new(Arc::new(self.store.clone()));
        Ok(Arc::new(MemoryOracle { through, clock: self.clock.clone() }))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        let clock = ManualClock::over(SystemClock);
        let store = (self.make)().with_clock(clock.clone());
        Ok(Arc::new(Memory { name: self.name, make: self.make, store, clock: Some(clock) }))
    }
}

/// Looks through another clone of the backend, which is the store itself.
#[derive(Debug)]
struct MemoryOracle {
    through: ThroughBackend,
    clock: Option<ManualClock>,
}

#[async_trait]
impl Oracle for MemoryOracle {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        self.through.holders(key).await
    }

    async fn waiting(&self, key: &Key) -> Seen<u64> {
        self.through.waiting(key).await
    }

    async fn claims(&self, namespace: &Namespace) -> Seen<u64> {
        self.through.claims(namespace).await
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        self.through.remove(key).await
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()> {
        self.through.overwrite(key, claim, lease).await
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        self.through.endless(namespace).await
    }

    async fn age_idle(&self, _namespace: &Namespace) -> Seen<()> {
        let clock = self.clock.as_ref().ok_or(Blind::Unsupported("age records of a store that others use"))?;
        clock.advance(Duration::from_secs(2 * 24 * 3_600));
        Ok(())
    }
}
