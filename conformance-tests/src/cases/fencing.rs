//! Fencing: tokens that only grow, and what a resource does with them (L13).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lock_core::{FencingToken, Owner, Renew, Selector};

use super::taken;
use crate::{Outcome, Stop, World, bounds::NOISE, case::cases, ensure, ensure_eq, within};

cases! {
    #[heavy] tokens_increase_over_a_thousand_grants: "L13.a";
    tokens_increase_across_expiry_crash_and_breaking: "L13.b";
    tokens_increase_across_the_clean_up_of_idle_records: "L13.c";
    tokens_increase_across_a_restart_with_data: "L13.d" "L18.b";
    extend_and_re_entry_leave_the_token_alone: "L13.e";
    a_fence_base_is_added_everywhere: "L13.f";
    a_fenced_resource_refuses_a_late_holder: "L13.g" "L8.a";
}

/// Takes a lock and gives it back, and proves that its token is larger than the last.
async fn next_token(
    world: &World,
    clause: &'static str,
    client: &lock_core::LockClient,
    last: &mut FencingToken,
) -> Outcome {
    let guard = client.lock("x").wait(world.bounds().take_over(world.short())).acquire().await?;
    let token = guard.fencing_token();
    if token <= *last {
        return Err(Stop::failed(clause, format!("token {token} was given after {last}")));
    }
    *last = token;
    guard.release().await?;
    Ok(())
}

async fn tokens_increase_over_a_thousand_grants(world: World) -> Outcome {
    let clients = [world.client().await?, world.client().await?, world.client().await?];
    let mut last = FencingToken::ZERO;
    for round in 0..1_000 {
        next_token(&world, "L13.a", &clients[round % clients.len()], &mut last).await?;
    }
    // Another name has tokens of its own, which begin where they like and grow as well.
    let (first, second) = (taken("L13.a", &clients[0], "y").await?, clients[1].lock("z").acquire().await?);
    let before = first.fencing_token();
    first.release().await?;
    let next = taken("L13.a", &clients[1], "y").await?;
    ensure!("L13.a", next.fencing_token() > before, "token {} after {before}", next.fencing_token());
    next.release().await?;
    second.release().await?;
    Ok(())
}

async fn tokens_increase_across_expiry_crash_and_breaking(world: World) -> Outcome {
    let (client, lease) = (world.client().await?, world.short());
    let mut last = FencingToken::ZERO;
    next_token(&world, "L13.b", &client, &mut last).await?;
    // A holder that expires.
    let expired = world.client().await?.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    ensure!("L13.a", expired.fencing_token() > last, "token {} after {last}", expired.fencing_token());
    last = expired.fencing_token();
    next_token(&world, "L13.b", &client, &mut last).await?;
    drop(expired);
    // A holder whose whole client disappears without a word.
    let crashed = world.client().await?;
    let guard = crashed.lock("x").lease(lease).max_hold(lease).acquire().await?;
    last = guard.fencing_token();
    std::mem::forget((guard, crashed));
    next_token(&world, "L13.b", &client, &mut last).await?;
    // A holder that an administrator breaks.
    let broken = taken("L13.b", &world.client().await?, "x").await?;
    last = broken.fencing_token();
    client.break_lock("x", None).await?;
    next_token(&world, "L13.b", &client, &mut last).await?;
    drop(broken);
    Ok(())
}

async fn tokens_increase_across_the_clean_up_of_idle_records(world: World) -> Outcome {
    let world = world.private().await?;
    let mut last = FencingToken::ZERO;
    for _ in 0..3 {
        let client = world.client().await?;
        next_token(&world, "L13.c", &client, &mut last).await?;
        client.close().await?;
        world.oracle().age_idle(world.namespace()).await?;
        // What notices the age of idle records is left to the store: a new connection, other grants, time.
        for other in ["other", "another"] {
            let client = world.client().await?;
            taken("L13.c", &client, other).await?.release().await?;
            client.close().await?;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    next_token(&world, "L13.c", &world.client().await?, &mut last).await
}

async fn tokens_increase_across_a_restart_with_data(world: World) -> Outcome {
    let world = world.private().await?;
    let server = world.server()?;
    let client = world.client().await?;
    let mut last = FencingToken::ZERO;
    for _ in 0..3 {
        next_token(&world, "L13.d", &client, &mut last).await?;
        server.restart().await?;
        let bound = server.recovery() + world.bounds().hand_over();
        let guard = client.lock("x").wait(bound).acquire().await?;
        ensure!("L13.d", guard.fencing_token() > last, "token {} after {last}", guard.fencing_token());
        last = guard.fencing_token();
        guard.release().await?;
    }
    Ok(())
}

async fn extend_and_re_entry_leave_the_token_alone(world: World) -> Outcome {
    let (client, owner) = (world.client().await?, Owner::new());
    let guard = client.lock("x").owner(&owner).acquire().await?;
    let token = guard.fencing_token();
    guard.extend(world.bounds().long() * 2).await?;
    let inner = client.lock("x").owner(&owner).acquire().await?;
    ensure_eq!(
        "L13.e",
        (guard.fencing_token(), inner.fencing_token()),
        (token, token),
        "tokens after extend and re-entry"
    );
    let stored = world.holder("x").await?.map(|holder| holder.token);
    ensure_eq!("L13.e", stored, Some(token), "the token in the store");
    inner.release().await?;
    guard.release().await?;
    Ok(())
}

async fn a_fence_base_is_added_everywhere(world: World) -> Outcome {
    const BASE: u64 = 1 << 60;
    let (plain, raised) = (world.client().await?, world.builder().await?.fence_base(BASE).build()?);
    let guard = taken("L13.f", &raised, "x").await?;
    let token = guard.fencing_token();
    let stored = world.holder("x").await?.map(|holder| holder.token.get());
    ensure_eq!("L13.f", stored.map(|stored| stored + BASE), Some(token.get()), "the stored token plus the base");
    let shown = raised.inspect(Selector::name("x")).await?;
    let shown = shown.first().and_then(|record| record.holders.first()).map(|holder| holder.token);
    ensure_eq!("L13.f", shown, Some(token), "the token that inspect shows");
    // The store's own number names no claim to a client with a base, and another's number names none at all.
    for wrong in [FencingToken::new(token.get() - BASE), FencingToken::new(token.get() + 1)] {
        let broken = raised.break_lock("x", wrong).await?;
        ensure!("L13.f", broken.is_empty(), "breaking by token {wrong} broke {broken:?}");
    }
    world.shows("L13.f", &guard).await?;
    let broken = raised.break_lock("x", token).await?;
    ensure_eq!("L13.f", broken.first().map(|holder| holder.token), Some(token), "the token of what was broken");
    drop(guard);
    world.free("L13.f", "x", world.bounds().prompt()).await?;
    ensure!(
        "L13.f",
        taken("L13.f", &plain, "x").await?.fencing_token().get() < BASE,
        "the base reached another client"
    );
    Ok(())
}

/// A resource that refuses a token smaller than the largest it has seen.
#[derive(Default)]
struct Register(Mutex<(FencingToken, u32)>);

impl Register {
    fn write(&self, token: FencingToken, value: u32) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = token >= state.0;
        if accepted {
            *state = (token, value);
        }
        accepted
    }
}

async fn a_fenced_resource_refuses_a_late_holder(world: World) -> Outcome {
    let (register, lease) = (Arc::new(Register::default()), world.short());
    let (slow, quick) = (world.client().await?, world.client().await?);
    let late = slow.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    ensure!("L13.g", register.write(late.fencing_token(), 1), "the first writer was refused");
    // The slow one is paused here, and does not look whether it still holds.
    let next = quick.lock("x").wait(world.bounds().take_over(lease)).acquire().await?;
    ensure!("L13.g", register.write(next.fencing_token(), 2), "the second writer was refused");
    ensure!("L13.g", !register.write(late.fencing_token(), 3), "the late writer was not refused");
    ensure!("L8.a", !late.is_held(), "the late writer's guard is held beside its successor's");
    ensure!("L13.g", register.write(next.fencing_token(), 4), "the second writer was refused after the late one");
    next.release().await?;
    within("L8.b", NOISE + Duration::from_secs(1), "the late writer learns of its loss", late.lost()).await?;
    Ok(())
}
