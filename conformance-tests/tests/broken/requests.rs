//! Backends that claim, extend, release or show wrongly.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use conformance_tests::Memory;
use lock_core::{
    Attempt, Backend as _, BackendError, Busy, Claim, Extension, FencingToken, Intent, LockName, LockRecord,
    MemoryBackend, Namespace, Pattern, Release, Selector,
};

use crate::{
    caught_by, passes,
    twist::{Broken, Twist, holders},
};

/// Claims by a look and a write instead of one operation.
#[derive(Debug)]
struct LooksThenWrites;

#[async_trait]
impl Twist for LooksThenWrites {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        let before = holders(store, claim).await?;
        if before.iter().any(|holder| holder.claim != claim.id) {
            return Ok(Attempt::Busy(Busy::new(None, before)));
        }
        tokio::task::yield_now().await;
        for holder in holders(store, claim).await? {
            store.release(&Claim { id: holder.claim, ..claim.clone() }).await?;
        }
        store.attempt(claim).await
    }
}

#[test]
fn a_claim_that_is_not_atomic_is_caught() {
    let case = "exclusion::one_of_64_racers_wins";
    caught_by(case, &["L2.a", "L1.a"], Broken::new(LooksThenWrites));
}

/// Deletes whatever record there is, as a plain delete by name does.
#[derive(Debug)]
struct DeletesByName;

#[async_trait]
impl Twist for DeletesByName {
    async fn release(&self, store: &MemoryBackend, claim: &Claim) -> Result<Release, BackendError> {
        for holder in holders(store, claim).await? {
            store.release(&Claim { id: holder.claim, ..claim.clone() }).await?;
        }
        store.release(claim).await?;
        Ok(Release::Removed)
    }
}

#[test]
fn a_plain_delete_on_release_is_caught() {
    let case = "release::of_a_record_overwritten_by_hand_leaves_the_other";
    caught_by(case, &["L5.a", "L4.c"], Broken::polling(DeletesByName));
    let case = "release::that_arrives_after_a_takeover_touches_nobody";
    caught_by(case, &["L5.a", "L5.c", "L4.c"], Broken::polling(DeletesByName));
    passes(case, Memory::pushing());
}

/// Says that it released, and leaves that to the lease.
#[derive(Debug)]
struct LeavesIt;

#[async_trait]
impl Twist for LeavesIt {
    async fn release(&self, _store: &MemoryBackend, _claim: &Claim) -> Result<Release, BackendError> {
        Ok(Release::Removed)
    }
}

#[test]
fn a_release_that_does_nothing_is_caught() {
    caught_by("release::frees_at_once", &["L5.b"], Broken::new(LeavesIt));
}

/// Counts the time that the call took into the lease.
#[derive(Debug)]
struct OverReports;

#[async_trait]
impl Twist for OverReports {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        let start = Instant::now();
        let mut attempt = store.attempt(claim).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Attempt::Granted(grant) = &mut attempt {
            grant.lease += start.elapsed();
        }
        Ok(attempt)
    }
}

#[test]
fn a_grant_that_is_over_reported_is_caught() {
    caught_by("deadlines::no_hold_outlives_the_record", &["L3.d"], Broken::polling(OverReports));
    passes("deadlines::no_hold_outlives_the_record", Memory::pushing());
}

/// Extends what is gone by claiming it again.
#[derive(Debug)]
struct ReCreates;

#[async_trait]
impl Twist for ReCreates {
    async fn extend(&self, store: &MemoryBackend, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        match store.extend(claim, lease).await? {
            Extension::NotHeld => match store.attempt(&Claim { lease, ..claim.clone() }).await? {
                Attempt::Granted(grant) => Ok(Extension::Extended(grant.lease)),
                Attempt::Busy(_) => Ok(Extension::NotHeld),
            },
            extended => Ok(extended),
        }
    }
}

#[test]
fn an_extend_that_re_creates_is_caught() {
    caught_by("extend_renew::an_extend_after_deletion_by_hand_is_lost", &["L6.b"], Broken::new(ReCreates));
    caught_by("reentrancy::re_entry_into_what_is_gone_is_lost", &["L12.d"], Broken::polling(ReCreates));
    passes("extend_renew::an_extend_after_deletion_by_hand_is_lost", Memory::polling());
}

/// Extends to the lease that was asked for, whatever remains.
#[derive(Debug)]
struct Shortens;

#[async_trait]
impl Twist for Shortens {
    async fn extend(&self, store: &MemoryBackend, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        if store.release(claim).await? == Release::Absent {
            return Ok(Extension::NotHeld);
        }
        store.attempt(&Claim { lease, ..claim.clone() }).await?;
        Ok(Extension::Extended(lease))
    }
}

#[test]
fn an_extend_that_shortens_is_caught() {
    caught_by("extend_renew::an_extend_lengthens_and_never_shortens", &["L6.a"], Broken::polling(Shortens));
    caught_by("extend_renew::an_extend_that_races_the_renewal_is_kept", &["L6.c"], Broken::polling(Shortens));
    passes("extend_renew::an_extend_that_races_the_renewal_is_kept", Memory::polling());
}

/// Says of every claim that it is still there.
#[derive(Debug)]
struct AlwaysExtends;

#[async_trait]
impl Twist for AlwaysExtends {
    async fn extend(&self, store: &MemoryBackend, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        store.extend(claim, lease).await?;
        Ok(Extension::Extended(lease))
    }
}

#[test]
fn an_extend_that_confirms_what_is_gone_is_caught() {
    caught_by("loss::a_deleted_record_is_told", &["L8.d"], Broken::polling(AlwaysExtends));
    caught_by("extend_renew::an_extend_after_a_takeover_is_lost", &["L6.b"], Broken::new(AlwaysExtends));
}

/// Gives some tokens twice.
#[derive(Debug)]
struct RepeatsTokens(AtomicU64);

#[async_trait]
impl Twist for RepeatsTokens {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        let mut attempt = store.attempt(claim).await?;
        if let Attempt::Granted(grant) = &mut attempt {
            // As a counter that was read and written back in two steps: rarely wrong, and wrong.
            let grants = self.0.fetch_add(1, Ordering::SeqCst);
            grant.token = FencingToken::new(grant.token.get() - u64::from(grants % 100 == 99));
        }
        Ok(attempt)
    }
}

#[test]
fn a_fence_that_repeats_is_caught() {
    let case = "fencing::tokens_increase_over_a_thousand_grants";
    caught_by(case, &["L13.a"], Broken::new(RepeatsTokens(AtomicU64::new(0))));
    passes(case, Memory::pushing());
}

/// Takes names for equal that differ in case, as many a collation does.
#[derive(Debug)]
struct FoldsCase;

impl FoldsCase {
    fn fold(claim: &Claim) -> Claim {
        let name = LockName::new(&claim.name.as_str().to_lowercase()).expect("as long as before");
        Claim { name, ..claim.clone() }
    }
}

#[async_trait]
impl Twist for FoldsCase {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        store.attempt(&Self::fold(claim)).await
    }

    async fn extend(&self, store: &MemoryBackend, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        store.extend(&Self::fold(claim), lease).await
    }

    async fn release(&self, store: &MemoryBackend, claim: &Claim) -> Result<Release, BackendError> {
        store.release(&Self::fold(claim)).await
    }
}

#[test]
fn names_folded_to_lower_case_are_caught() {
    caught_by("names_input::names_that_look_alike_are_different_locks", &["L14.b"], Broken::new(FoldsCase));
    passes("names_input::names_that_look_alike_are_different_locks", Memory::pushing());
}

/// Keeps the records of all namespaces in one.
#[derive(Debug)]
struct OneNamespace;

#[async_trait]
impl Twist for OneNamespace {
    async fn inspect(&self, store: &MemoryBackend, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        store.inspect(selector).await
    }

    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        // Cut to the same length, as by a column that is too short.
        let namespace: String = claim.namespace.as_str().chars().take(17).collect();
        let namespace = Namespace::new(&namespace).expect("shorter than before");
        store.attempt(&Claim { namespace, ..claim.clone() }).await
    }
}

#[test]
fn namespaces_that_meet_are_caught() {
    caught_by("names_input::namespaces_do_not_meet", &["L17.a"], Broken::new(OneNamespace));
}

/// Takes `_` and `%` in a prefix for what they mean to LIKE.
#[derive(Debug)]
struct PrefixIsPattern;

#[async_trait]
impl Twist for PrefixIsPattern {
    async fn inspect(&self, store: &MemoryBackend, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        match selector.pattern() {
            Pattern::Prefix(prefix) => {
                let prefix = prefix.split(['_', '%']).next().unwrap_or_default();
                store.inspect(&Selector::prefix(prefix).in_namespace(selector.namespace().clone())).await
            }
            _ => store.inspect(selector).await,
        }
    }
}

#[test]
fn a_prefix_that_is_a_pattern_is_caught() {
    caught_by("names_input::a_prefix_is_taken_literally", &["L14.c"], Broken::new(PrefixIsPattern));
}

/// Takes an own claim that it finds for another's.
#[derive(Debug)]
struct ForgetsItsOwn;

#[async_trait]
impl Twist for ForgetsItsOwn {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        let holders = holders(store, claim).await?;
        if holders.is_empty() { store.attempt(claim).await } else { Ok(Attempt::Busy(Busy::new(None, holders))) }
    }
}

#[test]
fn an_attempt_that_is_not_idempotent_is_caught() {
    // It waits for itself until the claim's lease has run out.
    let case = "cancellation::an_eaten_answer_leaves_no_orphan";
    caught_by(case, &["L10.d"], Broken::new(ForgetsItsOwn));
    passes(case, Memory::pushing());
}

/// Grants for longer than it was asked to, by far.
#[derive(Debug)]
struct NeverEnds;

#[async_trait]
impl Twist for NeverEnds {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        let lease = Duration::from_secs(400 * 24 * 3600);
        let asked = claim.lease;
        let mut attempt = store.attempt(&Claim { lease, ..claim.clone() }).await?;
        if let Attempt::Granted(grant) = &mut attempt {
            grant.lease = asked;
        }
        Ok(attempt)
    }
}

#[test]
fn a_claim_without_an_end_is_caught() {
    caught_by("exclusion::no_claim_is_without_an_end", &["L2.b"], Broken::new(NeverEnds));
    passes("exclusion::no_claim_is_without_an_end", Memory::pushing());
}

/// Gives a waiter's place in the queue to who only tries.
#[derive(Debug)]
struct QueuesTries;

#[async_trait]
impl Twist for QueuesTries {
    async fn attempt(&self, store: &MemoryBackend, claim: &Claim) -> Result<Attempt, BackendError> {
        store.attempt(&Claim { intent: Intent::Wait, ..claim.clone() }).await
    }
}

#[test]
fn a_try_that_queues_is_caught() {
    let case = "waiting::a_try_returns_at_once_and_leaves_nothing";
    caught_by(case, &["L9.a"], Broken::queueing(QueuesTries));
    passes(case, Memory::queueing());
}
