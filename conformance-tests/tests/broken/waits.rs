//! Backends that wake, queue or hint wrongly.

use std::{collections::HashSet, future::pending, sync::Mutex, time::Duration};

use async_trait::async_trait;
use conformance_tests::Memory;
use lock_core::{
    Attempt, Backend as _, BackendError, Busy, Claim, ClaimId, Grant, MemoryBackend, Release,
    reexport::futures_util::{StreamExt as _, stream},
};

use crate::{
    caught_by, passes,
    twist::{Broken, Twist, holders},
};

/// Says that it wakes its waiters, and does not.
#[derive(Debug)]
struct NeverWakes;

#[async_trait]
impl Twist for NeverWakes {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        Ok(match store.attempt(claim).await? {
            Attempt::Busy(busy) => Attempt::Busy(Busy { changed: Box::pin(pending()), ..busy }),
            granted => granted,
        })
    }
}

#[test]
fn a_dropped_wake_up_is_caught() {
    caught_by("waiting::a_release_wakes_the_waiter", &["L9.g"], Broken::new(NeverWakes));
    passes("waiting::a_release_wakes_the_waiter", Memory::pushing());
}

/// Subscribes only after it has looked: what happens in between is not heard.
#[derive(Debug)]
struct SubscribesLate;

#[async_trait]
impl Twist for SubscribesLate {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        Ok(match store.attempt(claim).await? {
            Attempt::Busy(mut busy) => {
                let mut changed = std::mem::replace(&mut busy.changed, Box::pin(pending()));
                busy.changed = Box::pin(async move {
                    if tokio::time::timeout(Duration::from_millis(2), &mut changed).await.is_ok() {
                        pending::<()>().await;
                    }
                    changed.await;
                });
                Attempt::Busy(busy)
            }
            granted => granted,
        })
    }
}

#[test]
fn a_subscription_that_comes_too_late_is_caught() {
    caught_by("waiting::a_release_that_races_the_wait_is_not_missed", &["L9.g"], Broken::new(SubscribesLate));
    passes("waiting::a_release_that_races_the_wait_is_not_missed", Memory::pushing());
}

/// Removes holders only: who waited stays in the queue.
#[derive(Debug)]
struct LeavesWaiters;

#[async_trait]
impl Twist for LeavesWaiters {
    async fn release(&self, store: &MemoryBackend, claim: &Claim) -> Result<Release, BackendError> {
        if holders(store, claim).await?.iter().any(|holder| holder.claim == claim.id) {
            return store.release(claim).await;
        }
        Ok(Release::Absent)
    }
}

#[test]
fn a_waiter_left_in_the_queue_after_a_time_out_is_caught() {
    caught_by("waiting::a_limit_holds_and_leaves_nothing", &["L10.c"], Broken::queueing(LeavesWaiters));
    caught_by("waiting::a_waiter_that_left_a_queue_does_not_block_it", &["L10.c"], Broken::queueing(LeavesWaiters));
    passes("waiting::a_limit_holds_and_leaves_nothing", Memory::queueing());
}

/// Lets a place in the queue end with its first lease, however often it is asked for.
#[derive(Debug, Default)]
struct ForgetsPlaces(Mutex<HashSet<ClaimId>>);

#[async_trait]
impl Twist for ForgetsPlaces {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        let before = holders(store, claim).await?;
        let first = self.0.lock().expect("nobody panics with it").insert(claim.id);
        if first || before.is_empty() {
            return store.attempt(claim).await;
        }
        Ok(Attempt::Busy(Busy::new(None, before)))
    }
}

#[test]
fn a_queued_claim_that_is_never_renewed_is_caught() {
    let case = "waiting::a_place_in_a_queue_is_kept_for_longer_than_a_lease";
    caught_by(case, &["L19.b"], Broken::queueing(ForgetsPlaces::default()));
    passes(case, Memory::queueing());
}

/// Says that it tells of losses at once, and does not.
#[derive(Debug)]
struct NeverHints;

#[async_trait]
impl Twist for NeverHints {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        Ok(match store.attempt(claim).await? {
            Attempt::Granted(grant) => Attempt::Granted(Grant { disturbed: stream::pending().boxed(), ..grant }),
            busy => busy,
        })
    }
}

#[test]
fn a_hint_of_loss_that_never_comes_is_caught() {
    caught_by("loss::a_deleted_record_is_told", &["L8.d"], Broken::new(NeverHints));
    passes("loss::a_deleted_record_is_told", Memory::pushing());
}
