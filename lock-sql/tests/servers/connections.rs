//! Connections: one is enough, a dropped call spoils none, and an ended one is no loss.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use lock_core::{Backend as _, LockClient, Selector};
use lock_sql::SqlBackend;

use crate::{LEASE, claim, db::Db, granted};

super::on_both!(
    one_connection_serves_a_holder_and_its_waiters,
    calls_dropped_at_any_poll_spoil_no_connection,
    ended_sessions_are_no_loss_and_waiters_are_served,
    a_restart_is_no_loss_and_waiters_are_served,
    a_closed_backend_leaves_no_session,
);

async fn client(db: &Db, connections: u32, lease: Duration) -> LockClient {
    let backend = SqlBackend::server(&db.config().max_connections(connections)).await.expect("the server takes us");
    LockClient::builder(backend).lease(lease).build().expect("a client")
}

async fn one_connection_serves_a_holder_and_its_waiters(db: &Db) {
    let client = client(db, 1, LEASE).await;
    let guard = client.lock("job").acquire().await.expect("free");
    // Who is served first is not said: each gives the lock on.
    let one = |name: String| {
        let acquire = client.lock(name).acquire();
        tokio::spawn(async move { acquire.await?.release().await })
    };
    let waiters: Vec<_> = (0..20).map(|_| one("job".to_owned())).collect();
    let others: Vec<_> = (0..20).map(|i| one(format!("other{i}"))).collect();
    for other in others {
        other.await.expect("no panic").expect("others are free");
    }
    guard.release().await.expect("the release has a connection");
    for waiter in waiters {
        tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic").expect("granted");
    }
}

/// Polls a future so often, with a moment after each poll, and drops it.
async fn poll_and_drop<F: Future>(future: F, polls: usize) {
    let mut future = pin!(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

async fn calls_dropped_at_any_poll_spoil_no_connection(db: &Db) {
    let backend = SqlBackend::server(&db.config().max_connections(2)).await.expect("the server takes us");
    for polls in 0..30 {
        let (held, dropped) = (claim("held"), claim("dropped"));
        let token = granted(&backend, &held).await.token;
        poll_and_drop(backend.extend(&held, LEASE * 2), polls).await;
        poll_and_drop(backend.inspect(&Selector::prefix("")), polls).await;
        poll_and_drop(backend.attempt(&dropped), polls).await;
        poll_and_drop(backend.release(&dropped), polls).await;
        // Each answer is that of its own question.
        let records = backend.inspect(&Selector::name("held")).await.expect("inspect");
        assert_eq!(records.len(), 1, "{polls} polls");
        assert_eq!((records[0].holders[0].claim, records[0].holders[0].token), (held.id, token), "{polls} polls");
        poll_and_drop(backend.release(&held), polls).await;
        backend.release(&held).await.expect("release");
        backend.release(&dropped).await.expect("release");
        // What was dropped may still be applied once, and then belongs to nobody.
        let left = async {
            while !backend.inspect(&Selector::prefix("")).await.expect("inspect").is_empty() {
                backend.release(&held).await.expect("release");
                backend.release(&dropped).await.expect("release");
            }
        };
        tokio::time::timeout(LEASE, left).await.expect("nothing is left");
    }
}

async fn ended_sessions_are_no_loss_and_waiters_are_served(db: &Db) {
    let (holder, other) = (client(db, 4, Duration::from_secs(6)).await, client(db, 4, LEASE).await);
    let mut admin = db.admin().await;
    let guard = holder.lock("mine").acquire().await.expect("free");
    for _ in 0..3 {
        let theirs = other.lock("job").acquire().await.expect("free");
        let waiter = tokio::spawn(holder.lock("job").wait(LEASE).acquire());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(admin.end_sessions().await > 0);
        tokio::time::sleep(Duration::from_millis(300)).await;
        theirs.release().await.expect("the release outlives its session");
        let served = tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic");
        served.expect("granted").release().await.expect("release");
        assert!(guard.is_held());
    }
    guard.extend(LEASE).await.expect("still its own");
    guard.release().await.expect("release");
}

async fn a_restart_is_no_loss_and_waiters_are_served(db: &Db) {
    let client = client(db, 4, LEASE).await;
    let guard = client.lock("job").acquire().await.expect("free");
    let waiter = tokio::spawn(client.lock("job").wait(LEASE * 2).acquire());
    tokio::time::sleep(Duration::from_millis(300)).await;
    db.restart();
    assert!(guard.is_held());
    guard.extend(LEASE).await.expect("the server kept the claim");
    guard.release().await.expect("release");
    let served = tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic");
    served.expect("granted").release().await.expect("release");
}

async fn a_closed_backend_leaves_no_session(db: &Db) {
    let client = client(db, 4, LEASE).await;
    let guard = client.lock("job").acquire().await.expect("free");
    let waiters: Vec<_> = (0..4).map(|_| tokio::spawn(client.lock("job").wait(LEASE).acquire())).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.close().await.expect("closed");
    for waiter in waiters {
        assert!(waiter.await.expect("no panic").is_err());
    }
    drop((guard, client));
    let mut admin = db.admin().await;
    let sessions = match db {
        Db::Postgres(_) => "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
        Db::Mysql(_) => "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'leasehold'",
    };
    let ended = async {
        while admin.number(sessions).await > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("the sessions end");
}

/// One more on PostgreSQL alone: the listener comes back by itself, and then wakes as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_was_cut_listens_again() {
    let db = crate::db::postgres(&[]);
    let (waits, other) = (client(&db, 2, LEASE).await, Arc::new(client(&db, 2, LEASE).await));
    let mut admin = db.admin().await;
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    for round in 0..3 {
        let theirs = other.lock("job").acquire().await.expect("free");
        let waiter = tokio::spawn(waits.lock("job").acquire());
        let listens = async {
            while admin.number(listening).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), listens).await.expect("it listens");
        if round < 2 {
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").await;
            theirs.release().await.expect("release");
            waiter.await.expect("no panic").expect("granted").release().await.expect("release");
            continue;
        }
        // Until the waiter has noted itself after the last cut.
        let noted = async {
            while admin.number("SELECT count(*) FROM leasehold_locks WHERE waited AND claim IS NOT NULL").await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), noted).await.expect("it waits");
        theirs.release().await.expect("release");
        // Far below the five seconds after which it would ask by itself.
        let served = tokio::time::timeout(Duration::from_secs(3), waiter).await.expect("woken").expect("no panic");
        served.expect("granted").release().await.expect("release");
    }
}
