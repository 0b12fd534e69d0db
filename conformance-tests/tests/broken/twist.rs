//! A memory backend with one call twisted, and the fixture that gives it to the suite.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use conformance_tests::{Fixture, Oracle, Outcome, ThroughBackend};
use lock_core::{
    Attempt, Backend, BackendError, Capabilities, Claim, Extension, Holder, LockRecord, MemoryBackend, Release,
    Selector,
};

/// What is wrong with a backend. What is not overridden is right.
#[async_trait]
pub(crate) trait Twist: Debug + Send + Sync + 'static {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        store.attempt(claim).await
    }

    async fn extend(&self, store: &MemoryBackend, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        store.extend(claim, lease).await
    }

    async fn release(&self, store: &MemoryBackend, claim: &Claim) -> Result<Release, BackendError> {
        store.release(claim).await
    }

    async fn inspect(&self, store: &MemoryBackend, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        store.inspect(selector).await
    }
}

/// Who holds the lock that a claim is for.
pub(crate) async fn holders(store: &MemoryBackend, claim: &Claim) -> Result<Vec<Holder>, BackendError> {
    let selector = Selector::name(claim.name.as_str()).in_namespace(claim.namespace.clone());
    Ok(store.inspect(&selector).await?.into_iter().flat_map(|record| record.holders).collect())
}

#[derive(Debug)]
struct Twisted<T> {
    store: MemoryBackend,
    twist: Arc<T>,
}

#[async_trait]
impl<T: Twist> Backend for Twisted<T> {
    fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        self.twist.attempt(&self.store, claim).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        self.twist.extend(&self.store, claim, lease).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        self.twist.release(&self.store, claim).await
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        self.twist.inspect(&self.store, selector).await
    }

    async fn close(&self) {}
}

/// A store whose clients speak to it through a twisted backend, while the oracle looks straight into it.
#[derive(Debug)]
pub(crate) struct Broken<T> {
    store: MemoryBackend,
    twist: Arc<T>,
}

impl<T: Twist> Broken<T> {
    pub(crate) fn new(twist: T) -> Self {
        Broken { store: MemoryBackend::new(), twist: Arc::new(twist) }
    }

    pub(crate) fn queueing(twist: T) -> Self {
        Broken { store: MemoryBackend::new().with_queue(), twist: Arc::new(twist) }
    }

    pub(crate) fn polling(twist: T) -> Self {
        Broken { store: MemoryBackend::new().with_polling(), twist: Arc::new(twist) }
    }
}

#[async_trait]
impl<T: Twist> Fixture for Broken<T> {
    fn name(&self) -> &str {
        std::any::type_name::<T>()
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        Ok(Arc::new(Twisted { store: self.store.clone(), twist: Arc::clone(&self.twist) }))
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        Ok(Arc::new(ThroughBackend::new(Arc::new(self.store.clone()))))
    }
}
