//! The line: its order, and waiting for the one ahead alone.

use std::time::Duration;

use lock_core::{Backend as _, Intent, Release};

use crate::{PATIENCE, Stage, busy, claim, connect, granted, key_of, soon, until};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn grants_are_in_the_order_of_revisions_under_fifty_waiters() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let waiters: Vec<_> = (0..50).map(|_| claim("x", Intent::Wait, LEASE)).collect();
    // All at once: whatever order they come in, that is the one they are served in.
    let answers = waiters.iter().map(|waiter| busy(&stage.backend, waiter));
    futures_util::future::join_all(answers).await;
    let line = stage.raw.line(&key_of(&held)).await.expect("a look");
    assert_eq!(line.len(), 51);
    let (mut before, mut token) = (held, 0);
    for kv in &line[1..] {
        let id = kv.key_str().expect("text").rsplit('/').next().expect("an id").to_owned();
        let next = waiters.iter().find(|waiter| waiter.id.to_string() == id).expect("one of ours").clone();
        assert!(busy(&stage.backend, &next).await.holders[0].claim == before.id, "nobody is served out of turn");
        assert_eq!(stage.backend.release(&before).await.expect("an answer"), Release::Removed);
        let grant = granted(&stage.backend, &next).await;
        assert_eq!(grant.token.get(), kv.create_revision().unsigned_abs());
        assert!(grant.token.get() > token);
        (before, token) = (next, grant.token.get());
    }
}

#[tokio::test]
async fn a_waiter_that_vanishes_ahead_wakes_the_next_and_grants_nothing() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let (gone, last) = (claim("x", Intent::Wait, LEASE), claim("x", Intent::Wait, LEASE));
    // Of another client, whose death is the end of its lease.
    let other = connect(stage.server.address()).await;
    busy(&other, &gone).await;
    let told = busy(&stage.backend, &last).await.changed;
    let line = stage.raw.line(&key_of(&held)).await.expect("a look");
    stage.raw.client().lease_revoke(line[1].lease()).await.expect("revoked");
    soon("the one behind is woken", told).await;
    let told = busy(&stage.backend, &last).await.changed;
    stage.backend.release(&held).await.expect("released");
    soon("it waits for the holder now", told).await;
    granted(&stage.backend, &last).await;
}

#[tokio::test]
async fn a_waiter_is_woken_although_the_revisions_it_watches_from_are_compacted() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let waiter = claim("x", Intent::Wait, LEASE);
    let told = busy(&stage.backend, &waiter).await.changed;
    let mut raw = stage.raw.client();
    for _ in 0..20 {
        raw.put("other", "", None).await.expect("put");
    }
    let now = raw.get("other", None).await.expect("a look").header().expect("a header").revision();
    raw.compact(now, None).await.expect("compacted");
    stage.backend.release(&held).await.expect("released");
    soon("the waiter is woken", told).await;
    granted(&stage.backend, &waiter).await;
}

#[tokio::test]
async fn a_waiter_of_a_server_that_was_restarted_is_told_to_ask_again() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let waiter = claim("x", Intent::Wait, LEASE);
    let told = busy(&stage.backend, &waiter).await.changed;
    stage.server.kill();
    stage.server.launch().expect("started again");
    soon("the end of the stream is told", told).await;
    // The claims are as they were: the server kept its data.
    until("the server answers the waiter", async || {
        matches!(stage.backend.attempt(&waiter).await, Ok(lock_core::Attempt::Busy(_)))
    })
    .await;
    stage.backend.release(&held).await.expect("released");
    granted(&stage.backend, &waiter).await;
}

#[tokio::test]
async fn a_queued_place_lives_by_being_attempted_and_ends_with_its_lease() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let lease = stage.backend.capabilities().lease_min;
    let (lives, ends) = (claim("x", Intent::Wait, lease), claim("x", Intent::Wait, lease));
    busy(&stage.backend, &ends).await;
    busy(&stage.backend, &lives).await;
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(lease / 4).await;
        busy(&stage.backend, &lives).await;
        let line = stage.raw.line(&key_of(&held)).await.expect("a look");
        let there = |claim: &lock_core::Claim| {
            let id = claim.id.to_string();
            line.iter().any(|kv| kv.key_str().is_ok_and(|key| key.ends_with(&id)))
        };
        assert!(there(&lives), "a place that is attempted was lost");
        if !there(&ends) {
            break;
        }
        assert!(tokio::time::Instant::now() < end, "a place that nobody attempts stays");
    }
}

#[tokio::test]
async fn a_try_leaves_the_line_as_it_was() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let keys = async || {
        let line = stage.raw.line(&key_of(&held)).await.expect("a look");
        line.iter().map(|kv| (kv.key().to_vec(), kv.mod_revision())).collect::<Vec<_>>()
    };
    let before = keys().await;
    busy(&stage.backend, &claim("x", Intent::Try, LEASE)).await;
    // A name that this one is a prefix of, and another kind's place, are other locks.
    granted(&stage.backend, &claim("x/", Intent::Try, LEASE)).await;
    granted(&stage.backend, &claim("xy", Intent::Try, LEASE)).await;
    assert_eq!(keys().await, before);
}
