//! The facade on etcd, with its feature and without.

#[cfg(not(feature = "etcd"))]
#[tokio::test]
async fn without_the_feature_the_error_names_it() {
    for scheme in ["etcd", "etcds"] {
        let url = format!("{scheme}://shop:sesame@127.0.0.1:1");
        let error = leasehold::connect(&url).await.expect_err("not compiled in");
        assert_eq!(error.kind(), leasehold::ErrorKind::Config);
        let feature = "build leasehold with its Cargo feature \"etcd\"";
        assert_eq!(error.to_string(), format!("store {scheme}: is not compiled in; {feature}"));
    }
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn a_url_is_read_to_its_end_and_nobody_there_is_unavailable() {
    let url = "etcd://shop:sesame@127.0.0.1:1,127.0.0.1:2?connect_timeout=500ms&namespace=shop";
    let error = leasehold::connect(url).await.expect_err("nobody listens there");
    assert_eq!(error.kind(), leasehold::ErrorKind::Unavailable, "{error}");
    assert!(!format!("{error} {error:?}").contains("sesame"), "{error:?}");
    for url in ["etcd://127.0.0.1:1?tls_ca=ca.pem", "etcds://127.0.0.1:1?tls_ca=/no/such/file", "etcd:127.0.0.1"] {
        let error = leasehold::connect(url).await.expect_err("wrong");
        assert_eq!(error.kind(), leasehold::ErrorKind::Config, "{error}");
    }
}
