//! Claiming, extending, releasing and inspecting, as the rows show it.

use std::time::Duration;

use lock_core::{Backend as _, ClaimId, Extension, FencingToken, Release, Selector};

use crate::{LEASE, Place, busy, claim, granted};

#[tokio::test]
async fn a_claim_is_a_row_and_a_release_leaves_its_token_alone() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let claim = claim("job");
    let grant = granted(&backend, &claim).await;

    let row = oracle.row("job").await.expect("a row");
    assert_eq!(row.claim, Some(claim.id.to_string()));
    assert_eq!(u64::try_from(row.token), Ok(grant.token.get()));
    assert_eq!((row.host.as_deref(), row.label.as_deref()), (Some("here"), Some("nightly")));
    assert_eq!(row.expires_us - row.since_us.expect("since"), 30_000_000);
    assert_eq!(grant.lease, LEASE);

    assert_eq!(backend.release(&claim).await.expect("release"), Release::Removed);
    let row = oracle.row("job").await.expect("the row stays");
    assert_eq!((row.claim, row.host, row.label, row.since_us), (None, None, None, None));
    assert_eq!(u64::try_from(row.token), Ok(grant.token.get()));
    assert_eq!(backend.release(&claim).await.expect("again"), Release::Absent);
}

#[tokio::test]
async fn a_taken_lock_tells_its_holder_and_stays_as_it_was() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let (first, second) = (claim("job"), claim("job"));
    let grant = granted(&backend, &first).await;
    let before = oracle.rows().await;

    let answer = busy(&backend, &second).await;
    assert_eq!(answer.holders.len(), 1);
    assert_eq!((answer.holders[0].claim, answer.holders[0].token), (first.id, grant.token));
    assert!(answer.retry_after.is_some_and(|left| left > LEASE - Duration::from_secs(10) && left <= LEASE));
    assert_eq!(backend.extend(&second, LEASE).await.expect("extend"), Extension::NotHeld);
    assert_eq!(backend.release(&second).await.expect("release"), Release::Absent);
    assert_eq!(oracle.rows().await, before);
}

#[tokio::test]
async fn an_attempt_made_again_renews_its_claim_and_keeps_its_token() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let mut claim = claim("job");
    let first = granted(&backend, &claim).await;
    let before = oracle.row("job").await.expect("a row");

    claim.lease = Duration::from_secs(1);
    let second = granted(&backend, &claim).await;
    assert_eq!(second.token, first.token);
    assert!(second.lease > Duration::from_secs(20), "the longer lease is kept: {second:?}");
    assert_eq!(oracle.row("job").await, Some(before));

    claim.lease = Duration::from_secs(60);
    assert!(granted(&backend, &claim).await.lease == Duration::from_secs(60));
}

#[tokio::test]
async fn a_claim_that_ran_out_is_taken_over_with_a_higher_token() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let (first, second) = (claim("job"), claim("job"));
    let old = granted(&backend, &first).await;
    oracle.execute("UPDATE leasehold_locks SET expires = since").await;

    let new = granted(&backend, &second).await;
    assert!(new.token > old.token);
    assert_eq!(backend.extend(&first, LEASE).await.expect("extend"), Extension::NotHeld);
    assert_eq!(backend.release(&first).await.expect("release"), Release::Absent);
    assert_eq!(oracle.row("job").await.and_then(|row| row.claim), Some(second.id.to_string()));
}

#[tokio::test]
async fn a_claim_that_ran_out_unnoticed_is_cleared_but_was_not_held() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let claim = claim("job");
    granted(&backend, &claim).await;
    oracle.execute("UPDATE leasehold_locks SET expires = since").await;

    assert_eq!(backend.extend(&claim, LEASE).await.expect("extend"), Extension::NotHeld);
    assert!(backend.inspect(&Selector::prefix("")).await.expect("inspect").is_empty());
    assert_eq!(backend.release(&claim).await.expect("release"), Release::Absent);
    assert_eq!(oracle.row("job").await.and_then(|row| row.claim), None);
}

#[tokio::test]
async fn a_claim_that_ran_out_and_is_made_again_gets_a_new_token() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let claim = claim("job");
    let old = granted(&backend, &claim).await;
    oracle.execute("UPDATE leasehold_locks SET expires = since").await;
    let new = granted(&backend, &claim).await;
    assert!(new.token > old.token);
    assert_eq!(new.lease, LEASE);
}

#[tokio::test]
async fn an_extension_never_shortens() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let claim = claim("job");
    let grant = granted(&backend, &claim).await;
    let before = oracle.row("job").await.expect("a row");

    let kept = backend.extend(&claim, Duration::from_secs(1)).await.expect("extend");
    assert!(matches!(kept, Extension::Extended(left) if left > Duration::from_secs(20)), "{kept:?}");
    assert_eq!(oracle.row("job").await, Some(before));

    let longer = backend.extend(&claim, Duration::from_secs(90)).await.expect("extend");
    assert_eq!(longer, Extension::Extended(Duration::from_secs(90)));
    let row = oracle.row("job").await.expect("a row");
    assert_eq!(u64::try_from(row.token), Ok(grant.token.get()));
}

#[tokio::test]
async fn tokens_increase_though_the_clock_goes_back() {
    let place = Place::new();
    let (backend, mut oracle) = (place.backend().await, place.oracle().await);
    let mut last = FencingToken::ZERO;
    for round in 0..200 {
        let claim = claim("job");
        let token = granted(&backend, &claim).await.token;
        assert!(token > last, "round {round}: {token} after {last}");
        last = token;
        backend.release(&claim).await.expect("release");
        if round == 100 {
            // What a clock that went back by a year leaves: a token far ahead of it.
            oracle.execute("UPDATE leasehold_locks SET token = token + 31536000000000").await;
            last = FencingToken::new(last.get() + 31_536_000_000_000);
        }
    }
}

#[tokio::test]
async fn a_quorum_can_raise_a_token() {
    let place = Place::new();
    let backend = place.backend().await;
    let mut claim = claim("job");
    claim.min_token = FencingToken::new(4_000_000_000_000_000);
    assert_eq!(granted(&backend, &claim).await.token, claim.min_token);
    claim.id = ClaimId::random();
    claim.min_token = FencingToken::new(u64::MAX);
    let error = backend.attempt(&claim).await.expect_err("no column holds it");
    assert!(error.to_string().contains("18446744073709551615"), "{error}");
}

#[tokio::test]
async fn two_backends_of_one_process_exclude_each_other_and_outlive_each_other() {
    let place = Place::new();
    let (one, two) = (place.backend().await, place.backend().await);
    let held = claim("job");
    granted(&one, &held).await;
    busy(&two, &claim("job")).await;
    one.close().await;
    drop(one);
    busy(&two, &claim("job")).await;
    assert_eq!(two.release(&held).await.expect("by id alone"), Release::Removed);
    two.close().await;
}

#[tokio::test]
async fn a_store_that_was_closed_keeps_its_claims_and_opens_again() {
    let place = Place::new();
    let held = claim("job");
    let first = place.backend().await;
    granted(&first, &held).await;
    first.close().await;
    let error = first.attempt(&held).await.expect_err("closed");
    assert!(error.to_string().contains("was closed"), "{error}");
    let second = place.backend().await;
    busy(&second, &claim("job")).await;
}
