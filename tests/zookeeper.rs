//! ZooKeeper by URL; or, without its feature, the error that names it.

#[cfg(not(feature = "zookeeper"))]
#[tokio::test]
async fn without_its_feature_the_error_names_it() {
    let error = leasehold::connect("zk://user:hunter2@127.0.0.1:2181/shop").await.expect_err("not compiled in");
    assert_eq!(error.kind(), leasehold::ErrorKind::Config);
    assert_eq!(error.to_string(), "store zk: is not compiled in; build leasehold with its Cargo feature \"zookeeper\"");
}

#[cfg(feature = "zookeeper")]
mod with_the_feature {
    use std::net::TcpListener;

    use leasehold::{Config, ErrorKind};

    #[test]
    fn bad_urls_are_errors_of_the_configuration_and_show_no_password() {
        for (url, expected) in [
            ("zk:host:2181", "write it as zk://HOST:2181"),
            ("zk://", "server \"\" is no HOST:PORT"),
            ("zk://user:hunter2@", "server \"\" is no HOST:PORT"),
            ("zk://user:hunter2@host:port", "server \"host:port\" is no HOST:PORT"),
            ("zk://hunter2@host", "a user without a password"),
            ("zk://us%3Aer:hunter2@host", "which parts it from the password"),
            ("zk://user:hunter2%zz@host", "is not percent-encoded UTF-8"),
            ("zk://user:hunter2@host/a//b", "is no path"),
            ("zk://user:hunter2@host/../b", "is no path"),
            ("zk://user:hunter2@host?max_connections=2", "unknown option \"max_connections\" of store zk:"),
            (
                "zk://user:hunter2@host?lease=1000years",
                "option lease=1000years is out of range: zookeeper gives at most",
            ),
        ] {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let error = runtime.block_on(leasehold::connect(url)).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::Config, "{url}: {error}");
            assert!(error.to_string().contains(expected), "{url}: {error}");
            assert!(!format!("{error}{error:?}").contains("hunter2"), "{error:?}");
        }
        for url in ["zk://h1:2181,h2:2181/shop", "zk://us%40er:hunter%3A2%40@[::1]:2181/a%20b/c", "ZK://h1"] {
            let config = Config::from_url(url).expect(url);
            assert!(!format!("{config:?}").contains("hunter"), "{config:?}");
        }
    }

    #[cfg(not(feature = "zookeeper-tls"))]
    #[tokio::test]
    async fn tls_needs_its_feature() {
        let error = leasehold::connect("zks://user:hunter2@127.0.0.1:2281").await.expect_err("not compiled in");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("Cargo feature \"zookeeper-tls\""), "{error}");
    }

    #[cfg(feature = "zookeeper-tls")]
    #[tokio::test]
    async fn tls_needs_an_authority_and_a_key_for_its_certificate() {
        for (options, expected) in [
            ("", "give the file of its authority as tls_ca=FILE"),
            ("?tls_ca=", "option tls_ca names no file"),
            ("?tls_ca=ca.pem&tls_cert=c.pem", "options tls_cert and tls_key go together"),
            ("?tls_ca=/no/such/file", "the TLS roots in /no/such/file cannot be read"),
        ] {
            let error =
                leasehold::connect(&format!("zks://user:hunter2@127.0.0.1:1{options}")).await.expect_err("wrong");
            assert_eq!(error.kind(), ErrorKind::Config, "{options}: {error}");
            assert!(error.to_string().contains(expected), "{options}: {error}");
            assert!(!format!("{error}{error:?}").contains("hunter2"), "{error:?}");
        }
        let plain = Config::from_url("zk://127.0.0.1:1?tls_ca=ca.pem").expect_err("a scheme without TLS");
        assert!(plain.to_string().contains("unknown option \"tls_ca\" of store zk:"), "{plain}");
    }

    #[tokio::test]
    async fn an_ensemble_that_does_not_answer_is_unavailable_in_time() {
        let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
        let silent = TcpListener::bind("127.0.0.1:0").expect("a listener");
        for address in [nobody, silent.local_addr().expect("an address")] {
            let url = format!("zk://user:hunter2@{address}?connect_timeout=300ms");
            let error = leasehold::connect(&url).await.expect_err("no server");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.is_retryable());
            assert!(error.to_string().contains(&address.to_string()), "{error}");
            assert!(!format!("{error}{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
