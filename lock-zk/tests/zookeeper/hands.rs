//! Nodes, directories and sessions that someone removes by hand.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use conformance_tests::{Oracle as _, Outcome};
use lock_core::{Backend as _, LockClient, LossReason, Renew};
use lock_zk::{ZkBackend, ZkConfig};

use crate::{
    NOISE, client, eventually, key,
    support::{Nodes, ZooKeeper},
};

/// So long that no renewal comes within a test: what is told is told by the server.
const LONG: Duration = Duration::from_secs(45);

/// When a client takes its session back while the server is closing it, the server leaves the new connection open and
/// silent. The client gives a silent server up after 3 s, and looks every eighth of that.
const SILENCE: Duration = Duration::from_millis(3_375);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_deleted_by_hand_is_told_at_once() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let (client, nodes) = (client(zookeeper.hosts(), LONG).await?, Nodes::of(zookeeper.hosts()).await.expect("nodes"));
    for renew in [Renew::Auto, Renew::Off] {
        let guard = client.lock("x").renew(renew).acquire().await?;
        nodes.remove(&key("x")).await?;
        let reason = tokio::time::timeout(NOISE, guard.lost()).await.expect("told by push");
        assert_eq!(reason, LossReason::Gone);
        assert!(nodes.holders(&key("x")).await?.is_empty(), "nothing is made again");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_deleted_under_a_holder_and_a_waiter_is_made_again() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let (client, nodes) = (client(zookeeper.hosts(), LONG).await?, Nodes::of(zookeeper.hosts()).await.expect("nodes"));
    let guard = client.lock("x").acquire().await?;
    let waiter = || {
        let acquire = client.lock("x").wait(Duration::from_secs(30)).acquire();
        tokio::spawn(async move { acquire.await?.release().await })
    };
    let waiters = [waiter(), waiter()];
    eventually("both wait", NOISE, async || nodes.waiting(&key("x")).await.is_ok_and(|waiting| waiting == 2)).await;

    let directory = Nodes::directory(&key("x"));
    // All at once, since one after the other would serve those who wait, and then take their locks away as well.
    let by_hand = nodes.client().await.expect("a session");
    let mut deleting = by_hand.new_multi_writer();
    for node in nodes.line(&directory).await.expect("a list") {
        deleting.add_delete(&node.path, None).expect("a path");
    }
    deleting.add_delete(&directory, None).expect("a path");
    deleting.commit().await.expect("deleted");

    let reason = tokio::time::timeout(NOISE, guard.lost()).await.expect("told by push");
    assert_eq!(reason, LossReason::Gone);
    for waiter in waiters {
        tokio::time::timeout(NOISE, waiter).await.expect("served")??;
    }
    assert_eq!(nodes.claims(&key("x").namespace).await?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_closed_from_outside_is_told_and_replaced() -> Outcome {
    let zookeeper = ZooKeeper::start()?;
    let backend = Arc::new(ZkBackend::connect(&ZkConfig::new(zookeeper.hosts()).session_timeout(LONG)).await?);
    let client = LockClient::builder(Arc::clone(&backend)).lease(LONG).build()?;
    let guard = client.lock("x").acquire().await?;
    let other = crate::client(zookeeper.hosts(), LONG).await?;
    let held = other.lock("y").acquire().await?;
    let waiter = tokio::spawn(client.lock("y").wait(Duration::from_secs(30)).acquire());
    let nodes = Nodes::of(zookeeper.hosts()).await.expect("nodes");
    eventually("it waits", NOISE, async || nodes.waiting(&key("y")).await.is_ok_and(|waiting| waiting == 1)).await;

    let session = backend.session_id().expect("a session");
    let address = zookeeper.hosts().parse().expect("an address");
    tokio::task::spawn_blocking(move || close_session(address, session)).await??;

    let reason = tokio::time::timeout(SILENCE + NOISE, guard.lost()).await.expect("told by push");
    assert_eq!(reason, LossReason::Gone);
    // The same client goes on in another session, and its waiter in the line anew.
    client.lock("x").wait(NOISE).acquire().await?.release().await?;
    eventually("it waits again", NOISE, async || nodes.waiting(&key("y")).await.is_ok_and(|waiting| waiting == 1))
        .await;
    held.release().await?;
    waiter.await??.release().await?;
    assert_ne!(backend.session_id(), Some(session));
    backend.close().await;
    Ok(())
}

/// Takes a session over, as whoever knows its id can, and closes it.
///
/// Its own client takes it back as soon as it notices; so it is tried until the server knows no such session.
fn close_session(server: SocketAddr, id: i64) -> std::io::Result<()> {
    loop {
        let mut stream = TcpStream::connect(server)?;
        // Protocol version, last transaction seen, timeout, session, password, read-only.
        let begin = [&0_i32.to_be_bytes()[..], &0_i64.to_be_bytes(), &45_000_i32.to_be_bytes(), &id.to_be_bytes()];
        let connect = [&begin.concat()[..], &16_i32.to_be_bytes(), &password(id), &[0]].concat();
        // The request's number, and the code of "close session".
        let close = [1_i32.to_be_bytes(), (-11_i32).to_be_bytes()].concat();
        stream.write_all(&[framed(&connect), framed(&close)].concat())?;
        let mut answer = Vec::new();
        // The server closes the connection in any case.
        let _ = stream.read_to_end(&mut answer);
        // Its length, protocol version and timeout come before the session, which is zero for one that has ended.
        if answer.get(12..20) == Some(&[0; 8]) {
            return Ok(());
        }
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("short");
    [&length.to_be_bytes()[..], message].concat()
}

/// The password that a server gives a session: 16 bytes of Java's generator, seeded with the id and a constant.
fn password(id: i64) -> Vec<u8> {
    const MASK: u64 = (1 << 48) - 1;
    const FACTOR: u64 = 0x5_DEEC_E66D;
    let mut state = (id.cast_unsigned() ^ 0xB341_5C00 ^ FACTOR) & MASK;
    let mut bytes = Vec::new();
    for _ in 0..4 {
        state = state.wrapping_mul(FACTOR).wrapping_add(0xB) & MASK;
        bytes.extend((state >> 16).to_le_bytes().into_iter().take(4));
    }
    bytes
}
