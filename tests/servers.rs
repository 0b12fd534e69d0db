//! Database servers in URLs: what is read, what is refused, and never a password in what is told.
#![cfg(all(feature = "postgres", feature = "mysql"))]

use leasehold::{Config, ErrorKind};

const PASSWORD: &str = "s3cr3t-w0rd";

#[test]
fn a_server_is_named_with_its_options() {
    let options = "namespace=shop&table=locks&max_connections=3";
    for url in [
        format!("postgres://u:{PASSWORD}@db:5433/shop?{options}&listen=off&sslmode=require"),
        format!("postgresql://u:{PASSWORD}@db/shop?{options}&host=/run/postgresql"),
        format!("mysql://u:{PASSWORD}@db/shop?{options}&ssl-mode=REQUIRED"),
        format!("mariadb://u:{PASSWORD}@db/shop?{options}&socket=/run/mysqld/mysqld.sock"),
    ] {
        let config = Config::from_url(&url).expect("a good URL");
        assert_eq!(config.namespace(), Some("shop"));
        let shown = format!("{config:?}");
        assert!(!shown.contains(PASSWORD) && shown.contains("db"), "{shown}");
    }
}

#[test]
fn what_is_wrong_is_told_without_the_password() {
    for (rest, told) in [
        ("", "names no database"),
        ("/", "names no database"),
        ("/shop?listen=maybe", "neither on nor off"),
        ("/shop?max_connections=0", "whole numbers from 1"),
        ("/shop?max_page_count=1", "the known ones are"),
        ("/shop?table=a&table=b", "given twice"),
        ("/shop?sslmode=require&sslmode=disable", "given twice"),
    ] {
        let error = Config::from_url(&format!("postgres://u:{PASSWORD}@db{rest}")).expect_err(rest);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(told) && !error.to_string().contains(PASSWORD), "{error}");
    }
}

#[tokio::test]
async fn what_the_driver_refuses_is_told_without_the_password() {
    for rest in ["db/shop?sslmode=sometimes", "db/shop?table=a-b", "db:x/shop"] {
        let error = leasehold::connect(&format!("postgres://u:{PASSWORD}@{rest}")).await.expect_err(rest);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    }
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://u:{PASSWORD}@127.0.0.1:1/shop");
        let error = leasehold::connect(&url).await.expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    }
}
