//! Fencing tokens: whole, exact, and in order also where the server forgot everything (L13).

use std::time::{SystemTime, UNIX_EPOCH};

use lock_core::{Backend as _, BackendErrorKind, Claim, FencingToken};

use crate::{Place, claim, fence, granted};

#[tokio::test]
async fn a_token_is_the_servers_time_in_microseconds_written_in_full() {
    let place = Place::new().await;
    let token = granted(&place.backend().await, &claim("x")).await.token.get();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
    assert!(u128::from(token) <= now && now - u128::from(token) < 60_000_000, "{token} at {now}");
    assert_eq!(place.tell(&["GET", &fence("x")]).await, token.to_string());
}

#[tokio::test]
async fn tokens_go_on_from_the_last_one_where_that_is_ahead_of_the_clock() {
    let place = Place::new().await;
    let backend = place.backend().await;
    let ahead = 4_000_000_000_000_000_u64;
    place.tell(&["SET", &fence("x"), &ahead.to_string()]).await;
    for step in 1..=3 {
        let claim = claim("x");
        assert_eq!(granted(&backend, &claim).await.token.get(), ahead + step);
        backend.release(&claim).await.expect("released");
    }
}

#[tokio::test]
async fn a_least_token_is_kept_to_the_last_digit_and_one_that_is_not_exact_is_refused() {
    let place = Place::new().await;
    let backend = place.backend().await;
    let most = (1_u64 << 53) - 1;
    let raised = Claim { min_token: FencingToken::new(most), ..claim("x") };
    assert_eq!(granted(&backend, &raised).await.token.get(), most);
    assert_eq!(place.tell(&["GET", &fence("x")]).await, most.to_string());
    let beyond = Claim { min_token: FencingToken::new(most + 1), ..claim("y") };
    let error = backend.attempt(&beyond).await.expect_err("not exact");
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains(&most.to_string()), "{error}");
}

#[tokio::test]
async fn tokens_increase_across_a_restart_that_lost_everything() {
    let place = Place::new().await;
    let client = place.client().await;
    let mut last = FencingToken::ZERO;
    for _ in 0..3 {
        let guard = client.lock("x").acquire().await.expect("free");
        assert!(guard.fencing_token() > last, "{} after {last}", guard.fencing_token());
        last = guard.fencing_token();
        drop(guard);
        place.server.kill();
        place.server.launch().expect("redis-server starts again");
        assert_eq!(place.tell(&["DBSIZE"]).await, "0");
    }
}
