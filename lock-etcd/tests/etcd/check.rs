//! `check`: what is told of a cluster, each warning provoked for real.

use std::time::Duration;

use conformance_tests::{assert_warns, finding, free_address};
use lock_core::{Backend as _, Finding, Level, Namespace, Usage};
use lock_etcd::{EtcdBackend, EtcdConfig};

use crate::{Stage, members::Cluster, server, support::oracle::Raw, until};

async fn findings(backend: &EtcdBackend) -> Vec<Finding> {
    let usage = Usage::new(Namespace::default(), Duration::from_secs(30));
    backend.check(&usage).await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_alone_is_a_note_and_its_version_is_judged() {
    let stage = Stage::new().await;
    let told = findings(&stage.backend).await;
    assert_eq!(finding(&told, "members").level, Level::Note);
    for rule in ["endpoints", "leader", "alarms", "election"] {
        assert_eq!(finding(&told, rule).level, Level::Good, "{told:?}");
    }
    let version = stage.raw.client().status().await.expect("a status").version().to_owned();
    assert!(finding(&told, "version").evidence.contains(&version), "{told:?}");
    let short = Usage::new(Namespace::default(), Duration::from_millis(200));
    let told = stage.backend.check(&short).await.expect("an answer");
    assert_eq!(finding(&told, "election").level, Level::Note);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_do_not_answer_are_named() {
    let cluster = Cluster::start().expect("three members start");
    let nobody = free_address().expect("a port").to_string();
    let endpoints = [cluster.endpoints(), vec![nobody.clone()]].concat();
    let backend = EtcdBackend::connect(&EtcdConfig::new(endpoints)).await.expect("connected");
    let told = findings(&backend).await;
    assert_warns(&told, "endpoints", &nobody);
    assert_eq!(finding(&told, "members").level, Level::Good, "{told:?}");
    let stopped = cluster.endpoints()[2].clone();
    cluster.member(2).kill();
    until("the rest has a leader", async || {
        findings(&backend).await.iter().any(|told| told.rule == "leader" && told.level == Level::Good)
    })
    .await;
    assert_warns(&findings(&backend).await, "endpoints", stopped.trim_start_matches("http://"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_a_warning_with_its_remedy() {
    let server = server::start(&["--quota-backend-bytes", "200000"]).expect("etcd starts");
    let backend = crate::connect(server.address()).await;
    let raw = Raw::connect(server.address()).await.expect("the oracle connects");
    let mut full = false;
    for n in 0..200 {
        full |= raw.client().put(format!("filler/{n}"), vec![b'x'; 10_000], None).await.is_err();
    }
    assert!(full, "the quota is reached");
    assert_warns(&findings(&backend).await, "alarms", "NOSPACE");
}
