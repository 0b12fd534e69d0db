//! Wake-ups: none is lost, none is kept for nothing, and a cut connection costs no lock.

use std::time::{Duration, Instant};

use lock_core::{Backend as _, Busy, Claim, LockClient, Namespace};
use lock_redis::RedisBackend;

use crate::{NOISE, Place, busy, claim, connect, granted, support::oracle::Raw, waiting};

/// The channels that someone is subscribed to.
async fn channels(raw: &Raw) -> Vec<String> {
    raw.ask(&["PUBSUB", "CHANNELS"]).await.expect("an answer")
}

impl Place {
    async fn hears_nobody(&self) {
        self.shows("nobody is subscribed", async |raw| channels(raw).await.is_empty()).await;
        self.shows("no connection is kept for it", async |raw| {
            raw.ask::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).await.is_ok_and(|list| list.trim().is_empty())
        })
        .await;
    }
}

/// The answer to one who asks once its channel is heard, so that it waits for nothing but a message.
async fn heard(place: &Place, backend: &RedisBackend, mine: &Claim) -> Busy {
    let first = busy(backend, mine).await;
    tokio::time::timeout(NOISE, first.changed).await.expect("the confirmation wakes");
    place.shows("it is subscribed", async |raw| !channels(raw).await.is_empty()).await;
    busy(backend, mine).await
}

#[tokio::test]
async fn a_release_that_races_the_subscription_is_never_missed() {
    let place = Place::new().await;
    let (holder, waiter) = (place.backend().await, place.backend().await);
    let mut rng = fastrand::Rng::with_seed(17);
    let mut woken = 0;
    for round in 0..500 {
        // Names come round, so that some rounds find the channel subscribed and others do not.
        let name = format!("x{}", rng.u8(..20));
        let held = claim(&name);
        granted(&holder, &held).await;
        let pause = Duration::from_micros(rng.u64(..800));
        let release = async {
            tokio::time::sleep(pause).await;
            holder.release(&held).await.expect("held")
        };
        let wait = async {
            let mine = waiting(&name);
            loop {
                match waiter.attempt(&mine).await.expect("an answer") {
                    lock_core::Attempt::Granted(_) => break,
                    lock_core::Attempt::Busy(busy) => {
                        woken += 1;
                        // No poll and no lease helps: only the wake-up does.
                        let changed = tokio::time::timeout(NOISE, busy.changed).await;
                        changed.unwrap_or_else(|_| panic!("the wake-up of round {round} was lost"));
                    }
                }
            }
            waiter.release(&mine).await.expect("held")
        };
        tokio::join!(release, wait);
    }
    assert!(woken > 50, "only {woken} rounds waited at all");
}

#[tokio::test]
async fn a_try_never_subscribes() {
    let place = Place::new().await;
    let backend = place.backend().await;
    granted(&backend, &claim("x")).await;
    for _ in 0..3 {
        busy(&backend, &claim("x")).await;
    }
    assert!(channels(&place.raw).await.is_empty());
    assert_eq!(place.raw.info("commandstats", "cmdstat_subscribe").await.expect("an answer"), "");
}

#[tokio::test]
async fn a_channel_is_unsubscribed_when_the_last_waiter_has_gone() {
    let place = Place::new().await;
    let backend = place.backend().await;
    for name in ["x", "y"] {
        granted(&backend, &claim(name)).await;
    }
    let first = busy(&backend, &waiting("x")).await;
    let second = busy(&backend, &waiting("x")).await;
    let other = busy(&backend, &waiting("y")).await;
    place
        .shows("both names are subscribed", async |raw| {
            let mut heard = channels(raw).await;
            heard.sort();
            heard == ["leasehold/{shop/lock/x}/free/0", "leasehold/{shop/lock/y}/free/0"]
        })
        .await;
    let subscribed: (String, u64) =
        place.raw.ask(&["PUBSUB", "NUMSUB", "leasehold/{shop/lock/x}/free/0"]).await.expect("an answer");
    assert_eq!(subscribed.1, 1, "two waiters share one subscription");
    drop((first, other));
    place.shows("one channel is left", async |raw| channels(raw).await.len() == 1).await;
    drop(second);
    place.hears_nobody().await;
    // And it begins again.
    let held = claim("z");
    granted(&backend, &held).await;
    let again = heard(&place, &backend, &waiting("z")).await;
    backend.release(&held).await.expect("held");
    tokio::time::timeout(NOISE, again.changed).await.expect("woken");
}

#[tokio::test]
async fn a_closed_or_dropped_backend_keeps_no_connection() {
    let place = Place::new().await;
    let (closed, dropped) = (place.backend().await, place.backend().await);
    granted(&closed, &claim("x")).await;
    let interests = (busy(&closed, &waiting("x")).await, busy(&dropped, &waiting("x")).await);
    closed.close().await;
    drop(dropped);
    place
        .shows("only our own connection is left", async |raw| {
            raw.info("clients", "connected_clients").await.is_ok_and(|count| count == "1")
        })
        .await;
    drop(interests);
}

#[tokio::test]
async fn a_release_in_another_namespace_or_database_wakes_nobody() {
    let place = Place::new().await;
    let (backend, elsewhere) = (place.backend().await, connect(&format!("{}/1", place.url(""))).await);
    granted(&backend, &claim("x")).await;
    let mut waiting = heard(&place, &backend, &waiting("x")).await;
    for backend in [&backend, &elsewhere] {
        let namespace = Namespace::new("other").expect("a namespace");
        let others = if std::ptr::eq(backend, &elsewhere) { claim("x") } else { Claim { namespace, ..claim("x") } };
        granted(backend, &others).await;
        backend.release(&others).await.expect("held");
    }
    // What was published before this answer has arrived before it, on a connection that keeps the order.
    let quiet = tokio::time::timeout(Duration::from_millis(300), &mut waiting.changed).await;
    assert!(quiet.is_err(), "woken by someone else's release");
}

#[tokio::test]
async fn killing_both_connections_loses_no_lock_and_no_wake_up() {
    let place = Place::new().await;
    let (holder, waiter) = (place.client().await, place.client().await);
    for _ in 0..3 {
        let guard = holder.lock("x").acquire().await.expect("free");
        let kept = waiter.lock("kept").acquire().await.expect("free");
        let next = tokio::spawn(waiter.lock("x").acquire());
        place.shows("the waiter is subscribed", async |raw| channels(raw).await.len() == 1).await;
        place.tell(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        place.tell(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        place.shows("the waiter is subscribed again", async |raw| channels(raw).await.len() == 1).await;
        let begun = Instant::now();
        guard.release().await.expect("a cut connection is no loss");
        let next = tokio::time::timeout(NOISE, next).await.expect("served").expect("no panic").expect("granted");
        assert!(begun.elapsed() < Duration::from_secs(2), "served by a poll after {:?}", begun.elapsed());
        assert!(kept.is_held());
        kept.extend(crate::LEASE).await.expect("held");
        next.release().await.expect("held");
        kept.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_cut_wakes_who_waits_once_and_they_are_heard_again_after_it() {
    let place = Place::new().await;
    let (holder, waiter) = (place.backend().await, place.backend().await);
    let held = claim("x");
    granted(&holder, &held).await;
    let (mine, begun) = (waiting("x"), Instant::now());
    let cut = heard(&place, &waiter, &mine).await;
    place.tell(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    tokio::time::timeout(NOISE, cut.changed).await.expect("a cut wakes");
    // It asks again, and what it is given then is woken by the confirmation or by the release.
    let mut again = busy(&waiter, &mine).await;
    place.shows("it is subscribed again", async |raw| channels(raw).await.len() == 1).await;
    while tokio::time::timeout(Duration::from_millis(300), &mut again.changed).await.is_ok() {
        again = busy(&waiter, &mine).await;
    }
    holder.release(&held).await.expect("held");
    tokio::time::timeout(NOISE, again.changed).await.expect("a release wakes");
    granted(&waiter, &mine).await;
    assert!(begun.elapsed() < crate::LEASE, "no lease has helped");
}

#[tokio::test]
async fn a_thousand_waiters_cost_a_bounded_number_of_commands() {
    let place = Place::new().await;
    let client = LockClient::builder(place.backend().await).build().expect("a client");
    let guard = place.client().await.lock("x").acquire().await.expect("free");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let lock = client.lock("x");
        tasks.spawn(async move { lock.acquire().await.expect("granted").release().await.expect("held") });
    }
    place.shows("the head is subscribed", async |raw| channels(raw).await.len() == 1).await;
    let count = async |command: &str| {
        let stats = place.raw.info("commandstats", &format!("cmdstat_{command}")).await.expect("an answer");
        let calls = stats.strip_prefix("calls=").and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
        calls.unwrap_or_default()
    };
    let before = count("evalsha").await;
    guard.release().await.expect("held");
    assert_eq!(tasks.join_all().await.len(), 1_000);
    let scripts = count("evalsha").await - before;
    assert!(scripts <= 4_000, "{scripts} scripts for a thousand hand-overs");
    assert!(count("subscribe").await <= 10);
}
