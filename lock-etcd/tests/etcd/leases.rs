//! Leases: their shortest length, their reuse, and what an unanswered request leaves.

use std::{collections::HashSet, time::Duration};

use conformance_tests::{Proxy, Weather};
use lock_core::{Backend as _, Extension, Intent, Release};

use crate::{Stage, claim, connect, granted, key_of, server, until};

const LEASE: Duration = Duration::from_secs(30);

async fn lease_of(stage: &Stage, claim: &lock_core::Claim) -> i64 {
    stage.raw.first(&key_of(claim)).await.expect("a look").expect("a key").lease()
}

async fn leases(stage: &Stage) -> HashSet<i64> {
    stage.raw.client().leases().await.expect("a look").leases().iter().map(|lease| lease.id()).collect()
}

#[tokio::test]
async fn a_lease_below_the_servers_minimum_shows_the_real_one() {
    // An election timeout of 2 s: the shortest lease is one and a half times that.
    let server = server::start(&["--heartbeat-interval", "200", "--election-timeout", "2000"]).expect("etcd starts");
    let backend = connect(server.address()).await;
    assert_eq!(backend.capabilities().lease_min, Duration::from_secs(3));
    let grant = granted(&backend, &claim("x", Intent::Try, Duration::from_millis(10))).await;
    assert_eq!(grant.lease, Duration::from_secs(3));
}

#[tokio::test]
async fn a_lease_serves_one_claim_after_another_and_goes_when_the_client_closes() {
    let stage = Stage::new().await;
    let before = leases(&stage).await;
    let mut used = HashSet::new();
    for _ in 0..20 {
        let held = claim("x", Intent::Try, LEASE);
        let grant = granted(&stage.backend, &held).await;
        assert!(grant.lease <= LEASE && grant.lease >= LEASE - LEASE / 100, "{:?}", grant.lease);
        used.insert(lease_of(&stage, &held).await);
        assert_eq!(stage.backend.release(&held).await.expect("an answer"), Release::Removed);
    }
    assert_eq!(used.len(), 1, "claims that follow each other share a lease");
    stage.backend.close().await;
    assert_eq!(leases(&stage).await, before);
}

/// How many writes the cluster has agreed on so far.
fn proposals(stage: &Stage) -> u64 {
    let metrics = server::says(stage.server.address(), "/metrics").expect("an answer");
    let line = metrics.lines().find_map(|line| line.strip_prefix("etcd_server_proposals_applied_total "));
    line.and_then(|number| number.parse().ok()).expect("a number")
}

#[tokio::test]
async fn an_uncontended_claim_is_one_write_and_its_release_another() {
    let stage = Stage::new().await;
    let pair = async |intent| {
        let held = claim("x", intent, LEASE);
        granted(&stage.backend, &held).await;
        stage.backend.release(&held).await.expect("released");
    };
    pair(Intent::Try).await;
    for intent in [Intent::Try, Intent::Wait] {
        let before = proposals(&stage);
        for _ in 0..50 {
            pair(intent).await;
        }
        assert_eq!(proposals(&stage) - before, 100, "{intent:?}");
    }
}

#[tokio::test]
async fn an_idle_lease_that_was_revoked_by_hand_costs_a_round_and_nothing_else() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let lease = lease_of(&stage, &held).await;
    stage.backend.release(&held).await.expect("released");
    stage.raw.client().lease_revoke(lease).await.expect("revoked");
    let next = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &next).await;
    assert_ne!(lease_of(&stage, &next).await, lease);
}

#[tokio::test]
async fn the_lease_of_an_unanswered_claim_is_revoked_and_serves_nobody() {
    let stage = Stage::new().await;
    let before = leases(&stage).await;
    let proxy = Proxy::before(stage.server.address()).await.expect("a proxy");
    let backend = connect(proxy.address()).await;
    let warm = claim("warm", Intent::Try, LEASE);
    granted(&backend, &warm).await;
    let lease = lease_of(&stage, &warm).await;
    backend.release(&warm).await.expect("released");
    // The claim is written under the idle lease, and its answer never comes.
    proxy.set(Weather::EatAnswer);
    let lost = claim("x", Intent::Wait, LEASE);
    assert!(backend.attempt(&lost).await.expect_err("no answer").is_unknown());
    proxy.set(Weather::Fair);
    until("the claim is removed", async || backend.release(&lost).await.is_ok()).await;
    assert!(stage.raw.first(&key_of(&lost)).await.expect("a look").is_none());
    assert!(!leases(&stage).await.contains(&lease), "a write under it may come at any time");
    backend.close().await;
    assert_eq!(leases(&stage).await, before);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_again_under_its_id() {
    let stage = Stage::new().await;
    let proxy = Proxy::before(stage.server.address()).await.expect("a proxy");
    let backend = connect(proxy.address()).await;
    let warm = claim("warm", Intent::Try, LEASE);
    granted(&backend, &warm).await;
    backend.release(&warm).await.expect("released");
    proxy.set(Weather::EatAnswer);
    let lost = claim("x", Intent::Try, LEASE);
    assert!(backend.attempt(&lost).await.expect_err("no answer").is_unknown());
    let first = stage.raw.first(&key_of(&lost)).await.expect("a look").expect("it was written");
    proxy.set(Weather::Fair);
    let grant = granted(&backend, &lost).await;
    assert_eq!(grant.token.get(), first.create_revision().unsigned_abs());
    assert_eq!(grant.lease, LEASE);
}

#[tokio::test]
async fn a_longer_extension_moves_the_claim_to_another_lease_and_keeps_its_token() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, Duration::from_secs(5));
    let token = granted(&stage.backend, &held).await.token;
    let short = lease_of(&stage, &held).await;
    assert_eq!(stage.backend.extend(&held, LEASE).await.expect("an answer"), Extension::Extended(LEASE));
    let first = stage.raw.first(&key_of(&held)).await.expect("a look").expect("a key");
    assert_eq!(first.create_revision().unsigned_abs(), token.get());
    assert_ne!(first.lease(), short);
    until("the short lease is revoked", async || !leases(&stage).await.contains(&short)).await;
    // A renewal to the shorter length leaves what remains as it is (L6).
    let Extension::Extended(left) = stage.backend.extend(&held, Duration::from_secs(5)).await.expect("an answer")
    else {
        panic!("the claim is held");
    };
    assert!(left > Duration::from_secs(20) && left <= LEASE, "{left:?}");
    assert_eq!(lease_of(&stage, &held).await, first.lease());
}

#[tokio::test]
async fn long_extensions_that_meet_each_other_and_renewals_all_succeed() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, Duration::from_secs(5));
    granted(&stage.backend, &held).await;
    for round in 1..=10 {
        let longer = Duration::from_secs(10 + 10 * round);
        let (a, b, c) = tokio::join!(
            stage.backend.extend(&held, longer),
            stage.backend.extend(&held, Duration::from_secs(5)),
            stage.backend.extend(&held, longer + Duration::from_secs(3))
        );
        for (extension, asked) in [(a, longer), (b, Duration::from_secs(5)), (c, longer + Duration::from_secs(3))] {
            let Extension::Extended(left) = extension.expect("an answer") else { panic!("round {round}: not held") };
            assert!(left + Duration::from_millis(500) >= asked, "round {round}: {left:?} of {asked:?}");
        }
    }
}

#[tokio::test]
async fn a_claim_of_another_client_can_be_extended_and_broken() {
    let stage = Stage::new().await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&stage.backend, &held).await;
    let other = connect(stage.server.address()).await;
    let Extension::Extended(left) = other.extend(&held, Duration::from_secs(10)).await.expect("an answer") else {
        panic!("the claim is held");
    };
    assert!(left >= Duration::from_secs(10), "{left:?}");
    let queued = claim("x", Intent::Wait, LEASE);
    crate::busy(&stage.backend, &queued).await;
    assert_eq!(other.extend(&queued, LEASE).await.expect("an answer"), Extension::NotHeld, "it only waits");
    assert_eq!(other.release(&held).await.expect("an answer"), Release::Removed);
    assert_eq!(stage.backend.extend(&held, LEASE).await.expect("an answer"), Extension::NotHeld);
}
