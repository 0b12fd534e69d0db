//! Connections that are cut while a claim is created, listed, watched or removed.

use std::time::Duration;

use conformance_tests::{Oracle as _, Outcome, Proxy, Weather};
use lock_core::{ErrorKind, LockGuard};

use crate::{
    NOISE, client, eventually, key,
    support::{Nodes, ZooKeeper},
};

const SESSION: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_answer_is_lost_is_found_again_and_not_made_twice() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let proxy = Proxy::before(zookeeper.hosts().parse().expect("an address")).await?;
    let client = client(&proxy.address().to_string(), SESSION).await?;
    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    client.lock("x").acquire().await?.release().await?;
    for _ in 0..5 {
        proxy.set(Weather::EatAnswer);
        let acquiring = tokio::spawn(client.lock("x").wait(SESSION).acquire());
        eventually("the server has applied it", NOISE, async || {
            nodes.claims(&key("x").namespace).await.is_ok_and(|claims| claims > 0)
        })
        .await;
        proxy.set(Weather::Fair);
        let guard: LockGuard = tokio::time::timeout(NOISE * 3, acquiring).await.expect("goes on")??;
        let line = nodes.line(&Nodes::directory(&key("x"))).await.expect("a list");
        assert_eq!(
            line.iter().map(|node| node.claim).collect::<Vec<_>>(),
            [guard.claim_id()],
            "one node, and the guard's"
        );
        guard.release().await?;
        assert_eq!(nodes.claims(&key("x").namespace).await?, 0);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_answer_is_lost_is_repeated_until_it_is_confirmed() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let proxy = Proxy::before(zookeeper.hosts().parse().expect("an address")).await?;
    let client = client(&proxy.address().to_string(), SESSION).await?;
    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    for _ in 0..5 {
        let guard = client.lock("x").wait(NOISE).acquire().await?;
        proxy.set(Weather::EatAnswer);
        let releasing = tokio::spawn(guard.release());
        eventually("the server has applied it", NOISE, async || {
            nodes.claims(&key("x").namespace).await.is_ok_and(|claims| claims == 0)
        })
        .await;
        proxy.set(Weather::Fair);
        tokio::time::timeout(NOISE * 3, releasing).await.expect("goes on")??;
    }
    Ok(())
}

/// Fifty cuts at random moments of many acquisitions, seeded.
#[tokio::test(flavor = "multi_thread")]
async fn cuts_at_random_moments_leave_no_node_and_no_stuck_waiter() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let proxy = Proxy::before(zookeeper.hosts().parse().expect("an address")).await?;
    let through = proxy.address().to_string();
    let mut workers = tokio::task::JoinSet::new();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    for worker in 0..4 {
        let client = client(&through, SESSION).await?;
        let stopped = stopped.clone();
        workers.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(worker);
            let mut held = 0_u32;
            while !*stopped.borrow() {
                match client.lock("x").wait(Duration::from_millis(rng.u64(1..2_000))).acquire().await {
                    Ok(guard) => {
                        held += 1;
                        tokio::time::sleep(Duration::from_millis(rng.u64(..5))).await;
                        // Whether the answer came or not, the claim must go.
                        let _ = guard.release().await;
                    }
                    Err(error) => {
                        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable), "{error}");
                    }
                }
            }
            (client, held)
        });
    }
    let mut rng = fastrand::Rng::with_seed(7);
    for round in 0..50 {
        // Time enough to connect again now and then.
        tokio::time::sleep(Duration::from_millis(rng.u64(1..500))).await;
        if round % 5 == 0 {
            // Its connections are cut by themselves once an answer was eaten.
            proxy.set(Weather::EatAnswer);
            tokio::time::sleep(Duration::from_millis(rng.u64(1..150))).await;
            proxy.set(Weather::Fair);
        }
        proxy.cut();
    }
    stop.send_replace(true);
    let mut clients = Vec::new();
    while let Some(ended) = workers.join_next().await {
        let (client, held) = ended?;
        assert!(held > 0, "nobody was served");
        clients.push(client);
    }
    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    eventually("no node is left while the sessions live", NOISE * 3, async || {
        nodes.claims(&key("x").namespace).await.is_ok_and(|claims| claims == 0)
    })
    .await;
    clients[0].lock("x").wait(NOISE).acquire().await?.release().await?;
    Ok(())
}
