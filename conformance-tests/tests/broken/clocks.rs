//! Clocks that do not tell the time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Fixture, Memory, Outcome};
use lock_core::{
    Attempt, Backend, BackendError, Capabilities, Claim, Clock, Extension, LockRecord, MemoryBackend, Release,
    Selector, SystemClock,
};

use crate::{caught_by, passes};

/// A clock that moves only when a backend is called, as `is_held` kept in a flag would.
#[derive(Clone, Debug, Default)]
struct MovesWithCalls(Arc<Mutex<Duration>>);

impl MovesWithCalls {
    fn catch_up(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = SystemClock.now();
    }
}

impl Clock for MovesWithCalls {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock that runs too slowly.
#[derive(Clone, Debug)]
struct TooSlow(Duration);

impl Clock for TooSlow {
    fn now(&self) -> Duration {
        (SystemClock.now() - self.0).mul_f64(0.8)
    }
}

/// A good store whose clients read a bad clock.
#[derive(Debug)]
struct BadClock<C> {
    store: MemoryBackend,
    clock: C,
    called: fn(&C),
}

#[derive(Debug)]
struct Called<C> {
    store: MemoryBackend,
    clock: C,
    called: fn(&C),
}

#[async_trait]
impl<C: Clock + Clone> Backend for Called<C> {
    fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        (self.called)(&self.clock);
        self.store.attempt(claim).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        (self.called)(&self.clock);
        self.store.extend(claim, lease).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        (self.called)(&self.clock);
        self.store.release(claim).await
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        self.store.inspect(selector).await
    }

    async fn close(&self) {}
}

#[async_trait]
impl<C: Clock + Clone> Fixture for BadClock<C> {
    fn name(&self) -> &str {
        std::any::type_name::<C>()
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        Ok(Arc::new(Called { store: self.store.clone(), clock: self.clock.clone(), called: self.called }))
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        Some(Arc::new(self.clock.clone()))
    }
}

#[test]
fn a_clock_that_moves_only_with_calls_is_caught() {
    let clock = MovesWithCalls::default();
    clock.catch_up();
    let broken = BadClock { store: MemoryBackend::new(), clock, called: MovesWithCalls::catch_up };
    caught_by("deadlines::is_held_reads_the_clock_at_every_call", &["L8.a"], broken);
    passes("deadlines::is_held_reads_the_clock_at_every_call", Memory::pushing());
}

#[test]
fn a_clock_that_runs_too_slowly_is_caught() {
    let clock = TooSlow(SystemClock.now());
    // Without hints: they would end the hold in time by themselves, most times.
    let broken = BadClock { store: MemoryBackend::new().with_polling(), clock, called: |_| {} };
    caught_by("deadlines::no_hold_outlives_the_record", &["L3.d"], broken);
}
