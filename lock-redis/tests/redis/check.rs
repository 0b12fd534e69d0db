//! `check`: what is told of a server, each warning provoked for real, and that looking changes nothing.

use conformance_tests::{assert_warns, finding};
use lock_core::{Backend as _, Finding, Level, Namespace, Usage};

use crate::{LEASE, Place, claim, connect, granted, support::server::Keeps};

async fn findings(place: &Place) -> Vec<Finding> {
    let usage = Usage::new(Namespace::new("shop").expect("a namespace"), LEASE);
    place.backend().await.check(&usage).await.expect("an answer")
}

#[tokio::test]
async fn a_sound_server_gives_no_warning_and_is_left_as_it_was() {
    let place = Place::with(Keeps::Nothing, &["--appendonly", "yes", "--appendfsync", "always"]).await;
    let backend = place.backend().await;
    granted(&backend, &claim("x")).await;
    let keys = place.raw.keys("*").await.expect("keys");
    let told = findings(&place).await;
    assert!(told.iter().all(|finding| finding.level < Level::Warning), "{told:?}");
    assert!(finding(&told, "leases").evidence.starts_with("1 held locks"), "{told:?}");
    assert_eq!(place.raw.keys("*").await.expect("keys"), keys);
    let there = backend.wall_clock().await.expect("an answer").expect("a clock");
    assert!(there.elapsed().is_ok_and(|off| off < crate::NOISE), "{there:?}");
}

#[tokio::test]
async fn settings_that_forget_locks_are_warnings() {
    let place = Place::new().await;
    assert_warns(&findings(&place).await, "persistence", "appendonly is off");
    place.tell(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await;
    assert_eq!(finding(&findings(&place).await, "eviction").level, Level::Note, "without a limit nothing is evicted");
    place.tell(&["CONFIG", "SET", "maxmemory", "100mb"]).await;
    assert_warns(&findings(&place).await, "eviction", "allkeys-lru");
    place.tell(&["CONFIG", "SET", "appendonly", "yes"]).await;
    assert_eq!(finding(&findings(&place).await, "persistence").level, Level::Note);
}

#[tokio::test]
async fn replicas_are_told_from_primaries_and_what_bounds_a_failover_is_named() {
    let (primary, replica) = (Place::new().await, Place::new().await);
    replica.tell(&["REPLICAOF", "127.0.0.1", &primary.address().port().to_string()]).await;
    primary
        .shows("it has a replica", async |raw| {
            raw.info("replication", "connected_slaves").await.is_ok_and(|count| count == "1")
        })
        .await;
    assert_warns(&findings(&primary).await, "failover", "1 replicas");
    primary.tell(&["CONFIG", "SET", "min-replicas-to-write", "1"]).await;
    assert_eq!(finding(&findings(&primary).await, "failover").level, Level::Note);
    assert_warns(&findings(&replica).await, "writable", "is a replica");
}

#[tokio::test]
async fn a_lock_that_would_last_for_ever_is_found() {
    let place = Place::new().await;
    granted(&place.backend().await, &claim("x")).await;
    let key = place.raw.keys("leasehold/*x}").await.expect("keys").remove(0);
    place.tell(&["PEXPIRE", &key, "90000000"]).await;
    assert_warns(&findings(&place).await, "leases", &key);
}

#[tokio::test]
async fn rights_that_are_missing_are_warnings_or_notes_and_no_errors() {
    let place = Place::new().await;
    place.tell(&["ACL", "SETUSER", "poor", "on", ">secret", "resetchannels", "+ping", "+select"]).await;
    let backend = connect(&place.url("poor:secret@")).await;
    let usage = Usage::new(Namespace::default(), LEASE);
    let told = backend.check(&usage).await.expect("no error");
    assert_warns(&told, "rights", "may not run scripts");
    assert_warns(&told, "channel", "may not publish");
    for rule in ["version", "writable", "eviction", "persistence", "failover", "leases"] {
        assert_eq!(finding(&told, rule).level, Level::Note, "{rule}");
    }
    assert_eq!(backend.wall_clock().await.expect("no error"), None);
}
