//! Reentrancy: by owner, never by thread or task (L12).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use lock_core::{ErrorKind, LockClient, LockGuard, Owner, Renew};
use tokio::task::JoinSet;

use super::{busy, refused, stays, taken};
use crate::{Fault, Op, Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, eventually, within};

cases! {
    an_inner_acquire_succeeds_at_once_and_shares_the_token: "L12.a" "L13.e";
    the_record_goes_with_the_last_guard_in_any_order: "L12.f";
    other_owners_are_excluded: "L12.b" "L1.b";
    who_names_no_owner_never_re_enters: "L12.b";
    an_owner_is_known_per_client: "L12.b";
    an_inner_acquire_makes_one_extend_by_the_longer_lease: "L12.c";
    re_entry_into_what_is_gone_is_lost: "L12.d" "L6.b";
    re_entry_after_loss_is_lost: "L12.d" "L4.b";
    re_entry_at_an_unreachable_store_succeeds: "L12.e";
    two_first_acquires_of_one_owner_make_one_claim: "L12.g";
    a_try_during_the_first_acquire_gives_none: "L12.g";
    a_first_acquire_that_fails_lets_the_next_one_try: "L12.g";
    re_entry_during_the_last_release_awaits_it: "L12.h";
    the_ambient_owner_reaches_nested_calls_and_no_spawned_task: "L12.i";
    futures_inside_one_owner_share_the_lock: "L12.i" "L12.a";
    a_lost_hold_is_forgotten_with_its_last_guard: "L12.j";
    #[heavy] owners_that_come_and_go_at_random_keep_exclusion: "L12.b" "L12.g" "L12.h" "L1.a";
}

async fn an_inner_acquire_succeeds_at_once_and_shares_the_token(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    let lock = client.lock("x").owner(&owner);
    let outer = lock.acquire().await?;
    ensure_eq!("L12.a", outer.hold_count(), 1, "the hold count of one guard");
    let middle = lock.wait(Duration::ZERO).acquire().await?;
    let inner = client.clone().lock("x").owner(&owner.clone()).try_acquire().await?;
    let inner = inner.ok_or_else(|| Stop::failed("L12.a", "an owner's inner try gave None"))?;
    for guard in [&outer, &middle, &inner] {
        ensure_eq!("L12.a", guard.hold_count(), 3, "the hold count of three guards");
        ensure_eq!("L13.e", guard.fencing_token(), outer.fencing_token(), "the token of a re-entry");
        ensure_eq!("L12.a", guard.claim_id(), outer.claim_id(), "the claim of a re-entry");
    }
    world.shows("L12.a", &outer).await?;
    drop((inner, middle));
    ensure_eq!("L12.a", outer.hold_count(), 1, "the hold count after two drops");
    outer.release().await?;
    ensure_eq!("L12.f", world.holder("x").await?, None, "after the last release the holder is");
    Ok(())
}

async fn the_record_goes_with_the_last_guard_in_any_order(world: World) -> Outcome {
    let (client, other, owner) = (world.client().await?, world.client().await?, Owner::new());
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let lock = client.lock("x").owner(&owner);
        let mut guards = Vec::new();
        for _ in 0..3 {
            guards.push(Some(lock.acquire().await?));
        }
        for (turn, index) in order.into_iter().enumerate() {
            let guard = guards[index].take().ok_or_else(|| Stop::broken("an order that repeats itself"))?;
            world.shows("L12.f", &guard).await?;
            busy("L12.f", &other, "x").await?;
            // The middle one is dropped, which must count like a release.
            if turn == 1 {
                drop(guard);
            } else {
                guard.release().await?;
            }
            let held = guards.iter().flatten().all(LockGuard::is_held);
            ensure!("L12.f", held, "{order:?}: the release number {turn} ended the guards that are left");
        }
        ensure_eq!("L12.f", world.holder("x").await?, None, "{order:?}: after the last guard the holder is");
    }
    Ok(())
}

async fn other_owners_are_excluded(world: World) -> Outcome {
    let (client, ours, theirs) = (world.client().await?, Owner::new(), Owner::new());
    let guard = client.lock("x").owner(&ours).acquire().await?;
    // In the same task and on the same client.
    let tried = client.lock("x").owner(&theirs).try_acquire().await?;
    ensure!("L12.b", tried.is_none(), "another owner was let in");
    let waited = client.lock("x").owner(&theirs).wait(Duration::from_secs(1)).acquire().await;
    refused("L12.b", "another owner's acquire", waited, ErrorKind::TimedOut)?;
    ensure_eq!("L12.b", guard.hold_count(), 1, "the hold count after another owner's attempts");
    guard.release().await?;
    client.lock("x").owner(&theirs).acquire().await?.release().await?;
    Ok(())
}

async fn who_names_no_owner_never_re_enters(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    let guard = client.lock("x").acquire().await?;
    busy("L12.b", &client, "x").await?;
    ensure!(
        "L12.b",
        client.lock("x").owner(&owner).try_acquire().await?.is_none(),
        "an owner entered an owner-less hold"
    );
    guard.release().await?;
    let guard = client.lock("x").owner(&owner).acquire().await?;
    busy("L12.b", &client, "x").await?;
    guard.release().await?;
    Ok(())
}

async fn an_owner_is_known_per_client(world: World) -> Outcome {
    let (client, other, owner) = (world.client().await?, world.client().await?, Owner::new());
    let guard = client.lock("x").owner(&owner).acquire().await?;
    let tried = other.lock("x").owner(&owner).try_acquire().await?;
    ensure!("L12.b", tried.is_none(), "an owner re-entered by way of another client");
    guard.release().await?;
    Ok(())
}

async fn an_inner_acquire_makes_one_extend_by_the_longer_lease(world: World) -> Outcome {
    let store = world.faulty().await?;
    let client = world.over(store.clone()).build()?;
    let (lease, longer, owner) =
        (world.bounds().granted(Duration::from_secs(5)), Duration::from_secs(20), Owner::new());
    let lock = client.lock("x").owner(&owner).renew(Renew::Off);
    let outer = lock.clone().lease(lease).acquire().await?;
    let (extends, attempts) = (store.count(Op::Extend), store.count(Op::Attempt));
    let inner = lock.clone().lease(longer).acquire().await?;
    ensure_eq!("L12.c", store.count(Op::Extend) - extends, 1, "extends of one inner acquire");
    ensure_eq!("L12.c", store.count(Op::Attempt) - attempts, 0, "attempts of one inner acquire");
    let least = longer.saturating_sub(NOISE);
    ensure!("L12.c", outer.remaining() >= least, "{:?} remain after an inner acquire for 20 s", outer.remaining());
    if let Some(kept) = world.holder("x").await?.and_then(|holder| holder.remaining) {
        ensure!("L12.c", kept >= least, "the store keeps the claim for {kept:?} after an inner acquire for 20 s");
    }
    // A shorter lease inside shortens nothing.
    let innermost = lock.lease(lease).acquire().await?;
    ensure!("L12.c", outer.remaining() >= least, "{:?} remain after an inner acquire for 5 s", outer.remaining());
    drop(innermost);
    inner.release().await?;
    outer.release().await?;
    Ok(())
}

async fn re_entry_into_what_is_gone_is_lost(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    let lock = client.lock("x").owner(&owner);
    let outer = lock.acquire().await?;
    world.oracle().remove(&world.key("x")?).await?;
    refused("L12.d", "re-entry into what was deleted by hand", lock.acquire().await, ErrorKind::Lost)?;
    ensure!("L12.d", !outer.is_held(), "the outer guard is held after re-entry found the claim gone");
    ensure_eq!("L6.b", world.holder("x").await?, None, "after re-entry into what is gone the holder is");
    drop(outer);
    Ok(())
}

async fn re_entry_after_loss_is_lost(world: World) -> Outcome {
    let (client, owner, lease) = (world.client().await?, Owner::new(), world.short());
    let lock = client.lock("x").owner(&owner).lease(lease).renew(Renew::Off);
    let outer = lock.acquire().await?;
    within("L7.e", lease + NOISE, "the hold ends", outer.lost()).await?;
    for _ in 0..2 {
        refused("L12.d", "re-entry after loss", lock.acquire().await, ErrorKind::Lost)?;
    }
    ensure!("L4.b", !outer.is_held(), "re-entry revived a lost guard");
    drop(outer);
    Ok(())
}

async fn re_entry_at_an_unreachable_store_succeeds(world: World) -> Outcome {
    for fault in [Fault::Refuse, Fault::Swallow] {
        let store = world.faulty().await?;
        let client = world.over(store.clone()).request_timeout(Duration::from_millis(500)).build()?;
        let owner = Owner::new();
        let lock = client.lock("x").owner(&owner);
        let outer = lock.acquire().await?;
        store.every(fault);
        let start = Instant::now();
        let inner = lock.acquire().await?;
        ensure!("L12.e", start.elapsed() < NOISE + Duration::from_secs(1), "it took {:?}", start.elapsed());
        ensure!("L12.e", inner.is_held() && inner.remaining() <= world.bounds().long(), "the inner guard is not held");
        ensure_eq!("L12.e", inner.claim_id(), outer.claim_id(), "the claim of the re-entry");
        store.heal();
        inner.release().await?;
        outer.release().await?;
    }
    Ok(())
}

async fn two_first_acquires_of_one_owner_make_one_claim(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, owner) = (world.over(store.clone()).build()?, Owner::new());
    store.all(Op::Attempt, Fault::DelayAnswer(Duration::from_millis(100)));
    let lock = client.lock("x").owner(&owner);
    let (first, second) = tokio::join!(lock.acquire(), lock.acquire());
    let (first, second) = (first?, second?);
    ensure_eq!("L12.g", second.claim_id(), first.claim_id(), "the second future's claim");
    let claims: std::collections::BTreeSet<_> =
        store.calls().iter().filter(|call| call.op == Op::Attempt).map(|call| call.claim).collect();
    ensure_eq!("L12.g", claims.len(), 1, "claims that the store saw");
    ensure_eq!("L12.a", first.hold_count(), 2, "the hold count");
    first.release().await?;
    world.shows("L12.f", &second).await?;
    second.release().await?;
    Ok(())
}

async fn a_try_during_the_first_acquire_gives_none(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, owner) = (world.over(store.clone()).build()?, Owner::new());
    store.all(Op::Attempt, Fault::DelayAnswer(Duration::from_millis(300)));
    let lock = client.lock("x").owner(&owner);
    let first = tokio::spawn(lock.acquire());
    eventually("L12.g", NOISE, "the first acquire is under way", async || Ok(store.count(Op::Attempt) == 1)).await?;
    ensure!("L12.g", lock.try_acquire().await?.is_none(), "a try during the first acquire was granted");
    first.await??.release().await?;
    Ok(())
}

async fn a_first_acquire_that_fails_lets_the_next_one_try(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    let guard = taken("L12.g", &world.client().await?, "x").await?;
    let lock = client.lock("x").owner(&owner);
    let first = tokio::spawn(lock.clone().wait(Duration::from_secs(1)).acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = tokio::spawn(lock.clone().wait(Duration::from_secs(20)).acquire());
    refused("L9.b", "the first acquire", first.await?, ErrorKind::TimedOut)?;
    guard.release().await?;
    let bound = world.bounds().hand_over();
    within("L12.g", bound, "the second acquire of the owner goes on alone", second).await???.release().await?;
    // The same when the first is given up.
    let guard = taken("L12.g", &world.client().await?, "x").await?;
    let first = tokio::spawn(lock.acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = tokio::spawn(lock.wait(Duration::from_secs(20)).acquire());
    first.abort();
    guard.release().await?;
    within("L12.g", bound, "the second acquire of the owner goes on alone", second).await???.release().await?;
    Ok(())
}

async fn re_entry_during_the_last_release_awaits_it(world: World) -> Outcome {
    let store = world.faulty().await?;
    let (client, owner) = (world.over(store.clone()).build()?, Owner::new());
    let lock = client.lock("x").owner(&owner).wait(Duration::from_secs(20));
    for dropped in [false, true] {
        let guard = lock.acquire().await?;
        let (claim, token) = (guard.claim_id(), guard.fencing_token());
        store.all(Op::Release, Fault::DelayRequest(Duration::from_millis(200)));
        let before = store.count(Op::Release);
        let releasing = tokio::spawn(async move {
            if dropped {
                drop(guard);
                Ok(())
            } else {
                guard.release().await
            }
        });
        eventually("L12.h", NOISE, "the release is under way", async || Ok(store.count(Op::Release) > before)).await?;
        ensure!("L12.h", lock.try_acquire().await?.is_none(), "a try during the last release was granted");
        let next = lock.acquire().await?;
        releasing.await??;
        ensure!("L12.h", next.claim_id() != claim, "re-entry got the claim that was being released");
        ensure!("L13.a", next.fencing_token() > token, "token {} after {token}", next.fencing_token());
        ensure!("L12.h", next.is_held(), "the guard after the release is not held");
        world.shows("L12.h", &next).await?;
        store.heal();
        next.release().await?;
    }
    Ok(())
}

async fn deep(client: &LockClient, depth: u32) -> Result<u32, lock_core::Error> {
    let guard = client.lock("x").wait(Duration::from_secs(5)).acquire().await?;
    let most = if depth == 0 { guard.hold_count() } else { Box::pin(deep(client, depth - 1)).await? };
    guard.release().await?;
    Ok(most)
}

async fn the_ambient_owner_reaches_nested_calls_and_no_spawned_task(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    let most = owner.scope(deep(&client, 3)).await?;
    ensure_eq!("L12.i", most, 4, "the hold count four calls deep");
    ensure_eq!("L12.f", world.holder("x").await?, None, "after the outermost call the holder is");
    owner
        .scope(async {
            let guard = client.lock("x").acquire().await?;
            let spawned = tokio::spawn(client.lock("x").try_acquire()).await??;
            ensure!("L12.i", spawned.is_none(), "a spawned task inherited the ambient owner");
            // The ambient owner is read at the first poll, wherever the future was made.
            let named = client.lock("x").owner(&Owner::new()).try_acquire().await?;
            ensure!("L12.i", named.is_none(), "the ambient owner prevailed over the one that was named");
            let inner = Owner::new();
            let other = inner.scope(client.lock("x").try_acquire()).await?;
            ensure!("L12.i", other.is_none(), "an inner scope did not hide the outer one");
            guard.release().await?;
            Outcome::Ok(())
        })
        .await?;
    busy_outside(&client, &owner).await
}

/// Outside the scope, its owner counts no more.
async fn busy_outside(client: &LockClient, owner: &Owner) -> Outcome {
    let guard = owner.scope(client.lock("x").acquire()).await?;
    busy("L12.i", client, "x").await?;
    let named = client.lock("x").owner(owner).try_acquire().await?;
    ensure!("L12.a", named.is_some(), "the owner that was ambient is not the owner that is named");
    drop(named);
    guard.release().await?;
    Ok(())
}

async fn futures_inside_one_owner_share_the_lock(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    // Documented, and here for all to see: one owner is one holder, also when its futures run side by side.
    let both = owner.scope(async { tokio::join!(client.lock("x").acquire(), client.lock("x").acquire()) }).await;
    let (first, second) = (both.0?, both.1?);
    ensure_eq!("L12.a", first.claim_id(), second.claim_id(), "the claims of two futures of one owner");
    first.release().await?;
    second.release().await?;
    Ok(())
}

async fn a_lost_hold_is_forgotten_with_its_last_guard(world: World) -> Outcome {
    let (client, owner, lease) = (world.client().await?, Owner::new(), world.renewed());
    let lock = client.lock("x").owner(&owner).lease(lease).wait(world.bounds().take_over(lease));
    let (outer, inner) = (lock.acquire().await?, lock.acquire().await?);
    let token = outer.fencing_token();
    world.oracle().remove(&world.key("x")?).await?;
    within("L8.d", world.bounds().loss_told(lease), "the loss is told", outer.lost()).await?;
    drop(outer);
    refused("L12.d", "re-entry while a lost guard lives", lock.acquire().await, ErrorKind::Lost)?;
    drop(inner);
    let next = lock.acquire().await?;
    ensure!("L12.j", next.is_held() && next.hold_count() == 1, "a new hold after a lost one is not new: {next:?}");
    ensure!("L13.a", next.fencing_token() > token, "token {} after {token}", next.fencing_token());
    stays("L12.j", lease * 2, "the new hold is renewed", async || Ok(next.is_held())).await?;
    next.release().await?;
    Ok(())
}

/// How many guards each of three owners has inside.
#[derive(Default)]
struct Inside(Mutex<[u32; 3]>);

impl Inside {
    fn enter(&self, owner: usize) -> Outcome {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside[owner] += 1;
        let owners = inside.iter().filter(|guards| **guards > 0).count();
        ensure_eq!("L12.b", owners, 1, "owners inside at once ({:?})", *inside);
        Ok(())
    }

    fn leave(&self, owner: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[owner] -= 1;
    }
}

async fn owners_that_come_and_go_at_random_keep_exclusion(world: World) -> Outcome {
    let client = world.client().await?;
    let inside = Arc::new(Inside::default());
    let end = Instant::now() + Duration::from_secs(2);
    let mut tasks = JoinSet::new();
    let owners: Vec<_> = (0..3).map(|_| Owner::new()).collect();
    for worker in 0..9 {
        let (client, inside) = (client.clone(), Arc::clone(&inside));
        let (number, owner) = (worker % owners.len(), owners[worker % owners.len()].clone());
        tasks.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(worker as u64);
            while Instant::now() < end {
                let guard = client.lock("x").owner(&owner).wait(Duration::from_secs(20)).acquire().await?;
                inside.enter(number)?;
                if rng.bool() {
                    tokio::task::yield_now().await;
                }
                ensure!("L12.f", guard.is_held(), "a guard ended before it was given up");
                inside.leave(number);
                if rng.bool() {
                    drop(guard);
                } else {
                    guard.release().await?;
                }
                // Without a pause, one owner's three tasks keep it for ever between them.
                tokio::time::sleep(Duration::from_millis(rng.u64(..4))).await;
            }
            Outcome::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    world.gone("L12.f", "x", world.bounds().prompt()).await
}
