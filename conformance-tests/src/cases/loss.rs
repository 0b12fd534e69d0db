//! Loss: told when it happens, told once, and never told of what is no loss (L4, L8).

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::{ClaimId, ErrorKind, LockGuard, LossPush, LossReason, Renew};

use super::{refused, stays, taken};
use crate::{Fault, Op, Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, within};

cases! {
    a_deleted_record_is_told: "L8.d" "L4.b";
    an_overwritten_record_is_told: "L8.d" "L4.c";
    a_broken_lock_is_told: "L8.d";
    an_unreachable_store_is_told_at_the_deadline: "L8.f" "L8.a";
    protect_drops_its_future_on_loss: "L8.b";
    protect_passes_on_what_ends_in_time: "L8.b";
    run_drops_its_body_on_loss: "L8.b";
    who_asks_late_is_told_at_once: "L8.g" "L4.b";
    a_release_tells_no_loss: "L8.g";
    every_listener_is_told_the_same: "L8.b" "L4.b";
    lost_answers_of_renewals_are_no_loss: "L8.e";
    spurious_hints_are_no_loss: "L8.e";
    every_acquisition_has_a_claim_of_its_own: "L4.a";
}

/// The bound on telling a loss, for a lease that renews often enough to find out.
async fn told_gone(world: &World, guard: &LockGuard, lease: Duration) -> Outcome {
    let bound = world.bounds().loss_told(lease);
    let reason = within("L8.d", bound, "a claim that was removed by hand is told", guard.lost()).await?;
    // Where the next renewal would come later than the end of the lease, the deadline tells first.
    ensure_eq!("L8.d", reason, LossReason::Gone, "a claim that was removed by hand was lost as");
    ensure!("L4.b", !guard.is_held(), "held after it was told to be lost");
    Ok(())
}

async fn a_deleted_record_is_told(world: World) -> Outcome {
    // Where the store tells by itself, no renewal may be needed: the lease is long.
    let prompt = world.capabilities().loss_push == LossPush::Prompt;
    let lease = if prompt { world.bounds().long() } else { world.bounds().granted(Duration::from_secs(2)) };
    let client = world.client().await?;
    let guard = client.lock("x").lease(lease).acquire().await?;
    world.oracle().remove(&world.key("x")?).await?;
    told_gone(&world, &guard, if prompt { Duration::ZERO } else { lease }).await?;
    stays("L6.b", lease.min(Duration::from_secs(1)), "nothing is re-created", async || {
        Ok(world.holder("x").await?.is_none() && !guard.is_held())
    })
    .await
}

async fn an_overwritten_record_is_told(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(2));
    let client = world.client().await?;
    let guard = client.lock("x").lease(lease).acquire().await?;
    let (key, other) = (world.key("x")?, ClaimId::random());
    world.oracle().overwrite(&key, other, world.bounds().long()).await?;
    told_gone(&world, &guard, lease).await?;
    drop(guard);
    stays("L4.c", Duration::from_millis(300), "the other's claim is left alone", async || {
        Ok(world.holder("x").await?.is_some_and(|holder| holder.claim == other))
    })
    .await?;
    world.oracle().remove(&key).await?;
    Ok(())
}

async fn a_broken_lock_is_told(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(2));
    let (client, admin) = (world.client().await?, world.client().await?);
    let guard = client.lock("x").lease(lease).acquire().await?;
    let broken = admin.break_lock("x", None).await?;
    ensure_eq!("L8.d", broken.len(), 1, "holders whose claim was broken");
    ensure_eq!("L8.d", broken.first().map(|holder| holder.claim), Some(guard.claim_id()), "the broken claim is");
    told_gone(&world, &guard, lease).await?;
    ensure!("L8.d", admin.break_lock("x", None).await?.is_empty(), "a second breaking found something");
    Ok(())
}

async fn an_unreachable_store_is_told_at_the_deadline(world: World) -> Outcome {
    let lease = world.bounds().granted(Duration::from_secs(1));
    for fault in [Fault::Swallow, Fault::Refuse] {
        let store = world.faulty().await?;
        let client = world.over(store.clone()).build()?;
        let guard = client.lock("x").lease(lease).acquire().await?;
        store.every(fault);
        // No confirmation comes after this, unless a renewal was under way; then the end is later.
        let (asked, remaining) = (Instant::now(), guard.remaining());
        let lost = guard.lost();
        let reason = within("L8.f", remaining + NOISE, "the deadline is told", lost).await?;
        let took = asked.elapsed();
        ensure_eq!("L8.f", reason, LossReason::Expired, "{fault:?}: lost as");
        ensure!(
            "L8.f",
            took + Duration::from_millis(5) >= remaining,
            "told {took:?} into the {remaining:?} that remained"
        );
        ensure!("L8.a", !guard.is_held(), "{fault:?}: held after the deadline");
        store.heal();
    }
    Ok(())
}

/// Ends a hold by its lease, soon.
async fn soon_lost(world: &World, name: &str) -> Outcome<LockGuard> {
    let client = world.client().await?;
    Ok(client.lock(name).lease(world.short()).renew(Renew::Off).acquire().await?)
}

/// Notes that it was dropped.
struct Noted(Arc<AtomicBool>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn protect_drops_its_future_on_loss(world: World) -> Outcome {
    let guard = soon_lost(&world, "x").await?;
    let dropped = Arc::new(AtomicBool::new(false));
    let noted = Noted(Arc::clone(&dropped));
    let work = async move {
        let _noted = noted;
        pending::<()>().await;
    };
    let result = within("L8.b", world.short() + NOISE, "protect ends on loss", guard.protect(work)).await?;
    refused("L8.b", "protect on loss", result, ErrorKind::Lost)?;
    ensure!("L8.b", dropped.load(Ordering::SeqCst), "the protected future was not dropped");
    let ran = Arc::new(AtomicBool::new(false));
    let late = guard.protect(async { ran.store(true, Ordering::SeqCst) }).await;
    refused("L8.b", "protect after loss", late, ErrorKind::Lost)?;
    ensure!("L8.b", !ran.load(Ordering::SeqCst), "a future ran although the lock was lost before");
    Ok(())
}

async fn protect_passes_on_what_ends_in_time(world: World) -> Outcome {
    let client = world.client().await?;
    let guard = taken("L8.b", &client, "x").await?;
    ensure_eq!("L8.b", guard.protect(async { 7 }).await.ok(), Some(7), "protect gave");
    guard.release().await?;
    Ok(())
}

async fn run_drops_its_body_on_loss(world: World) -> Outcome {
    let client = world.client().await?;
    let lease = world.bounds().granted(Duration::from_secs(2));
    let dropped = Arc::new(AtomicBool::new(false));
    let noted = Noted(Arc::clone(&dropped));
    let (started, start) = tokio::sync::oneshot::channel();
    let running = tokio::spawn({
        let lock = client.lock("x").lease(lease);
        async move {
            lock.run(async move |_: &LockGuard| {
                let _noted = noted;
                let _ = started.send(());
                pending::<()>().await;
            })
            .await
        }
    });
    start.await.map_err(|_| Stop::failed("L8.b", "the body did not start"))?;
    world.oracle().remove(&world.key("x")?).await?;
    let bound = world.bounds().loss_told(lease);
    let result = within("L8.b", bound, "run ends on loss", running).await??;
    refused("L8.b", "run on loss", result, ErrorKind::Lost)?;
    ensure!("L8.b", dropped.load(Ordering::SeqCst), "the body was not dropped");
    Ok(())
}

async fn who_asks_late_is_told_at_once(world: World) -> Outcome {
    let guard = soon_lost(&world, "x").await?;
    within("L7.e", world.short() + NOISE, "the hold ends", guard.lost()).await?;
    for _ in 0..3 {
        let reason = within("L8.g", NOISE, "a loss is told to who asks late", guard.lost()).await?;
        ensure_eq!("L8.g", reason, LossReason::Expired, "who asks late is told");
        ensure!("L4.b", !guard.is_held() && guard.remaining().is_zero(), "a lost hold came back");
        refused("L4.b", "an extend after loss", guard.extend(world.short()).await, ErrorKind::Lost)?;
    }
    refused("L5.c", "a release after loss", guard.release().await, ErrorKind::Lost)?;
    Ok(())
}

async fn a_release_tells_no_loss(world: World) -> Outcome {
    let client = world.client().await?;
    let lease = world.short();
    let guard = client.lock("x").lease(lease).acquire().await?;
    let (released, dropped) = (guard.lost(), client.lock("y").lease(lease).acquire().await?);
    let lost_of_dropped = dropped.lost();
    guard.release().await?;
    drop(dropped);
    let told = async {
        tokio::select! {
            reason = released => reason,
            reason = lost_of_dropped => reason,
        }
    };
    let told = tokio::time::timeout(lease * 2, told).await;
    ensure!("L8.g", told.is_err(), "a release was told as the loss {told:?}");
    Ok(())
}

async fn every_listener_is_told_the_same(world: World) -> Outcome {
    let guard = soon_lost(&world, "x").await?;
    let listeners: Vec<_> = (0..10).map(|_| tokio::spawn(guard.lost())).collect();
    for listener in listeners {
        let reason = within("L8.b", world.short() + NOISE, "every listener is told", listener).await??;
        ensure_eq!("L8.b", reason, LossReason::Expired, "a listener was told");
    }
    ensure_eq!("L4.b", guard.lost().await, LossReason::Expired, "a later listener was told");
    Ok(())
}

async fn lost_answers_of_renewals_are_no_loss(world: World) -> Outcome {
    let lease = world.renewed();
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let guard = client.lock("x").lease(lease).acquire().await?;
    // Every other answer is lost.
    let mut turn = false;
    store.plan(move |call| {
        turn ^= call.op == Op::Extend;
        (call.op == Op::Extend && turn).then_some(Fault::EatAnswer)
    });
    stays("L8.e", lease * 3, "held although answers are lost", async || Ok(guard.is_held())).await?;
    world.shows("L8.e", &guard).await?;
    guard.release().await?;
    Ok(())
}

async fn spurious_hints_are_no_loss(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, other) = (world.over(store.clone()).build()?, world.client().await?);
    store.all(Op::Attempt, Fault::Nervous);
    let guard = taken("L8.e", &client, "x").await?;
    let theirs = taken("L8.e", &other, "y").await?;
    let waiter = tokio::spawn(client.lock("y").wait(Duration::from_secs(20)).acquire());
    stays("L8.e", Duration::from_millis(700), "held although hints of loss come again and again", async || {
        ensure!("L1.a", !waiter.is_finished(), "a spurious wake-up let a waiter in");
        Ok(guard.is_held())
    })
    .await?;
    theirs.release().await?;
    within("L9.g", world.bounds().hand_over(), "the waiter is served", waiter).await???.release().await?;
    guard.release().await?;
    Ok(())
}

async fn every_acquisition_has_a_claim_of_its_own(world: World) -> Outcome {
    let client = world.client().await?;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10 {
        for name in ["x", "y"] {
            let guard = taken("L4.a", &client, name).await?;
            ensure!("L4.a", seen.insert(guard.claim_id()), "claim {} was used before", guard.claim_id());
            world.shows("L4.a", &guard).await?;
            guard.release().await?;
        }
    }
    Ok(())
}
