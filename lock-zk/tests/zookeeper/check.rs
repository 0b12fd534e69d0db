//! `check`: what is told of an ensemble, each warning provoked for real.

use std::{io, net::TcpListener, time::Duration};

use conformance_tests::{Outcome, assert_warns, finding, free_address};
use lock_core::{Backend as _, Finding, Level, LockClient, Namespace, Usage};
use lock_zk::{ZkBackend, ZkConfig};
use zookeeper_client::{Acls, Client, CreateMode};

use crate::support::ZooKeeper;

async fn findings(config: &ZkConfig, lease: Duration) -> Outcome<Vec<Finding>> {
    Ok(ZkBackend::connect(config).await?.check(&Usage::new(Namespace::default(), lease)).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_alone_is_a_note_and_the_rest_of_it_is_good() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let config = ZkConfig::new(zookeeper.hosts()).session_timeout(Duration::from_secs(10));
    let told = findings(&config, Duration::from_secs(10)).await?;
    assert!(told.iter().all(|finding| finding.level < Level::Warning), "{told:?}");
    assert_eq!(finding(&told, "ensemble").level, Level::Note);
    for rule in ["session", "servers", "read-only", "ticks", "access"] {
        assert_eq!(finding(&told, rule).level, Level::Good, "{told:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_that_do_not_fit_the_lease_are_told() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    // The server's sessions last 200 ms to a minute.
    let config = ZkConfig::new(zookeeper.hosts()).session_timeout(Duration::from_millis(100));
    let told = findings(&config, Duration::from_millis(100)).await?;
    assert_warns(&told, "ticks", "sessions of 200ms");
    assert_eq!(finding(&told, "session").level, Level::Note, "{told:?}");
    let config = ZkConfig::new(zookeeper.hosts()).session_timeout(Duration::from_secs(300));
    let told = findings(&config, Duration::from_secs(300)).await?;
    assert_eq!(finding(&told, "ticks").level, Level::Note, "{told:?}");
    assert_eq!(finding(&told, "session").level, Level::Note, "{told:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_named() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let nobody = free_address()?.to_string();
    let config = ZkConfig::new(format!("{},{nobody}", zookeeper.hosts()));
    assert_warns(&findings(&config, Duration::from_secs(10)).await?, "servers", &nobody);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_silent_are_named_in_time() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let silent: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let hosts = silent.iter().map(|one| Ok(one.local_addr()?.to_string())).collect::<io::Result<Vec<_>>>()?;
    // The one that serves comes first, so that the session is had at once.
    let all =
        ZkConfig::new(format!("{},{}", zookeeper.hosts(), hosts.join(","))).connect_timeout(Duration::from_secs(30));
    let client = LockClient::builder(ZkBackend::connect(&all).await?).build()?;
    let told = client.check().await?.findings;
    for host in hosts {
        assert_warns(&told, "servers", &host);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_anyone_may_change_are_a_warning_for_who_has_credentials() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let raw = Client::connect(zookeeper.hosts()).await.expect("connects");
    raw.create("/leasehold", b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.expect("made");
    let open = ZkConfig::new(zookeeper.hosts());
    assert_eq!(finding(&findings(&open, Duration::from_secs(10)).await?, "access").level, Level::Note);
    let alice = open.clone().credentials("alice", "hunter2");
    let told = findings(&alice, Duration::from_secs(10)).await?;
    assert_warns(&told, "access", "/leasehold");
    assert!(!format!("{told:?}").contains("hunter2"));

    let other = ZooKeeper::start()?;
    let alice = ZkConfig::new(other.hosts()).credentials("alice", "hunter2");
    let client = LockClient::builder(ZkBackend::connect(&alice).await?).build()?;
    client.lock("x").acquire().await?.release().await?;
    assert_eq!(finding(&findings(&alice, Duration::from_secs(10)).await?, "access").level, Level::Good);
    Ok(())
}
