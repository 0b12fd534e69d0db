//! The fixture that the suite brings itself: the memory backend, in each of its modes.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Backend, MemoryBackend};

use crate::{Fixture, Outcome};

/// The memory backend. Clones of a backend share their store, as connections share a server.
#[derive(Clone, Debug)]
pub struct Memory {
    name: &'static str,
    make: fn() -> MemoryBackend,
    store: MemoryBackend,
}

impl Memory {
    fn new(name: &'static str, make: fn() -> MemoryBackend) -> Self {
        Memory { name, make, store: make() }
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

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        Ok(Arc::new(Memory::new(self.name, self.make)))
    }
}
