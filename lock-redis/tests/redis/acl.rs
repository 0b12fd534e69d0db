//! Users that may do little: what a lock needs is enough, and what it can do without is not needed.

use std::time::{Duration, Instant};

use lock_core::{Backend as _, BackendErrorKind, LockClient, Release};

use crate::{NOISE, Place, claim, connect, granted};

/// All that a lock needs.
const ENOUGH: &[&str] = &[
    "~leasehold/*",
    "&leasehold/*",
    "+evalsha",
    "+eval",
    "+ping",
    "+get",
    "+set",
    "+del",
    "+pttl",
    "+pexpire",
    "+time",
    "+publish",
    "+subscribe",
    "+unsubscribe",
    "+scan",
    "+select",
];

impl Place {
    /// A client of a user with these rights.
    async fn client_of(&self, rights: &[&str]) -> LockClient {
        let name = format!("user-{}", fastrand::u32(..));
        let create = [&["ACL", "SETUSER", &name, "on", ">secret", "resetchannels"], rights].concat();
        self.tell(&create).await;
        let backend = connect(&self.url(&format!("{name}:secret@"))).await;
        LockClient::builder(backend).safety_poll(Duration::from_millis(300)).build().expect("a client")
    }
}

fn without(right: &str) -> Vec<&'static str> {
    ENOUGH.iter().copied().filter(|&had| had != right).collect()
}

#[tokio::test]
async fn a_user_with_the_rights_that_are_documented_can_do_everything() {
    let place = Place::new().await;
    let (one, other) = (place.client_of(ENOUGH).await, place.client_of(ENOUGH).await);
    let guard = one.lock("x").acquire().await.expect("free");
    guard.extend(crate::LEASE).await.expect("held");
    assert_eq!(other.inspect("").await.expect("shown").len(), 1);
    let next = tokio::spawn(other.lock("x").acquire());
    place
        .shows("the waiter is subscribed", async |raw| {
            raw.ask::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await.is_ok_and(|channels| channels.len() == 1)
        })
        .await;
    guard.release().await.expect("held");
    next.await.expect("no panic").expect("granted").release().await.expect("held");
    // And to no other key.
    let denied = place.client_of(&["~other/*", "&leasehold/*", "+@all"]).await;
    let error = denied.lock("x").try_acquire().await.expect_err("not its keys");
    assert_eq!(error.kind(), lock_core::ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains("check its ACL"), "{error}");
}

#[tokio::test]
async fn a_release_works_where_publishing_is_forbidden() {
    let place = Place::new().await;
    for rights in [without("+publish"), without("&leasehold/*")] {
        let client = place.client_of(&rights).await;
        let waiter = place.client_of(ENOUGH).await;
        let guard = client.lock("x").acquire().await.expect("free");
        let next = tokio::spawn(waiter.lock("x").acquire());
        place
            .shows("the waiter is subscribed", async |raw| {
                raw.ask::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await.is_ok_and(|channels| channels.len() == 1)
            })
            .await;
        guard.release().await.expect("the lock goes all the same");
        // Nobody tells the waiter, which asks by itself.
        let next = tokio::time::timeout(NOISE, next).await.expect("served").expect("no panic").expect("granted");
        next.release().await.expect("held");
        client.close().await.expect("closes");
        waiter.close().await.expect("closes");
        place
            .shows("nobody is subscribed", async |raw| {
                raw.ask::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await.is_ok_and(|channels| channels.is_empty())
            })
            .await;
    }
}

#[tokio::test]
async fn a_waiter_that_may_not_subscribe_asks_now_and_then() {
    let place = Place::new().await;
    for rights in [without("+subscribe"), without("&leasehold/*")] {
        let (holder, waiter) = (place.client().await, place.client_of(&rights).await);
        let guard = holder.lock("x").acquire().await.expect("free");
        let before = place.raw.info("stats", "total_commands_processed").await.expect("an answer");
        let begun = Instant::now();
        let next = tokio::spawn(waiter.lock("x").acquire());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = place.raw.info("stats", "total_commands_processed").await.expect("an answer");
        let commands = after.parse::<u64>().expect("a number") - before.parse::<u64>().expect("a number");
        // Each question is a script of up to four commands; polls are 300 ms apart.
        let polls = u64::try_from(begun.elapsed().as_millis() / 300).expect("few") + 3;
        assert!(commands <= polls * 8 + 20, "{commands} commands while nothing happened");
        guard.release().await.expect("held");
        let next = tokio::time::timeout(NOISE, next).await.expect("served").expect("no panic").expect("granted");
        next.release().await.expect("held");
        holder.close().await.expect("closes");
    }
}

#[tokio::test]
async fn a_right_that_is_missing_is_a_refusal_that_names_the_acl() {
    let place = Place::new().await;
    for right in ["+get", "+set", "+time"] {
        place.tell(&["ACL", "DELUSER", "app"]).await;
        let create = [&["ACL", "SETUSER", "app", "on", ">secret", "resetchannels"], without(right).as_slice()].concat();
        place.tell(&create).await;
        let backend = connect(&place.url("app:secret@")).await;
        let error = backend.attempt(&claim("x")).await.expect_err("not allowed");
        assert_eq!(error.kind(), BackendErrorKind::Refused, "{right}: {error}");
        assert!(error.to_string().contains("check its ACL"), "{error}");
    }
    let (held, whole) = (claim("x"), place.backend().await);
    granted(&whole, &held).await;
    assert_eq!(whole.release(&held).await.expect("held"), Release::Removed);
}
