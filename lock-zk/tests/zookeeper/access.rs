//! Chroots, users and access lists.

use std::time::Duration;

use conformance_tests::{Oracle as _, Outcome};
use lock_core::{BackendErrorKind, ErrorKind, LockClient};
use lock_zk::{ZkBackend, ZkConfig};
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Permission};

use crate::{
    key,
    support::{Nodes, ZooKeeper},
};

async fn connect(config: &ZkConfig) -> Outcome<LockClient> {
    Ok(LockClient::builder(ZkBackend::connect(config).await?).build()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chroot_must_exist_and_keeps_names_apart() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let config = ZkConfig::new(zookeeper.hosts());
    let error = ZkBackend::connect(&config.clone().chroot("/apps/shop")).await.expect_err("no such node");
    assert_eq!(error.kind(), BackendErrorKind::Config);
    assert!(error.to_string().contains("the chroot /apps/shop does not exist; create it"), "{error}");

    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    nodes.create("/apps", CreateMode::Persistent).await.expect("made");
    nodes.create("/apps/shop", CreateMode::Persistent).await.expect("made");
    let (inside, outside) = (connect(&config.clone().chroot("/apps/shop")).await?, connect(&config).await?);
    let guard = inside.lock("x").acquire().await?;
    outside.lock("x").acquire().await?.release().await?;
    let directory = format!("/apps/shop{}", Nodes::directory(&key("x")));
    assert_eq!(nodes.line(&directory).await.expect("a list").len(), 1);
    guard.release().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_is_unavailable_soon_and_bad_servers_are_errors_of_the_configuration() -> Outcome {
    let nobody = conformance_tests::free_address()?;
    let config = ZkConfig::new(nobody.to_string()).credentials("user", "hunter2");
    let error = ZkBackend::connect(&config).await.expect_err("nobody listens");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains(&nobody.to_string()) && !error.to_string().contains("hunter2"), "{error}");

    // One that takes connections and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let config = ZkConfig::new(silent.local_addr()?.to_string()).connect_timeout(Duration::from_millis(300));
    let error = ZkBackend::connect(&config).await.expect_err("silent");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    let error = ZkBackend::connect(&ZkConfig::new("zk1:port")).await.expect_err("no port");
    assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_locks_are_refused_to_others_and_no_password_is_shown() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let config = ZkConfig::new(zookeeper.hosts());
    let alice = connect(&config.clone().credentials("alice", "hunter2")).await?;
    let guard = alice.lock("x").acquire().await?;
    // The same user again, for who has her password.
    let again = connect(&config.clone().credentials("alice", "hunter2")).await?;
    assert!(again.lock("x").try_acquire().await?.is_none());
    assert_eq!(again.inspect("").await?.len(), 1);

    for stranger in
        [config.clone(), config.clone().credentials("alice", "hunter3"), config.clone().credentials("bob", "hunter2")]
    {
        let client = connect(&stranger).await?;
        let failures = [
            client.lock("x").try_acquire().await.map(drop).expect_err("not hers"),
            client.lock("x").acquire().await.map(drop).expect_err("not hers"),
            client.inspect("").await.map(drop).expect_err("not hers"),
            client.break_lock("x", None).await.map(drop).expect_err("not hers"),
        ];
        for error in failures {
            assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
            assert!(error.to_string().contains("access lists"), "{error}");
            assert!(!format!("{error}{error:?}{stranger:?}{client:?}").contains("hunter"), "{error:?}");
        }
    }
    assert!(guard.is_held());
    guard.release().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chroot_that_may_only_be_read_is_refused_and_left_as_it_was() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let admin =
        Client::connector().with_auth("digest", b"admin:secret").connect(zookeeper.hosts()).await.expect("connects");
    let acls = [Acl::new(Permission::ALL, AuthId::authed()), Acl::new(Permission::READ, AuthId::anyone())];
    admin.create("/closed", b"", &CreateMode::Persistent.with_acls(Acls::new(&acls))).await.expect("made");
    let client = connect(&ZkConfig::new(zookeeper.hosts()).chroot("/closed")).await?;
    for waits in [true, false] {
        let lock = client.lock("x");
        let result = if waits { lock.acquire().await.map(Some) } else { lock.try_acquire().await };
        assert_eq!(result.map(drop).expect_err("no permission").kind(), ErrorKind::Backend);
    }
    assert!(client.inspect("").await?.is_empty());
    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    assert!(nodes.children("/closed").await.expect("a list").is_empty());
    assert_eq!(nodes.claims(&key("x").namespace).await?, 0);
    Ok(())
}
