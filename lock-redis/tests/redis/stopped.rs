//! A server that is stopped for a while: what was given up leaves nothing beyond its lease, and nothing hangs after it.

use std::time::{Duration, Instant};

use conformance_tests::{Proxy, Weather};
use lock_core::{Attempt, Backend as _, Claim, LockClient, Release};
use lock_redis::{RedisBackend, RedisConfig};

use crate::{NOISE, Place, busy, claim, granted, key};

const SHORT: Duration = Duration::from_millis(700);

#[tokio::test]
async fn a_request_that_was_given_up_leaves_no_claim_beyond_its_lease_and_its_connection_goes() {
    let place = Place::new().await;
    let (backend, other) = (place.backend().await, place.backend().await);
    let (warm, given_up) = (claim("x"), Claim { lease: SHORT, ..claim("x") });
    // A server that does not have the scripts yet would only ask for them.
    granted(&backend, &warm).await;
    backend.release(&warm).await.expect("held");
    place.server.pause().expect("the server is there");
    let attempt = tokio::time::timeout(Duration::from_millis(200), backend.attempt(&given_up)).await;
    assert!(attempt.is_err(), "a stopped server answered: {attempt:?}");
    place.server.resume().expect("the server is there");
    // What it had received it applies, for a lease and no longer: nobody renews it.
    place
        .shows("the request is applied", async |raw| raw.ask::<u64>(&["EXISTS", &key("x")]).await.is_ok_and(|n| n == 1))
        .await;
    let applied = Instant::now();
    let remaining: i64 = place.tell(&["PTTL", &key("x")]).await.parse().expect("a number");
    assert!(remaining <= 700, "{remaining} ms of a lease of {SHORT:?}");
    busy(&other, &claim("x")).await;
    place
        .shows("the claim has ended", async |raw| raw.ask::<u64>(&["EXISTS", &key("x")]).await.is_ok_and(|n| n == 0))
        .await;
    assert!(applied.elapsed() < SHORT + NOISE);
    // The next call has a connection of its own, and so an answer of its own.
    let next = claim("x");
    granted(&backend, &next).await;
    assert_eq!(backend.release(&next).await.expect("held"), Release::Removed);
    let number =
        |list: String| list.lines().filter(|line| line.contains("cmd=evalsha") || line.contains("cmd=eval")).count();
    place
        .shows("one connection for each backend", async |raw| {
            raw.ask::<String>(&["CLIENT", "LIST"]).await.is_ok_and(|list| number(list) == 2)
        })
        .await;
}

#[tokio::test]
async fn a_client_that_gave_up_cleans_up_after_itself() {
    let place = Place::new().await;
    let client = LockClient::builder(place.backend().await)
        .lease(Duration::from_secs(60))
        .request_timeout(Duration::from_secs(1))
        .build()
        .expect("a client");
    for _ in 0..3 {
        place.server.pause().expect("the server is there");
        let error = client.lock("x").try_acquire().await.expect_err("a stopped server");
        assert_eq!(error.kind(), lock_core::ErrorKind::Unavailable);
        place.server.resume().expect("the server is there");
        // Far sooner than the lease of a minute: the client releases what may have been applied.
        let guard = client.lock("x").wait(Duration::from_secs(20)).acquire().await.expect("free again");
        guard.release().await.expect("held");
    }
    place
        .shows("nothing is left", async |raw| {
            raw.ask::<u64>(&["EXISTS", "leasehold/{/lock/x}"]).await.is_ok_and(|n| n == 0)
        })
        .await;
}

#[tokio::test]
async fn an_answer_that_was_eaten_leaves_no_orphan_and_needs_no_new_backend() {
    let place = Place::new().await;
    let proxy = Proxy::before(place.address()).await.expect("a proxy");
    let config = RedisConfig::new("127.0.0.1", proxy.address().port()).connect_timeout(Duration::from_secs(1));
    let backend = RedisBackend::connect(&config).await.expect("the server answers");
    let (warm, mine) = (claim("x"), claim("x"));
    // A server that does not have the scripts yet would only ask for them.
    granted(&backend, &warm).await;
    backend.release(&warm).await.expect("held");
    proxy.set(Weather::EatAnswer);
    let error = backend.attempt(&mine).await.expect_err("no answer");
    assert!(error.is_unknown(), "{error}");
    proxy.set(Weather::Fair);
    let token = place.tell(&["GET", &format!("{}/fence", key("x"))]).await;
    // Made again, it finds its own claim, with the token that it was given.
    let grant = granted(&backend, &mine).await;
    assert_eq!(grant.token.to_string(), token);
    proxy.set(Weather::EatAnswer);
    let error = backend.release(&mine).await.expect_err("no answer");
    assert!(error.is_unknown(), "{error}");
    proxy.set(Weather::Fair);
    assert_eq!(backend.release(&mine).await.expect("an answer"), Release::Absent);
}

#[tokio::test]
async fn an_idle_connection_that_was_cut_is_not_noticed_by_who_asks() {
    let place = Place::new().await;
    let (backend, mine) = (place.backend().await, claim("x"));
    for _ in 0..5 {
        place.tell(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        assert!(matches!(backend.attempt(&mine).await, Ok(Attempt::Granted(_))));
        place.tell(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        backend.extend(&mine, crate::LEASE).await.expect("held");
    }
}

#[tokio::test]
async fn many_calls_share_the_one_connection_that_is_being_made() {
    let place = Place::new().await;
    let backend = std::sync::Arc::new(place.backend().await);
    place.tell(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    let before: u64 =
        place.raw.info("stats", "total_connections_received").await.expect("an answer").parse().expect("a number");
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..100 {
        let backend = std::sync::Arc::clone(&backend);
        calls.spawn(async move { granted(&backend, &claim(&format!("x{number}"))).await.token });
    }
    assert_eq!(calls.join_all().await.len(), 100);
    let after: u64 =
        place.raw.info("stats", "total_connections_received").await.expect("an answer").parse().expect("a number");
    assert!(after - before <= 2, "{} connections were made", after - before);
}
