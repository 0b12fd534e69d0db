//! Scripts that the server no longer has are sent in full, on every path.

use lock_core::{Attempt, Backend as _, Extension, Release, Selector};

use crate::{LEASE, Place, busy, claim, granted, waiting};

#[tokio::test]
async fn every_call_outlives_a_flush_of_the_scripts() {
    let place = Place::new().await;
    let (backend, held) = (place.backend().await, claim("x"));
    let flush = async || place.tell(&["SCRIPT", "FLUSH"]).await;
    granted(&backend, &held).await;
    flush().await;
    assert_eq!(backend.extend(&held, LEASE).await.expect("held"), Extension::Extended(LEASE));
    flush().await;
    busy(&backend, &claim("x")).await;
    flush().await;
    assert!(matches!(backend.attempt(&held).await, Ok(Attempt::Granted(_))), "a claim that is made again");
    flush().await;
    assert_eq!(
        backend.inspect(&Selector::prefix("").in_namespace(held.namespace.clone())).await.expect("shown").len(),
        1
    );
    flush().await;
    assert_eq!(backend.release(&held).await.expect("held"), Release::Removed);
    flush().await;
    assert_eq!(backend.release(&held).await.expect("gone"), Release::Absent);
    assert_eq!(place.raw.keys("*}").await.expect("an answer").len(), 0);
}

#[tokio::test]
async fn a_guard_outlives_a_flush_of_the_scripts() {
    let place = Place::new().await;
    let client = place.client().await;
    let guard = client.lock("x").acquire().await.expect("free");
    place.tell(&["SCRIPT", "FLUSH"]).await;
    guard.extend(LEASE).await.expect("held");
    place.tell(&["SCRIPT", "FLUSH"]).await;
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_script_is_sent_in_full_only_once() {
    let place = Place::new().await;
    let backend = place.backend().await;
    for _ in 0..20 {
        let claim = waiting("x");
        granted(&backend, &claim).await;
        backend.release(&claim).await.expect("held");
    }
    let calls = place.raw.info("commandstats", "cmdstat_eval").await.expect("an answer");
    assert!(calls.starts_with("calls=2,"), "{calls}");
}
