//! Users and passwords, permissions, a full database, and configurations that are wrong.

use std::time::Duration;

use etcd_client::{Permission, PermissionType};
use lock_core::{Backend as _, BackendError, BackendErrorKind, Intent};
use lock_etcd::{EtcdBackend, EtcdConfig, EtcdTls};

use crate::{Stage, claim, granted, server, until};

const LEASE: Duration = Duration::from_secs(30);

/// A server whose user `shop` may use the locks, with the password `sesame`, and nothing else.
async fn guarded(stage: &Stage) {
    let mut raw = stage.raw.client();
    for user in ["root", "shop", "other"] {
        raw.user_add(user, "sesame", None).await.expect("a user");
    }
    for role in ["root", "locks"] {
        raw.role_add(role).await.expect("a role");
    }
    let locks = Permission::new(PermissionType::Readwrite, "leasehold/").with_prefix();
    raw.role_grant_permission("locks", locks).await.expect("a permission");
    raw.user_grant_role("root", "root").await.expect("granted");
    raw.user_grant_role("shop", "locks").await.expect("granted");
    raw.auth_enable().await.expect("enabled");
}

async fn refused(config: &EtcdConfig) -> BackendError {
    let error = EtcdBackend::connect(config).await.expect_err("refused");
    assert!(!format!("{error} {error:?} {config:?}").contains("sesame"), "a password is shown: {error}");
    error
}

#[tokio::test]
async fn a_user_needs_its_password_and_its_permissions() {
    let stage = Stage::new().await;
    guarded(&stage).await;
    let config = EtcdConfig::new([stage.server.address().to_string()]).connect_timeout(Duration::from_secs(3));
    let backend = EtcdBackend::connect(&config.clone().user("shop", "sesame")).await.expect("connected");
    let held = claim("x", Intent::Try, LEASE);
    granted(&backend, &held).await;
    backend.extend(&held, LEASE).await.expect("extended");
    // Users that change make every token stale: the client authenticates again.
    let root = etcd_client::ConnectOptions::new().with_user("root", "sesame");
    let mut root = etcd_client::Client::connect([stage.server.address().to_string()], Some(root)).await.expect("root");
    root.user_add("third", "sesame", None).await.expect("a user");
    backend.extend(&held, LEASE).await.expect("extended with a new token");
    backend.release(&held).await.expect("released");

    assert_eq!(refused(&config.clone().user("shop", "sesame2")).await.kind(), BackendErrorKind::Config);
    let other = EtcdBackend::connect(&config.clone().user("other", "sesame")).await.expect("may ask for a lease");
    let error = other.attempt(&claim("x", Intent::Try, LEASE)).await.expect_err("not permitted");
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("readwrite leasehold/") || error.to_string().contains("permission"), "{error}");
}

#[tokio::test]
async fn a_token_that_has_run_out_is_renewed() {
    let server = server::start(&["--auth-token-ttl", "1"]).expect("etcd starts");
    let raw = crate::Raw::connect(server.address()).await.expect("the oracle connects");
    let stage = Stage { backend: crate::connect(server.address()).await, raw, server };
    guarded(&stage).await;
    let config = EtcdConfig::new([stage.server.address().to_string()]).user("shop", "sesame");
    let backend = EtcdBackend::connect(&config).await.expect("connected");
    let held = claim("x", Intent::Try, LEASE);
    granted(&backend, &held).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    backend.extend(&held, LEASE).await.expect("extended with a new token");
    backend.release(&held).await.expect("released");
}

#[tokio::test]
async fn a_full_database_refuses_claims_and_lets_go_of_held_ones() {
    let server = server::start(&["--quota-backend-bytes", "1048576"]).expect("etcd starts");
    let raw = crate::Raw::connect(server.address()).await.expect("the oracle connects");
    let backend = crate::connect(server.address()).await;
    let held = claim("x", Intent::Try, LEASE);
    granted(&backend, &held).await;
    until("the database is full", async || raw.client().put("fill", vec![0; 200_000], None).await.is_err()).await;
    let error = backend.attempt(&claim("y", Intent::Wait, LEASE)).await.expect_err("full");
    assert_eq!(error.kind(), BackendErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("NOSPACE"), "{error}");
    backend.extend(&held, LEASE).await.expect("an extension writes nothing");
    backend.release(&held).await.expect("a release makes room");
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_told_before_anything_is_sent() {
    for endpoints in [vec![], vec!["host"], vec!["host:0"], vec!["host:port"], vec!["me:sesame@host:1"], vec![":1"]] {
        let error = refused(&EtcdConfig::new(endpoints.clone())).await;
        assert_eq!(error.kind(), BackendErrorKind::Config, "{endpoints:?}: {error}");
    }
    let config = EtcdConfig::new(["127.0.0.1:1"]).tls(EtcdTls::new().ca("/no/such/file"));
    let error = refused(&config).await;
    assert_eq!(error.kind(), BackendErrorKind::Config);
    assert!(error.to_string().contains("/no/such/file"), "{error}");
}
