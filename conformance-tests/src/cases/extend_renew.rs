//! Extending and renewing: what is held stays held for as long as it should, and no longer (L6, L7).

use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use lock_core::{ClaimId, ErrorKind, LossReason, Renew};

use super::{busy, refused, stays, taken};
use crate::{
    Deliberate, Fault, Op, Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually, within,
};

cases! {
    a_hold_is_renewed_for_five_leases: "L7.a" "L1.a" "L13.e";
    a_hold_is_renewed_while_its_holder_blocks: "L7.a";
    without_renewal_the_hold_ends_at_its_lease: "L7.e" "L3.b";
    an_extend_lengthens_and_never_shortens: "L6.a";
    an_extend_that_races_the_renewal_is_kept: "L6.c" "L6.a";
    an_extend_after_expiry_is_lost: "L6.b" "L4.b";
    an_extend_after_a_takeover_is_lost: "L6.b" "L4.c";
    an_extend_after_deletion_by_hand_is_lost: "L6.b";
    an_extend_by_zero_or_too_much_is_refused_unseen: "L6.e" "L15.a";
    an_extend_at_an_unreachable_store_leaves_the_hold: "L6.d";
    one_failed_renewal_is_no_loss: "L8.e";
    no_renewal_follows_a_release: "L7.b";
    a_panic_ends_the_hold: "L7.c" "L11.a";
    an_abort_ends_the_hold: "L7.c" "L11.a";
    an_early_return_ends_the_hold: "L7.c" "L11.a";
    a_forgotten_guard_is_ended_by_max_hold: "L7.d";
    after_an_outage_the_next_hold_is_renewed: "L7.f" "L8.f" "L18.c";
}

async fn a_hold_is_renewed_for_five_leases(world: World) -> Outcome {
    let lease = world.renewed();
    let (client, other) = (world.client().await?, world.client().await?);
    let guard = client.lock("x").lease(lease).acquire().await?;
    let token = guard.fencing_token();
    stays("L7.a", lease * 5, "the hold is renewed", async || {
        busy("L1.a", &other, "x").await?;
        world.shows("L7.a", &guard).await?;
        Ok(guard.is_held() && guard.remaining() <= lease)
    })
    .await?;
    ensure_eq!("L13.e", guard.fencing_token(), token, "after renewals the token is");
    guard.release().await?;
    Ok(())
}

async fn a_hold_is_renewed_while_its_holder_blocks(world: World) -> Outcome {
    let lease = world.renewed();
    let client = world.client().await?;
    let guard = client.lock("x").lease(lease).acquire().await?;
    // The holder's own task does nothing and yields nowhere: renewal must already have begun without it.
    let guard = tokio::task::spawn_blocking(move || {
        std::thread::sleep(lease * 3);
        guard
    })
    .await?;
    ensure!("L7.a", guard.is_held(), "the hold was not renewed while its holder blocked for three leases");
    world.shows("L7.a", &guard).await?;
    guard.release().await?;
    Ok(())
}

async fn without_renewal_the_hold_ends_at_its_lease(world: World) -> Outcome {
    let lease = world.short();
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let other = world.client().await?;
    // The lease counts from the sending, which is no earlier than this.
    let asked = Instant::now();
    let guard = client.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    let reason = within("L7.e", lease + NOISE, "a hold without renewal ends", guard.lost()).await?;
    ensure_eq!("L7.e", reason, LossReason::Expired, "the hold was lost as");
    ensure!("L7.e", !guard.is_held(), "held after it was told to be lost");
    ensure!("L7.e", asked.elapsed() + lease / 4 >= lease, "lost {:?} after it was asked for", asked.elapsed());
    ensure_eq!("L7.e", store.count(Op::Extend), 0, "renewals that the store saw");
    // The guard still exists, and that must not keep the lock.
    let next = other.lock("x").wait(world.bounds().take_over(lease)).acquire().await?;
    next.release().await?;
    drop(guard);
    Ok(())
}

/// What the store says remains, where it says so.
async fn in_store(world: &World, name: &str) -> Outcome<Option<Duration>> {
    Ok(world.holder(name).await?.and_then(|holder| holder.remaining))
}

async fn an_extend_lengthens_and_never_shortens(world: World) -> Outcome {
    let client = world.client().await?;
    let (lease, longer) = (world.bounds().granted(Duration::from_secs(5)), Duration::from_secs(20));
    let guard = client.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    guard.extend(longer).await?;
    let asked = Instant::now();
    let least = |since: Instant| longer.saturating_sub(since.elapsed() + NOISE);
    ensure!("L6.a", guard.remaining() >= least(asked), "{:?} remain after an extend by 20 s", guard.remaining());
    if let Some(kept) = in_store(&world, "x").await? {
        ensure!("L6.a", kept >= least(asked), "the store keeps the claim for {kept:?} after an extend by 20 s");
    }
    guard.extend(lease).await?;
    ensure!("L6.a", guard.remaining() >= least(asked), "a short extend left {:?} of 20 s", guard.remaining());
    if let Some(kept) = in_store(&world, "x").await? {
        ensure!("L6.a", kept >= least(asked), "a short extend made the store keep the claim for {kept:?}");
    }
    guard.release().await?;
    Ok(())
}

async fn an_extend_that_races_the_renewal_is_kept(world: World) -> Outcome {
    let lease = world.renewed();
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guard = client.lock("x").lease(lease).acquire().await?;
    // Every call takes a while, so renewals and the extend overtake each other in all ways.
    let mut turn = 0;
    store.plan(move |call| {
        turn = (turn + 1) % 4;
        (call.op == Op::Extend).then(|| Fault::DelayRequest(Duration::from_millis(15 * turn)))
    });
    let longer = Duration::from_secs(25);
    // Begins near the time of a renewal: leases are renewed about every third.
    tokio::time::sleep(lease / 3).await;
    guard.extend(longer).await?;
    let extended = Instant::now();
    stays("L6.c", lease * 3, "what the extend gave is kept", async || {
        let least = longer.saturating_sub(extended.elapsed() + NOISE);
        let kept = in_store(&world, "x").await?.unwrap_or(least);
        ensure!("L6.c", kept >= least, "the store keeps {kept:?} of an extend by {longer:?}");
        Ok(guard.is_held() && guard.remaining() >= least)
    })
    .await?;
    guard.release().await?;
    Ok(())
}

async fn an_extend_after_expiry_is_lost(world: World) -> Outcome {
    let lease = world.short();
    let client = world.client().await?;
    let guard = client.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    within("L7.e", lease + NOISE, "the hold ends", guard.lost()).await?;
    refused("L6.b", "an extend after expiry", guard.extend(lease).await, ErrorKind::Lost)?;
    world.gone("L6.b", "x", world.bounds().prompt() + lease).await?;
    refused("L6.b", "a second extend after expiry", guard.extend(lease).await, ErrorKind::Lost)?;
    ensure_eq!("L6.b", world.holder("x").await?, None, "after extends of what expired the holder is");
    ensure!("L4.b", !guard.is_held(), "held again after it expired");
    Ok(())
}

async fn an_extend_after_a_takeover_is_lost(world: World) -> Outcome {
    let client = world.client().await?;
    let lease = world.bounds().long();
    let guard = client.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    let (key, other) = (world.key("x")?, ClaimId::random());
    world.oracle().overwrite(&key, other, lease).await?;
    let before = in_store(&world, "x").await?;
    refused("L6.b", "an extend of an overwritten claim", guard.extend(lease * 2).await, ErrorKind::Lost)?;
    ensure!("L4.b", !guard.is_held(), "held after the store said that the claim is gone");
    let holder = world.holder("x").await?;
    ensure_eq!("L4.c", holder.as_ref().map(|holder| holder.claim), Some(other), "after it the holder is");
    let after = holder.and_then(|holder| holder.remaining);
    ensure!("L4.c", after <= before, "it lengthened the other's claim from {before:?} to {after:?}");
    world.oracle().remove(&key).await?;
    Ok(())
}

async fn an_extend_after_deletion_by_hand_is_lost(world: World) -> Outcome {
    let client = world.client().await?;
    // Once by a hold that is not renewed, once in the race with the renewal, which must not re-create it either.
    for (renew, lease) in [(Renew::Off, world.bounds().long()), (Renew::Auto, world.short())] {
        let guard = client.lock("x").lease(lease).renew(renew).acquire().await?;
        world.oracle().remove(&world.key("x")?).await?;
        refused("L6.b", "an extend after deletion", guard.extend(lease * 2).await, ErrorKind::Lost)?;
        ensure!("L4.b", !guard.is_held(), "held after the store said that the claim is gone");
        stays("L6.b", world.short(), "nothing is re-created", async || Ok(world.holder("x").await?.is_none())).await?;
        ensure!("L4.b", !guard.is_held(), "held again after it was lost");
    }
    Ok(())
}

async fn an_extend_by_zero_or_too_much_is_refused_unseen(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guard = taken("L6.e", &client, "x").await?;
    let before = store.count(Op::Extend);
    let most = world.capabilities().lease_max;
    for by in [Duration::ZERO, most.saturating_add(Duration::from_millis(1)), Duration::MAX] {
        let error = refused("L6.e", &format!("an extend by {by:?}"), guard.extend(by).await, ErrorKind::InvalidInput)?;
        ensure!("L15.a", error.to_string().contains(&format!("{by:?}")), "the error does not name {by:?}: {error}");
    }
    ensure_eq!("L6.e", store.count(Op::Extend), before, "extends that the store saw");
    ensure!("L6.e", guard.is_held(), "a refused extend ended the hold");
    guard.release().await?;
    Ok(())
}

async fn an_extend_at_an_unreachable_store_leaves_the_hold(world: World) -> Outcome {
    for fault in [Fault::Refuse, Fault::Swallow] {
        let store = world.faulty().await?;
        let timeout = Duration::from_millis(500);
        let client = world.over(store.clone()).request_timeout(timeout).build()?;
        let guard = taken("L6.d", &client, "x").await?;
        store.all(Op::Extend, fault);
        let start = Instant::now();
        let result = guard.extend(world.bounds().long()).await;
        refused("L6.d", "an extend at an unreachable store", result, ErrorKind::Unavailable)?;
        ensure!("L6.d", start.elapsed() <= timeout + NOISE, "it answered after {:?}", start.elapsed());
        ensure!("L6.d", guard.is_held(), "a failed extend ended the hold");
        store.heal();
        guard.extend(world.bounds().long()).await?;
        guard.release().await?;
    }
    Ok(())
}

async fn one_failed_renewal_is_no_loss(world: World) -> Outcome {
    let lease = world.renewed();
    for fault in [Fault::Refuse, Fault::EatAnswer, Fault::Swallow] {
        let store = world.faulty().await?;
        let client = world.over(store.clone()).build()?;
        let guard = client.lock("x").lease(lease).acquire().await?;
        store.next(Op::Extend, fault);
        stays("L8.e", lease * 2, "held although one renewal failed", async || Ok(guard.is_held())).await?;
        ensure!("L8.e", store.count(Op::Extend) >= 2, "{fault:?}: no further renewal was sent");
        guard.release().await?;
    }
    Ok(())
}

async fn no_renewal_follows_a_release(world: World) -> Outcome {
    let lease = world.renewed();
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    for _ in 0..5 {
        let guard = client.lock("x").lease(lease).acquire().await?;
        // Near the time of a renewal.
        tokio::time::sleep(lease / 3).await;
        guard.release().await?;
        let sent = store.count(Op::Extend);
        let in_flight = store.in_flight();
        ensure_eq!("L7.b", in_flight, 0, "calls under way after the release");
        stays("L7.b", lease / 2, "no renewal is sent", async || Ok(store.count(Op::Extend) == sent)).await?;
    }
    Ok(())
}

async fn a_panic_ends_the_hold(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L7.c", &client, "x").await?;
    let task = tokio::spawn(async move {
        let _held = guard;
        std::panic::panic_any(Deliberate);
    });
    ensure!("L7.c", task.await.is_err_and(|error| error.is_panic()), "the task did not panic");
    world.gone("L7.c", "x", world.bounds().prompt()).await
}

async fn an_abort_ends_the_hold(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L7.c", &client, "x").await?;
    let task = tokio::spawn(async move {
        let _held = guard;
        std::future::pending::<()>().await;
    });
    world.holder("x").await?.ok_or_else(|| Stop::failed("L1.a", "the store has no holder"))?;
    task.abort();
    world.gone("L7.c", "x", world.bounds().prompt()).await
}

async fn an_early_return_ends_the_hold(world: World) -> Outcome {
    let client = world.client().await?;
    let failed: Outcome = async {
        let _held = taken("L7.c", &client, "x").await?;
        Err(Stop::broken("the error that returns early"))
    }
    .await;
    ensure!("L7.c", failed.is_err(), "the body did not fail");
    world.gone("L7.c", "x", world.bounds().prompt()).await
}

async fn a_forgotten_guard_is_ended_by_max_hold(world: World) -> Outcome {
    let lease = world.short();
    let (client, other) = (world.client().await?, world.client().await?);
    let guard = client.lock("x").lease(lease).max_hold(lease * 2).acquire().await?;
    let lost = guard.lost();
    mem::forget(guard);
    let next = other.lock("x").wait(world.bounds().take_over(lease * 2)).acquire().await?;
    let reason = within("L7.d", NOISE, "the end is told", lost).await?;
    ensure_eq!("L7.d", reason, LossReason::MaxHold, "a forgotten hold was lost as");
    next.release().await?;

    // A holder that hangs with its guard in a task that is never polled again.
    let guard = Arc::new(client.lock("y").lease(lease).max_hold(lease * 2).acquire().await?);
    let hung = tokio::spawn({
        let guard = Arc::clone(&guard);
        async move {
            let _held = guard;
            std::future::pending::<()>().await;
        }
    });
    let next = other.lock("y").wait(world.bounds().take_over(lease * 2)).acquire().await?;
    ensure!("L7.d", !guard.is_held(), "the hung holder's guard is held beside its successor's");
    next.release().await?;
    hung.abort();
    Ok(())
}

async fn after_an_outage_the_next_hold_is_renewed(world: World) -> Outcome {
    let lease = world.renewed();
    for fault in [Fault::Refuse, Fault::Swallow] {
        let store = world.faulty().await?;
        let client = world.over(store.clone()).build()?;
        let guard = client.lock("x").lease(lease).acquire().await?;
        store.every(fault);
        let reason = within("L8.f", lease + NOISE, "an unreachable store ends the hold", guard.lost()).await?;
        ensure_eq!("L8.f", reason, LossReason::Expired, "{fault:?}: the hold was lost as");
        store.heal();
        drop(guard);
        let next = client.lock("x").lease(lease).wait(world.bounds().take_over(lease)).acquire().await?;
        stays("L7.f", lease * 3, "the next hold is renewed", async || Ok(next.is_held())).await?;
        world.shows("L7.f", &next).await?;
        next.release().await?;
    }
    eventually("L5.b", NOISE, "nothing is left", async || Ok(world.holder("x").await?.is_none())).await
}
