//! Logins and databases.

use lock_core::{Backend as _, BackendErrorKind, ErrorKind, LockClient};
use lock_redis::{RedisBackend, RedisConfig};

use crate::{Place, busy, claim, connect, granted, support::server::Keeps};

async fn refused(url: &str) -> lock_core::BackendError {
    let config = RedisConfig::from_url(url).expect("a URL");
    RedisBackend::connect(&config).await.expect_err("refused")
}

#[tokio::test]
async fn a_wrong_or_missing_login_is_an_error_of_the_configuration() {
    let place = Place::new().await;
    place.tell(&["ACL", "SETUSER", "app", "on", ">p@ss:/ word", "~leasehold/*", "&leasehold/*", "+@all"]).await;
    place.tell(&["CONFIG", "SET", "requirepass", "other"]).await;
    for login in ["", ":wrong@", "app:wrong@", "nobody:other@"] {
        let error = refused(&place.url(login)).await;
        assert_eq!(error.kind(), BackendErrorKind::Config, "{login}: {error}");
        assert!(error.to_string().contains("check the user and the password"), "{error}");
    }
    for login in [":other@", "app:p%40ss%3A%2F%20word@"] {
        let (backend, claim) = (connect(&place.url(login)).await, claim("x"));
        granted(&backend, &claim).await;
        backend.release(&claim).await.expect("held");
    }
}

#[tokio::test]
async fn a_login_that_is_withdrawn_is_told_and_one_that_comes_back_is_used() {
    let place = Place::new().await;
    place.tell(&["ACL", "SETUSER", "app", "on", ">secret", "~leasehold/*", "&leasehold/*", "+@all"]).await;
    let client = LockClient::builder(connect(&place.url("app:secret@")).await).build().expect("a client");
    let guard = client.lock("x").acquire().await.expect("free");
    // The server also cuts the connections of a user that it deletes.
    place.tell(&["ACL", "DELUSER", "app"]).await;
    let error = client.lock("y").try_acquire().await.expect_err("no such user");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    place.tell(&["ACL", "SETUSER", "app", "on", ">secret", "~leasehold/*", "&leasehold/*", "+@all"]).await;
    client.lock("y").acquire().await.expect("free").release().await.expect("held");
    guard.release().await.expect("held all the time");
}

#[tokio::test]
async fn databases_do_not_meet_and_one_that_is_missing_is_an_error_of_the_configuration() {
    let place = Place::with(Keeps::Nothing, &["--databases", "4"]).await;
    let (first, last) = (connect(&place.url("")).await, connect(&format!("{}/3", place.url(""))).await);
    granted(&first, &claim("x")).await;
    granted(&last, &claim("x")).await;
    busy(&last, &claim("x")).await;
    let error = refused(&format!("{}/4", place.url(""))).await;
    assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    assert!(error.to_string().contains("check the number at the end of the URL"), "{error}");
}
