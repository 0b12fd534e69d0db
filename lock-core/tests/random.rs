//! Random calls of the public API on the memory backend, in each of its modes.

use std::sync::Arc;

use conformance_tests::play_randomly;
use lock_core::{Backend, MemoryBackend};

fn on(store: MemoryBackend) {
    play_randomly(|| async { Ok(Arc::new(store.clone()) as Arc<dyn Backend>) });
}

#[test]
fn random_calls_keep_the_contract_on_a_store_that_wakes() {
    on(MemoryBackend::new());
}

#[test]
fn random_calls_keep_the_contract_on_a_store_that_is_polled() {
    on(MemoryBackend::new().with_polling());
}

#[test]
fn random_calls_keep_the_contract_on_a_store_with_a_queue() {
    on(MemoryBackend::new().with_queue());
}
