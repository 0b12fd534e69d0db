//! What a lock looks like in the server, and that nothing of it stays for ever.

use std::time::Duration;

use lock_core::{Backend as _, Extension, Release, Selector};

use crate::{LEASE, Place, claim, fence, granted, key};

#[tokio::test]
async fn people_can_read_a_claim() {
    let place = Place::new().await;
    let (backend, claim) = (place.backend().await, claim("order:1001"));
    let grant = granted(&backend, &claim).await;
    let value = place.tell(&["GET", &key("order:1001")]).await;
    assert!(value.starts_with(&format!("{} {} ", claim.id, grant.token)), "{value}");
    assert!(value.ends_with("{\"host\":\"here\",\"pid\":7,\"label\":\"nightly\"}"), "{value}");
    assert_eq!(place.tell(&["GET", &fence("order:1001")]).await, grant.token.to_string());
    assert_eq!(place.raw.keys("*").await.expect("an answer").len(), 2);
}

#[tokio::test]
async fn a_claim_ends_with_its_lease_and_its_fence_a_day_later() {
    let place = Place::new().await;
    let (backend, claim) = (place.backend().await, claim("x"));
    let ttl = async |key: String| place.tell(&["PTTL", &key]).await.parse::<i64>().expect("a number");
    let (lease, day) = (30_000, 86_400_000);
    let near = |found: i64, expected: i64| (expected - 5_000..=expected).contains(&found);
    granted(&backend, &claim).await;
    assert!(near(ttl(key("x")).await, lease) && near(ttl(fence("x")).await, lease + day));
    // A lease far longer than what the fence had been kept for takes the fence along.
    let long = Duration::from_secs(10 * 86_400);
    assert_eq!(backend.extend(&claim, long).await.expect("held"), Extension::Extended(long));
    assert!(near(ttl(key("x")).await, 10 * day) && near(ttl(fence("x")).await, 11 * day));
    // It never shortens, and a renewal that changes little leaves the fence alone.
    let kept = backend.extend(&claim, LEASE).await.expect("held");
    assert!(matches!(kept, Extension::Extended(kept) if kept > long - Duration::from_secs(5)), "{kept:?}");
    // A fence that someone has removed comes back with its token.
    let token = place.tell(&["GETDEL", &fence("x")]).await;
    backend.extend(&claim, LEASE).await.expect("held");
    assert_eq!(place.tell(&["GET", &fence("x")]).await, token);
    assert_eq!(backend.release(&claim).await.expect("held"), Release::Removed);
    assert_eq!(place.raw.keys("*").await.expect("an answer"), [fence("x")]);
    assert!(ttl(fence("x")).await > day);
}

#[tokio::test]
async fn a_claim_without_an_end_gets_one_again() {
    let place = Place::new().await;
    let (backend, claim) = (place.backend().await, claim("x"));
    granted(&backend, &claim).await;
    place.tell(&["PERSIST", &key("x")]).await;
    let shown = backend.inspect(&Selector::name("x").in_namespace(claim.namespace.clone())).await.expect("an answer");
    assert_eq!(shown[0].holders[0].remaining, None);
    assert_eq!(granted(&backend, &claim).await.lease, LEASE);
    place.tell(&["PERSIST", &key("x")]).await;
    assert_eq!(backend.extend(&claim, LEASE).await.expect("held"), Extension::Extended(LEASE));
    assert!(place.tell(&["PTTL", &key("x")]).await.parse::<i64>().expect("a number") > 0);
}

#[tokio::test]
async fn a_walk_over_many_keys_shows_each_lock_once() {
    let place = Place::new().await;
    let backend = place.backend().await;
    let fill = "for i = 1, 20000 do redis.call('SET', 'other:' .. i, i) end";
    place.tell(&["EVAL", fill, "0"]).await;
    for number in 0..500 {
        granted(&backend, &claim(&format!("job-{number:03}"))).await;
    }
    let namespace = claim("x").namespace;
    let shown = backend.inspect(&Selector::prefix("job-").in_namespace(namespace.clone())).await.expect("an answer");
    let names: Vec<_> = shown.iter().map(|record| record.name.clone()).collect();
    assert_eq!(names, (0..500).map(|number| format!("job-{number:03}")).collect::<Vec<_>>());
    let shown = backend.inspect(&Selector::prefix("job-49").in_namespace(namespace)).await.expect("an answer");
    assert_eq!(shown.len(), 10);
    assert_eq!(place.raw.info("commandstats", "cmdstat_keys").await.expect("an answer"), "", "KEYS stops the server");
}
