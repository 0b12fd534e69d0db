//! Model checks: the fate of a claim and the state of a hold under many interleavings of those who share them.
//!
//! Run with `RUSTFLAGS="--cfg leasehold_model" cargo test -p lock-core --lib model`.

use std::{sync::Arc, time::Duration};

use shuttle::{check_random, thread};

use crate::{
    Attempt, BackendError, Busy, Claim, ClaimId, FencingToken, Grant, HolderInfo, Intent, LockKind, LockName,
    LossReason, Namespace, Queue, Renew,
    fate::{Duty, Fate},
    hold::{Announced, Hold},
    request::Request,
};

const SCHEDULES: usize = 5_000;
const LEASE: Duration = Duration::from_secs(10);
const NOW: Duration = Duration::from_secs(100);

fn fate() -> Arc<Fate> {
    let claim = Claim {
        namespace: Namespace::default(),
        name: LockName::new("x").expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::from_u128(1),
        intent: Intent::Wait,
        lease: LEASE,
        holder: Arc::new(HolderInfo::default()),
        min_token: FencingToken::ZERO,
    };
    Fate::new(claim, None, NOW)
}

fn hold(fate: Arc<Fate>) -> Arc<Hold> {
    hold_for(fate, None)
}

fn hold_for(fate: Arc<Fate>, min_hold: Option<Duration>) -> Arc<Hold> {
    let request = Request {
        name: fate.claim.name.clone(),
        lease: LEASE,
        wait: None,
        renew: Renew::Auto,
        max_hold: None,
        min_hold,
        owner: None,
        holder: Arc::new(HolderInfo::default()),
        caller: tracing::Span::none(),
        request_timeout: LEASE / 3,
    };
    let token = FencingToken::new(1);
    Hold::new(&request, fate, (NOW, NOW), &Grant::new(token, LEASE), token, Duration::ZERO)
}

fn granted() -> Result<Attempt, BackendError> {
    Ok(Attempt::Granted(Grant::new(FencingToken::new(1), LEASE)))
}

/// Whether the janitor is told exactly once of what a dropped acquisition leaves, whatever the answer (L10).
fn told_once(outcome: fn() -> Option<Result<Attempt, BackendError>>, leaves: u32) {
    check_random(
        move || {
            let fate = fate();
            assert!(fate.begin_attempt());
            let call = thread::spawn({
                let fate = Arc::clone(&fate);
                move || {
                    fate.sent(NOW);
                    u32::from(fate.end_attempt(outcome().as_ref(), Queue::InClient, NOW))
                }
            });
            let caller = thread::spawn({
                let fate = Arc::clone(&fate);
                move || u32::from(fate.end())
            });
            let told = call.join().expect("no panic") + caller.join().expect("no panic");
            assert_eq!(told, leaves, "the janitor was told {told} times");
            assert!(!fate.begin_attempt(), "an ended claim is attempted again");
        },
        SCHEDULES,
    );
}

#[test]
fn a_dropped_acquisition_is_cleaned_up_after_once() {
    told_once(|| Some(granted()), 1);
    told_once(|| Some(Err(BackendError::unavailable("no answer"))), 1);
    told_once(|| None, 1);
}

#[test]
fn a_dropped_acquisition_that_left_nothing_is_not_cleaned_up_after() {
    told_once(|| Some(Ok(Attempt::Busy(Busy::new(None, Vec::new())))), 0);
    told_once(|| Some(Err(BackendError::refused("no"))), 0);
}

#[test]
fn a_grant_is_either_taken_or_given_up() {
    check_random(
        || {
            let fate = fate();
            assert!(fate.begin_attempt());
            fate.sent(NOW);
            assert!(!fate.end_attempt(Some(&granted()), Queue::InClient, NOW));
            let acquisition = thread::spawn({
                let fate = Arc::clone(&fate);
                move || fate.take()
            });
            let janitor = thread::spawn({
                let fate = Arc::clone(&fate);
                move || fate.end_if_forgotten(NOW + LEASE)
            });
            let (taken, given_up) = (acquisition.join().expect("no panic"), janitor.join().expect("no panic"));
            assert_ne!(taken, given_up, "a grant needs exactly one who answers for it");
        },
        SCHEDULES,
    );
}

#[test]
fn passing_over_a_head_never_ends_a_claim_that_it_has_taken() {
    check_random(
        || {
            let fate = fate();
            assert!(fate.begin_attempt());
            fate.sent(NOW);
            assert!(!fate.end_attempt(Some(&granted()), Queue::InClient, NOW));
            let acquisition = thread::spawn({
                let fate = Arc::clone(&fate);
                move || fate.take()
            });
            let sweep = thread::spawn({
                let fate = Arc::clone(&fate);
                move || fate.end_seeking()
            });
            let (taken, given_up) = (acquisition.join().expect("no panic"), sweep.join().expect("no panic"));
            assert_ne!(taken, given_up, "a grant needs exactly one who answers for it");
        },
        SCHEDULES,
    );
}

#[test]
fn a_loss_is_told_once_and_everyone_hears_the_same_reason() {
    check_random(
        || {
            let hold = hold(fate());
            // The store's word, a close, a look after the deadline, and an answer to a renewal that comes too late.
            let tellers = [LossReason::Gone, LossReason::Closed].map(|reason| {
                let hold = Arc::clone(&hold);
                thread::spawn(move || (u32::from(hold.lose(reason)), hold.remaining(NOW).err()))
            });
            let look = thread::spawn({
                let hold = Arc::clone(&hold);
                move || (0, hold.remaining(NOW + 2 * LEASE).err())
            });
            let late = thread::spawn({
                let hold = Arc::clone(&hold);
                move || hold.confirm(NOW + 2 * LEASE, NOW + LEASE, LEASE, None)
            });
            let heard: Vec<_> =
                tellers.into_iter().chain([look]).map(|thread| thread.join().expect("no panic")).collect();
            late.join().expect("no panic");
            let told = hold.told_loss(NOW).expect("it is lost, whatever came first");
            assert!(heard.iter().map(|(news, _)| news).sum::<u32>() <= 1, "news twice: {heard:?}");
            assert!(heard.iter().all(|(_, reason)| *reason == Some(told)), "{told:?}, but {heard:?}");
            assert_eq!(hold.told_loss(NOW + 3 * LEASE), Some(told), "a loss is final");
        },
        SCHEDULES,
    );
}

#[test]
fn of_two_guards_that_go_at_once_exactly_one_stays_for_the_shortest_time() {
    check_random(
        || {
            let hold = hold_for(fate(), Some(LEASE / 2));
            assert!(hold.join());
            let leavers = [(); 2].map(|()| {
                let hold = Arc::clone(&hold);
                thread::spawn(move || {
                    let stays = hold.announce_or_stay(|| NOW).is_some();
                    (u32::from(stays), !stays && hold.leave(Announced::Yes))
                })
            });
            let left = leavers.map(|leaver| leaver.join().expect("no panic"));
            assert_eq!(left.map(|(stays, _)| stays).iter().sum::<u32>(), 1, "{left:?}");
            assert!(left.iter().all(|(_, last)| !last), "the hold ended before its time: {left:?}");
            assert_eq!(hold.guards(), 1);
        },
        SCHEDULES,
    );
}

#[test]
fn a_loss_is_final_and_excludes_a_good_release() {
    check_random(
        || {
            let hold = hold(fate());
            let in_time = NOW + Duration::from_secs(1);
            let too_late = NOW + LEASE;
            let renewal = thread::spawn({
                let hold = Arc::clone(&hold);
                move || hold.confirm(in_time, in_time, LEASE, None)
            });
            let close = thread::spawn({
                let hold = Arc::clone(&hold);
                move || hold.lose(LossReason::Closed)
            });
            let watcher = thread::spawn({
                let hold = Arc::clone(&hold);
                move || {
                    let first = hold.told_loss(too_late);
                    let second = hold.told_loss(in_time);
                    assert!(first.is_none() || first == second, "a loss was taken back");
                }
            });
            let release = thread::spawn({
                let hold = Arc::clone(&hold);
                move || {
                    assert!(hold.leave(Announced::No));
                    hold.finish(in_time).is_ok()
                }
            });
            renewal.join().expect("no panic");
            let (closed, released) = (close.join().expect("no panic"), release.join().expect("no panic"));
            watcher.join().expect("no panic");
            assert!(!(closed && released), "both lost and released");
            assert_eq!(hold.told_loss(in_time).is_some(), !released, "a good release tells no loss");
        },
        SCHEDULES,
    );
}

#[test]
fn an_unanswered_attempt_is_released_until_it_cannot_land_any_more() {
    check_random(
        || {
            let fate = fate();
            assert!(fate.begin_attempt());
            fate.sent(NOW);
            assert!(!fate.end_attempt(None, Queue::InClient, NOW));
            assert_eq!(fate.released(NOW), Duty::Release { until: NOW + LEASE });
            assert_eq!(fate.released(NOW + LEASE), Duty::Done);
        },
        1,
    );
}
