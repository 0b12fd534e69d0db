//! Redis by URL; or, without its feature, the error that names it.

#[cfg(not(feature = "redis"))]
#[tokio::test]
async fn without_its_feature_the_error_names_it() {
    for scheme in ["redis", "rediss"] {
        let error = leasehold::connect(&format!("{scheme}://:s3cret@127.0.0.1:1")).await.expect_err("not compiled in");
        assert_eq!(error.kind(), leasehold::ErrorKind::Config);
        assert_eq!(
            error.to_string(),
            format!("store {scheme}: is not compiled in; build leasehold with its Cargo feature \"redis\"")
        );
    }
}

#[cfg(feature = "redis")]
mod with_the_feature {
    use std::net::TcpListener;

    use leasehold::{Config, Error, ErrorKind};

    const PASSWORD: &str = "s3cret-horse";

    async fn refused(url: &str) -> Error {
        let error = leasehold::connect(url).await.expect_err("refused");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
        error
    }

    #[tokio::test]
    async fn what_is_wrong_in_a_url_is_an_error_of_the_configuration() {
        for (url, expected) in [
            (format!("redis://:{PASSWORD}@"), "it has no host"),
            (format!("redis:{PASSWORD}"), "it has no ://"),
            (format!("redis://:{PASSWORD}@h:70000"), "its port is no number"),
            (format!("redis://:{PASSWORD}@h/db"), "not the number of a database"),
            (format!("redis://:{PASSWORD}@h?tls_ca=/x"), "unknown option \"tls_ca\" of store redis:"),
            (format!("rediss://:{PASSWORD}@h?tls_ca="), "option tls_ca names no file"),
            (format!("rediss://:{PASSWORD}@h?tls_ca=/no/such/file"), "the TLS roots in /no/such/file cannot be read"),
            (format!("redis://:{PASSWORD}@h?lease=1000years"), "redis gives at most"),
        ] {
            let error = refused(&url).await;
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_unavailable() {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
        let error = refused(&format!("redis://:{PASSWORD}@{free}/0?connect_timeout=2s")).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(&free.to_string()), "{error}");
    }

    #[test]
    fn no_debug_of_a_configuration_shows_a_password() {
        let config = Config::from_url(&format!("rediss://me:{PASSWORD}@h/1?namespace=shop")).expect("a URL");
        assert!(!format!("{config:?} {config:#?}").contains(PASSWORD));
        let text = format!("[lock]\nstore = \"redis://me:{PASSWORD}@h/1\"\nlease = \"10s\"");
        let config = Config::from_toml_str(&text).expect("TOML");
        assert!(!format!("{config:?} {config:#?}").contains(PASSWORD));
    }
}
