//! What an operator does by hand: each is told, and nothing is granted on it.

use std::time::Duration;

use futures_util::StreamExt as _;
use lock_core::{Backend as _, Extension, Intent, LockClient, LossReason, Release};

use crate::{Stage, busy, claim, granted, key_of, soon};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_lease_revoked_by_hand_is_told_by_push_and_is_a_loss() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    let mut grant = granted(&stage.backend, &held).await;
    let first = stage.raw.first(&key_of(&held)).await.expect("a look").expect("a key");
    stage.raw.client().lease_revoke(first.lease()).await.expect("revoked");
    soon("a hint of the loss", grant.disturbed.next()).await.expect("the stream goes on");
    assert_eq!(stage.backend.extend(&held, LEASE).await.expect("an answer"), Extension::NotHeld);
    assert_eq!(stage.backend.release(&held).await.expect("an answer"), Release::Absent);
}

#[tokio::test]
async fn a_key_deleted_by_hand_is_told_to_the_guard_long_before_its_renewal() {
    let stage = Stage::new().await;
    let client =
        LockClient::builder(crate::connect(stage.server.address()).await).lease(LEASE).build().expect("a client");
    let guard = client.lock("x").acquire().await.expect("acquired");
    let held = claim("x", Intent::Try, LEASE);
    let first = stage.raw.first(&key_of(&held)).await.expect("a look").expect("a key");
    stage.raw.client().delete(first.key(), None).await.expect("deleted");
    // A renewal is ten seconds away, and the lease lives on: only the push can tell.
    let told = tokio::time::timeout(Duration::from_secs(5), guard.lost()).await.expect("told by push");
    assert_eq!(told, LossReason::Gone);
    drop(guard);
    client.close().await.expect("closed");
}

#[tokio::test]
async fn a_key_put_under_another_lease_by_hand_is_not_held() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    let mut grant = granted(&stage.backend, &held).await;
    let first = stage.raw.first(&key_of(&held)).await.expect("a look").expect("a key");
    stage.raw.client().put(first.key(), "mine", None).await.expect("put");
    soon("a hint of the change", grant.disturbed.next()).await.expect("the stream goes on");
    assert_eq!(stage.backend.extend(&held, LEASE).await.expect("an answer"), Extension::NotHeld);
    // It is this claim's key all the same, and a release leaves nothing of it.
    assert_eq!(stage.backend.release(&held).await.expect("an answer"), Release::Removed);
}

#[tokio::test]
async fn an_extension_of_our_own_is_no_hint_of_a_loss() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, Duration::from_secs(5));
    let mut grant = granted(&stage.backend, &held).await;
    let next = grant.disturbed.next();
    tokio::pin!(next);
    // The stream begins to watch a moment after the grant; polled, it does.
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut next).await.is_err(), "a hint of nothing");
    let extended = stage.backend.extend(&held, LEASE).await.expect("an answer");
    assert_eq!(extended, Extension::Extended(LEASE));
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut next).await.is_err(), "a hint of our own write");
    let first = stage.raw.first(&key_of(&held)).await.expect("a look").expect("a key");
    stage.raw.client().delete(first.key(), None).await.expect("deleted");
    soon("a hint of the loss", next).await.expect("the stream goes on");
}

#[tokio::test]
async fn a_waiter_whose_lease_has_died_is_never_granted_under_it() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let (dead, behind) = (claim("x", Intent::Wait, LEASE), claim("x", Intent::Wait, LEASE));
    busy(&stage.backend, &dead).await;
    let line = stage.raw.line(&key_of(&held)).await.expect("a look");
    stage.raw.client().lease_revoke(line[1].lease()).await.expect("revoked");
    busy(&stage.backend, &behind).await;
    assert_eq!(stage.backend.release(&held).await.expect("an answer"), Release::Removed);
    // Its place went with its lease, and so it is behind the one that came later.
    busy(&stage.backend, &dead).await;
    let grant = granted(&stage.backend, &behind).await;
    assert_eq!(stage.backend.release(&behind).await.expect("an answer"), Release::Removed);
    assert!(granted(&stage.backend, &dead).await.token > grant.token);
}

#[tokio::test]
async fn foreign_keys_among_ours_neither_block_nor_hold() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    conformance_tests::Oracle::plant_foreign(&stage.raw, &key_of(&held)).await.expect("planted");
    granted(&stage.backend, &held).await;
    let (tries, waits) = (claim("x", Intent::Try, LEASE), claim("x", Intent::Wait, LEASE));
    assert_eq!(busy(&stage.backend, &tries).await.holders[0].claim, held.id);
    let told = busy(&stage.backend, &waits).await.changed;
    stage.backend.release(&held).await.expect("released");
    soon("the waiter is woken", told).await;
    granted(&stage.backend, &waits).await;
}
