//! Members that fail: a leader that is stopped, a member that answers nothing, an endpoint where nobody is.

use std::time::Duration;

use conformance_tests::free_address;
use lock_core::{Backend as _, BackendErrorKind, Extension, Intent, LockClient, LossReason};
use lock_etcd::{EtcdBackend, EtcdConfig};

use crate::{PATIENCE, claim, granted, members::Cluster, soon, until};

const LEASE: Duration = Duration::from_secs(6);

async fn client(cluster: &Cluster) -> LockClient {
    let backend = EtcdBackend::connect(&EtcdConfig::new(cluster.endpoints())).await.expect("connected");
    LockClient::builder(backend).lease(LEASE).build().expect("a client")
}

/// The index of the member that leads now, by the word of one that is not paused.
async fn leader(cluster: &Cluster) -> usize {
    for (index, endpoint) in cluster.endpoints().iter().enumerate() {
        let Ok(mut raw) = etcd_client::Client::connect([endpoint], None).await else { continue };
        let status = raw.status().await.expect("a status");
        if status.leader() == status.header().expect("a header").member_id() {
            return index;
        }
    }
    panic!("nobody leads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_and_a_waiter_outlive_a_leader_that_is_stopped_for_longer_than_the_lease() {
    let cluster = Cluster::start().expect("three members start");
    let (holder, waiter) = (client(&cluster).await, client(&cluster).await);
    let guard = holder.lock("x").acquire().await.expect("acquired");
    let next = tokio::spawn(waiter.lock("x").wait(Duration::from_secs(60)).acquire());
    until("the waiter is in line", async || {
        holder.inspect("x").await.is_ok_and(|records| records.iter().any(|record| record.waiters == Some(1)))
    })
    .await;
    let stopped = leader(&cluster).await;
    cluster.member(stopped).pause().expect("stopped");
    // Longer than the lease: it lives by renewals that the others answer.
    tokio::time::sleep(LEASE + LEASE / 2).await;
    assert!(guard.is_held(), "the hold was lost with the leader");
    if next.is_finished() {
        panic!("a waiter ended while the lock was held: {:?}", next.await);
    }
    let token = guard.fencing_token();
    guard.release().await.expect("released by the new leader");
    let next = soon("the waiter is served", next).await.expect("no panic").expect("acquired");
    assert!(next.fencing_token() > token);
    // The old leader comes back, and what it had kept in its buffers changes nothing, where the servers are sound.
    cluster.member(stopped).resume().expect("resumed");
    tokio::time::sleep(LEASE / 2).await;
    if next.is_held() {
        assert!(holder.lock("x").try_acquire().await.expect("an answer").is_none());
        next.release().await.expect("released");
    } else {
        assert!(ends_leases_as_old_leader(&cluster).await, "the old leader ended the successor's hold");
        assert_eq!(next.lost().await, LossReason::Gone, "told by push, long before the lease ran out");
    }
}

/// Whether these servers have the fault that the capabilities name: fixed in 3.4.31 and 3.5.13.
async fn ends_leases_as_old_leader(cluster: &Cluster) -> bool {
    let mut raw = etcd_client::Client::connect(cluster.endpoints(), None).await.expect("connected");
    let version = raw.status().await.expect("a status").version().to_owned();
    let numbers: Vec<u32> = version.split(['.', '-']).filter_map(|part| part.parse().ok()).collect();
    numbers < vec![3, 4, 31] || (numbers >= vec![3, 5] && numbers < vec![3, 5, 13])
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_survive_a_leader_that_is_killed() {
    let cluster = Cluster::start().expect("three members start");
    let client = client(&cluster).await;
    let guards: Vec<_> = futures_util::future::join_all((0..20).map(|i| client.lock(format!("x{i}")).acquire())).await;
    let guards: Vec<_> = guards.into_iter().map(|guard| guard.expect("acquired")).collect();
    cluster.member(leader(&cluster).await).kill();
    tokio::time::sleep(LEASE + LEASE / 2).await;
    for guard in guards {
        assert!(guard.is_held(), "{} was lost", guard.name());
        guard.release().await.expect("released");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_endpoint_among_good_ones_is_passed_over() {
    let cluster = Cluster::start().expect("three members start");
    let wrong = free_address().expect("an address").to_string();
    // Whichever of them each client begins with.
    for _ in 0..6 {
        let config = EtcdConfig::new([wrong.clone(), cluster.endpoints()[0].clone()]);
        let backend = EtcdBackend::connect(&config).await.expect("connected");
        let held = claim("x", Intent::Try, LEASE);
        granted(&backend, &held).await;
        assert_eq!(backend.extend(&held, LEASE).await.expect("an answer"), Extension::Extended(LEASE));
        backend.release(&held).await.expect("released");
    }
    let config = EtcdConfig::new([wrong]).connect_timeout(Duration::from_secs(1));
    let error = EtcdBackend::connect(&config).await.expect_err("nobody is there");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nothing_is_granted_and_with_one_it_is_again() {
    let cluster = Cluster::start().expect("three members start");
    let backend = EtcdBackend::connect(&EtcdConfig::new(cluster.endpoints())).await.expect("connected");
    cluster.member(0).kill();
    cluster.member(1).kill();
    let held = claim("x", Intent::Wait, LEASE);
    let error = tokio::time::timeout(PATIENCE, backend.attempt(&held)).await.expect("an end").expect_err("no majority");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    let back = tokio::task::block_in_place(|| cluster.member(0).launch());
    back.expect("started again");
    until("a majority grants", async || backend.attempt(&held).await.is_ok()).await;
    granted(&backend, &held).await;
}
