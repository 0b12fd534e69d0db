//! Connecting by URL.

use std::time::Duration;

use leasehold::{Config, ErrorKind, FencingToken};

#[tokio::test]
async fn memory_is_one_store_in_a_process() {
    let one = leasehold::connect("memory:?namespace=one-store").await.expect("memory");
    let other = leasehold::connect("memory://?namespace=one-store").await.expect("memory");
    let elsewhere = leasehold::connect("memory:?namespace=elsewhere").await.expect("memory");
    let guard = one.lock("job").acquire().await.expect("free");
    assert!(other.lock("job").try_acquire().await.expect("memory answers").is_none());
    assert!(elsewhere.lock("job").try_acquire().await.expect("memory answers").is_some());
    guard.release().await.expect("held");
    one.close().await.expect("closes");
    assert!(other.lock("job").try_acquire().await.expect("memory answers").is_some(), "the store outlives a client");
}

#[tokio::test]
async fn the_options_reach_the_client() {
    let url = "memory:?namespace=options&lease=2s&wait=0s&fence_base=1000000";
    let client = leasehold::connect(url).await.expect("memory");
    let guard = client.lock("job").acquire().await.expect("free");
    assert!(guard.remaining() <= Duration::from_secs(2));
    assert!(guard.fencing_token() > FencingToken::new(1_000_000));
    let error = client.lock("job").acquire().await.expect_err("taken, and no time to wait");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_lease_above_the_range_is_an_error_of_the_configuration() {
    let error = leasehold::connect("memory:?lease=1000years").await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("option lease=1000years is out of range: memory gives at most"), "{error}");
    let config = Config::from_url("memory:").expect("memory").with_namespace("n".repeat(65));
    let error = leasehold::connect_config(&config).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn connecting_can_be_spawned() {
    let connecting = tokio::spawn(leasehold::connect("memory:"));
    connecting.await.expect("no panic").expect("memory");
}
