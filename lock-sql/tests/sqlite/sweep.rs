//! Idle rows go, and their tokens are never given twice.

use std::time::Duration;

use lock_core::{Backend as _, FencingToken};

use crate::{Place, claim, granted, support::Oracle};

/// Waits until no row is as this query counts.
async fn until_none(oracle: &mut Oracle, sql: &'static str) {
    let gone = async {
        while oracle.number(sql).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the rows go");
}

#[tokio::test]
async fn idle_rows_go_and_the_next_token_is_above_theirs() {
    let place = Place::new();
    let mut oracle = place.oracle().await;
    let backend = place.backend().await;
    let (idle, held) = (claim("idle"), claim("held"));
    granted(&backend, &idle).await;
    granted(&backend, &held).await;
    backend.release(&idle).await.expect("release");
    backend.close().await;
    // Two days ago, when the clock was a year ahead: the token is far above what the clock gives now.
    oracle
        .execute(
            "UPDATE leasehold_locks SET expires = expires - 172800000000, token = token + 31536000000000
             WHERE claim IS NULL;
             UPDATE leasehold_schema SET swept = 0",
        )
        .await;
    let last = oracle.row("idle").await.expect("a row").token;

    let backend = place.backend().await;
    granted(&backend, &claim("other")).await;
    until_none(&mut oracle, "SELECT count(*) FROM leasehold_locks WHERE name = CAST('idle' AS BLOB)").await;

    let token = granted(&backend, &claim("idle")).await.token;
    assert!(i64::try_from(token.get()).expect("a column held it") > last, "{token} is not above {last}");
    assert_eq!(oracle.row("held").await.and_then(|row| row.claim), Some(held.id.to_string()));
}

#[tokio::test]
async fn rows_used_within_a_day_stay() {
    let place = Place::new();
    let mut oracle = place.oracle().await;
    let backend = place.backend().await;
    let (recent, old) = (claim("recent"), claim("old"));
    for claim in [&recent, &old] {
        granted(&backend, claim).await;
        backend.release(claim).await.expect("release");
    }
    backend.close().await;
    oracle
        .execute(
            "UPDATE leasehold_locks SET expires = expires - 86000000000;
             UPDATE leasehold_locks SET expires = expires - 1000000000 WHERE name = CAST('old' AS BLOB);
             UPDATE leasehold_schema SET swept = 9000000000000000",
        )
        .await;
    let backend = place.backend().await;
    granted(&backend, &claim("other")).await;
    until_none(&mut oracle, "SELECT count(*) FROM leasehold_locks WHERE name = CAST('old' AS BLOB)").await;
    assert!(oracle.row("recent").await.is_some());
}

#[tokio::test]
async fn more_rows_than_a_page_go_and_the_held_ones_among_them_stay() {
    let place = Place::new();
    let mut oracle = place.oracle().await;
    let backend = place.backend().await;
    let held = claim("name500");
    granted(&backend, &held).await;
    backend.close().await;
    oracle
        .execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
             INSERT INTO leasehold_locks (namespace, family, name, slot, token, expires)
             SELECT x'', 'lock', CAST('name' || i AS BLOB), 0, 1000 + i, 1 FROM n WHERE i <> 500;
             UPDATE leasehold_schema SET swept = 0",
        )
        .await;
    let backend = place.backend().await;
    granted(&backend, &claim("other")).await;
    until_none(&mut oracle, "SELECT count(*) FROM leasehold_locks WHERE claim IS NULL").await;
    assert_eq!(oracle.row("name500").await.and_then(|row| row.claim), Some(held.id.to_string()));
    assert_eq!(oracle.number("SELECT floor FROM leasehold_schema").await, 2999);
}

#[tokio::test]
async fn a_sweep_is_not_repeated_within_the_hour() {
    let place = Place::new();
    let mut oracle = place.oracle().await;
    let backend = place.backend().await;
    granted(&backend, &claim("other")).await;
    until_none(&mut oracle, "SELECT count(*) FROM leasehold_schema WHERE swept = 0").await;
    backend.close().await;
    let swept = oracle.number("SELECT swept FROM leasehold_schema").await;
    for _ in 0..3 {
        let backend = place.backend().await;
        let claim = claim("other2");
        assert!(granted(&backend, &claim).await.token > FencingToken::ZERO);
        backend.release(&claim).await.expect("release");
        backend.close().await;
    }
    assert_eq!(oracle.number("SELECT swept FROM leasehold_schema").await, swept);
}
