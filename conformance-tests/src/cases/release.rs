//! Release: the claim goes, its own and no other, whatever happens on the way (L4, L5).

use std::time::{Duration, Instant};

use lock_core::{ClaimId, ErrorKind, LockGuard, Renew};

use super::{busy, refused, taken};
use crate::{Fault, Op, Outcome, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually, within};

cases! {
    frees_at_once: "L5.a" "L5.b";
    by_a_holder_that_expired_is_lost_and_touches_nobody: "L4.c" "L5.a" "L5.c";
    that_arrives_after_a_takeover_touches_nobody: "L5.a" "L4.c" "L5.c";
    of_a_record_removed_by_hand_is_lost: "L5.c";
    of_a_record_overwritten_by_hand_leaves_the_other: "L4.c" "L5.a";
    whose_answer_is_lost_succeeds_at_the_retry: "L5.d";
    whose_request_is_refused_once_succeeds_at_the_retry: "L5.b" "L5.d";
    at_an_unreachable_store_answers_in_time_and_cleans_up_later: "L5.e";
    a_body_runs_under_the_lock_and_it_is_free_after: "L5.b";
}

async fn frees_at_once(world: World) -> Outcome {
    let (ours, theirs) = (world.client().await?, world.client().await?);
    let other = taken("L5.a", &theirs, "other").await?;
    for _ in 0..20 {
        let guard = taken("L5.b", &ours, "x").await?;
        guard.release().await?;
        // No waiting here: Ok means that the store has no record now.
        ensure_eq!("L5.b", world.holder("x").await?, None, "right after the release the store's holder is");
        let guard = taken("L5.b", &theirs, "x").await?;
        guard.release().await?;
    }
    world.shows("L5.a", &other).await?;
    other.release().await?;
    Ok(())
}

async fn by_a_holder_that_expired_is_lost_and_touches_nobody(world: World) -> Outcome {
    let (ours, theirs) = (world.client().await?, world.client().await?);
    let lease = world.short();
    let late = ours.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    let limit = world.bounds().take_over(lease);
    let next = theirs.lock("x").wait(limit).acquire().await?;
    world.shows("L4.c", &next).await?;
    refused("L5.c", "the release by a holder that expired", late.release().await, ErrorKind::Lost)?;
    world.shows("L5.a", &next).await?;
    ensure!("L4.c", next.is_held(), "the successor's hold ended with its predecessor's release");
    busy("L5.a", &ours, "x").await?;
    next.release().await?;
    Ok(())
}

async fn that_arrives_after_a_takeover_touches_nobody(world: World) -> Outcome {
    let lease = world.short();
    let (store, other) = (world.faulty().await?, world.client().await?);
    let client = world.over(store.clone()).request_timeout(lease * 10).build()?;
    let guard = client.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    // Sent in time; under way until long after the lease has run out.
    store.all(Op::Release, Fault::DelayRequest(lease * 2));
    let releasing = tokio::spawn(guard.release());
    let next = other.lock("x").wait(world.bounds().take_over(lease)).acquire().await?;
    let late = within("L5.e", lease * 10 + NOISE, "the release answers", releasing).await??;
    refused("L5.c", "a release that arrived after a takeover", late, ErrorKind::Lost)?;
    world.shows("L5.a", &next).await?;
    ensure!("L4.c", next.is_held(), "the successor's hold ended with a late release");
    next.release().await?;
    Ok(())
}

async fn of_a_record_removed_by_hand_is_lost(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L5.c", &client, "x").await?;
    world.oracle().remove(&world.key("x")?).await?;
    ensure_eq!("L5.c", world.holder("x").await?, None, "after it was removed by hand the holder is");
    refused("L5.c", "the release of a claim that is gone", guard.release().await, ErrorKind::Lost)?;
    world.gone("L5.c", "x", world.bounds().prompt()).await
}

async fn of_a_record_overwritten_by_hand_leaves_the_other(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L5.a", &client, "x").await?;
    let (key, other) = (world.key("x")?, ClaimId::random());
    world.oracle().overwrite(&key, other, world.bounds().long()).await?;
    refused("L5.a", "the release of an overwritten claim", guard.release().await, ErrorKind::Lost)?;
    let holder = world.holder("x").await?.map(|holder| holder.claim);
    ensure_eq!("L4.c", holder, Some(other), "after a stranger's release the holder is");
    world.oracle().remove(&key).await?;
    Ok(())
}

async fn whose_answer_is_lost_succeeds_at_the_retry(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guard = taken("L5.d", &client, "x").await?;
    store.next(Op::Release, Fault::EatAnswer);
    guard.release().await?;
    ensure!("L5.d", store.count(Op::Release) >= 2, "the lost answer was not asked for again");
    ensure_eq!("L5.b", world.holder("x").await?, None, "after the release the store's holder is");
    Ok(())
}

async fn whose_request_is_refused_once_succeeds_at_the_retry(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guard = taken("L5.d", &client, "x").await?;
    store.next(Op::Release, Fault::Refuse);
    guard.release().await?;
    ensure_eq!("L5.b", world.holder("x").await?, None, "after the release the store's holder is");
    Ok(())
}

async fn at_an_unreachable_store_answers_in_time_and_cleans_up_later(world: World) -> Outcome {
    for fault in [Fault::Swallow, Fault::Refuse] {
        let store = world.faulty().await?;
        let timeout = Duration::from_millis(500);
        let client = world.over(store.clone()).request_timeout(timeout).build()?;
        let guard = taken("L5.e", &client, "x").await?;
        let claim = guard.claim_id();
        store.all(Op::Release, fault);
        let start = Instant::now();
        let result = guard.release().await;
        let took = start.elapsed();
        refused("L5.e", "the release at an unreachable store", result, ErrorKind::Unavailable)?;
        ensure!("L5.e", took <= timeout + NOISE, "{fault:?}: the release answered after {took:?}");
        let holder = world.holder("x").await?.map(|holder| holder.claim);
        ensure_eq!("L5.e", holder, Some(claim), "{fault:?}: while the store is unreachable its holder is");
        store.heal();
        // The record has half a minute left, so it is the clean-up that removes it. Its pauses grow with the outage.
        world.gone("L5.e", "x", Duration::from_secs(5)).await?;
    }
    Ok(())
}

async fn a_body_runs_under_the_lock_and_it_is_free_after(world: World) -> Outcome {
    let (client, other) = (world.client().await?, world.client().await?);
    let lock = client.lock("x");
    let seen = lock
        .run(async |guard: &LockGuard| {
            busy("L1.a", &other, "x").await?;
            world.shows("L1.a", guard).await?;
            Outcome::Ok(guard.fencing_token())
        })
        .await??;
    ensure_eq!("L5.b", world.holder("x").await?, None, "after the body the store's holder is");
    let next = taken("L5.b", &other, "x").await?;
    ensure!("L13.a", next.fencing_token() > seen, "tokens {} after {seen}", next.fencing_token());
    next.release().await?;
    // A body that fails is a body that has ended.
    let failed: Result<(), &str> = lock.run(async |_: &LockGuard| Err("the body's own")).await?;
    ensure_eq!("L5.b", failed, Err("the body's own"), "the body's own error is passed on as");
    eventually("L5.b", NOISE, "the lock is free after a body that failed", async || {
        Ok(world.holder("x").await?.is_none())
    })
    .await
}
