//! Sessions: what the server gives, what a lease is held by, and what a restart leaves.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use conformance_tests::{Oracle as _, Outcome, Server as _};
use lock_core::{Backend as _, LockClient, LossReason, Renew};
use lock_zk::{ZkBackend, ZkConfig};

use crate::{
    NOISE, client, key, server,
    support::{Nodes, ZooKeeper},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_server_bounds_the_session_and_longer_leases_are_held_by_renewals() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    // The server of these tests gives no more than a minute, so that two thirds of it are sure.
    let longest = Duration::from_secs(60);
    let asked = ZkConfig::new(zookeeper.hosts()).session_timeout(Duration::from_secs(3_600));
    let backend = ZkBackend::connect(&asked).await?;
    assert_eq!(backend.capabilities().crash_slack, longest * 3 / 2, "of the session that was given");
    let client = LockClient::builder(backend).lease(Duration::from_secs(3_600)).build()?;
    let guard = client.lock("x").acquire().await?;
    assert!(guard.remaining() <= longest * 2 / 3, "{:?} of what the session is sure for", guard.remaining());
    assert!(guard.remaining() + NOISE > longest * 2 / 3, "{:?} of what the session is sure for", guard.remaining());
    guard.release().await?;

    // And a short one outlives its session's guarantee many times.
    let short = Duration::from_secs(4);
    let client = crate::client(zookeeper.hosts(), short).await?;
    let (other, lease) = (crate::client(zookeeper.hosts(), short).await?, Duration::from_secs(30));
    let guard = client.lock("x").lease(lease).acquire().await?;
    let end = Instant::now() + short * 2;
    while Instant::now() < end {
        assert!(guard.is_held(), "renewed before the session's guarantee ran out");
        assert!(guard.remaining() <= short * 2 / 3);
        assert!(other.lock("x").try_acquire().await?.is_none());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    guard.release().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_below_the_session_are_ended_by_the_client() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let (session, lease) = (Duration::from_secs(30), Duration::from_millis(600));
    let (client, other) = (client(zookeeper.hosts(), session).await?, client(zookeeper.hosts(), session).await?);
    let start = Instant::now();
    let off = client.lock("x").lease(lease).renew(Renew::Off).acquire().await?;
    let max = client.lock("y").max_hold(lease).acquire().await?;
    for name in ["x", "y"] {
        // Both guards still exist, and so does their session.
        let guard = other.lock(name).wait(Duration::from_secs(10)).acquire().await?;
        assert!(start.elapsed() > lease / 2 && start.elapsed() < lease + NOISE, "had after {:?}", start.elapsed());
        guard.release().await?;
    }
    assert_eq!((off.lost().await, max.lost().await), (LossReason::Expired, LossReason::MaxHold));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_within_the_session_is_no_loss() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let (client, nodes) =
        (client(zookeeper.hosts(), Duration::from_secs(40)).await?, Nodes::of(zookeeper.hosts()).await.expect("nodes"));
    let guard = client.lock("x").acquire().await?;
    let waiter = tokio::spawn(client.lock("x").wait(Duration::from_secs(60)).acquire());
    crate::eventually("it waits", NOISE, async || nodes.waiting(&key("x")).await.is_ok_and(|waiting| waiting == 1))
        .await;
    server(&zookeeper).restart().await?;
    // Every call may have to find out first that its connection is gone.
    crate::eventually("it is extended", NOISE * 3, async || guard.extend(Duration::from_secs(40)).await.is_ok()).await;
    assert!(guard.is_held());
    let token = guard.fencing_token();
    guard.release().await?;
    let next = tokio::time::timeout(NOISE * 3, waiter).await.expect("the watch outlived the restart")??;
    assert!(next.fencing_token() > token);
    next.release().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_beyond_the_session_loses_its_claims_and_the_client_goes_on() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let session = Duration::from_secs(1);
    let backend = Arc::new(ZkBackend::connect(&ZkConfig::new(zookeeper.hosts()).session_timeout(session)).await?);
    let first = backend.session_id();
    let client = LockClient::builder(Arc::clone(&backend)).lease(session).build()?;
    let guard = client.lock("x").acquire().await?;
    let server = server(&zookeeper);
    server.kill();
    let reason = tokio::time::timeout(session + NOISE, guard.lost()).await.expect("told by our own clock");
    assert_eq!(reason, LossReason::Expired);
    // By now the client has given the session up, whatever the server remembers of it.
    tokio::time::sleep(session * 2).await;
    server.launch()?;
    let next = client.lock("x").wait(NOISE * 5).acquire().await?;
    assert!(next.fencing_token() > guard.fencing_token());
    assert_ne!(backend.session_id(), first);
    next.release().await?;
    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    crate::eventually("nothing is left", NOISE, async || {
        nodes.claims(&key("x").namespace).await.is_ok_and(|left| left == 0)
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_sessions_lock_is_free_within_the_stated_slack() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let session = Duration::from_secs(1);
    let other = client(zookeeper.hosts(), Duration::from_secs(30)).await?;
    // A runtime that ends takes the session's keep-alive with it, and nobody closes the session: as a killed process.
    let asked = ZkConfig::new(zookeeper.hosts()).session_timeout(session);
    let slack = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let slack = runtime.block_on(async {
            let backend = ZkBackend::connect(&asked).await.expect("connects");
            let slack = backend.capabilities().crash_slack;
            let client = LockClient::builder(backend)
                .request_timeout(NOISE)
                .lease(Duration::from_secs(1))
                .build()
                .expect("a client");
            std::mem::forget(client.lock("x").acquire().await.expect("free"));
            std::mem::forget(client);
            slack
        });
        runtime.shutdown_background();
        slack
    });
    let slack = slack.join().expect("no panic");
    let start = Instant::now();
    let guard = other.lock("x").wait(Duration::from_secs(30)).acquire().await?;
    let bound = session + slack + NOISE;
    assert!(start.elapsed() < bound, "{:?} for a bound of {bound:?}", start.elapsed());
    guard.release().await?;
    Ok(())
}
