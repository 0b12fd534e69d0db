//! Configurations: what is read, and what is refused in words that help and show no password.

use std::time::Duration;

use leasehold::{Config, Error, ErrorKind};

const PASSWORD: &str = "hunter2";

fn refused(config: Result<Config, Error>) -> String {
    let error = config.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    for shown in [error.to_string(), format!("{error:?}"), format!("{error:#?}")] {
        assert!(!shown.contains(PASSWORD), "{shown}");
    }
    error.to_string()
}

#[test]
fn a_url_and_a_table_are_read_alike() {
    let url = Config::from_url("memory:?namespace=shop&lease=30s&wait=1m%2030s&fence_base=7&connect_timeout=1s");
    let table = Config::from_toml_str(
        r#"
        [server]
        port = 8080
        [lock]
        store = "memory:"
        namespace = "shop"
        lease = "30s"
        wait = "1m 30s"
        fence_base = 7
        connect_timeout = "1s"
        "#,
    );
    let (url, table) = (url.expect("a URL"), table.expect("a table"));
    assert_eq!(format!("{url:?}"), format!("{table:?}"));
    assert_eq!(url.namespace(), Some("shop"));
    assert_eq!((url.lease(), url.wait()), (Some(Duration::from_secs(30)), Some(Duration::from_secs(90))));
    let other = url.with_namespace("x").with_lease(Duration::from_secs(1)).with_wait(Duration::ZERO);
    assert_eq!((other.namespace(), other.lease()), (Some("x"), Some(Duration::from_secs(1))));
    assert_eq!(other.wait(), Some(Duration::ZERO));
}

#[test]
fn unknown_options_are_refused_with_the_known_ones() {
    let more = if cfg!(feature = "metrics") { ", metric_group" } else { "" };
    let known =
        format!("the known ones are namespace, lease, wait, connect_timeout, request_timeout, fence_base{more}");
    let text = refused(Config::from_url("memory:?leese=30s"));
    assert_eq!(text, format!("unknown option \"leese\" of store memory:; did you mean lease? {known}"));
    let text = refused(Config::from_url(&format!("memory:?password={PASSWORD}")));
    assert!(text.contains("unknown option \"password\""), "{text}");
    let text = refused(Config::from_toml_str("[lock]\nstore = \"memory:\"\nleese = \"30s\""));
    assert_eq!(text, format!("[lock]: unknown option \"leese\" of store memory:; did you mean lease? {known}"));
    let text = refused(Config::from_url("memory:?max_connections=1"));
    assert!(text.contains("unknown option \"max_connections\""), "{text}");
}

#[test]
fn bad_values_are_refused_with_the_value_and_what_is_right() {
    for (option, expected) in [
        ("lease=soon", "write it as 500ms, 30s or 1h30m"),
        ("lease=30", "write it as 500ms, 30s or 1h30m"),
        ("lease=", "write it as 500ms, 30s or 1h30m"),
        ("lease=0s", "longer than zero"),
        ("request_timeout=0ms", "longer than zero"),
        ("connect_timeout=0s", "longer than zero"),
        ("wait=-1s", "write it as 500ms, 30s or 1h30m"),
        ("fence_base=-1", "whole numbers from 0 to 18446744073709551615 are allowed"),
        ("fence_base=18446744073709551616", "whole numbers from 0 to 18446744073709551615 are allowed"),
    ] {
        let text = refused(Config::from_url(&format!("memory:?{option}")));
        assert!(text.contains(&format!("option {option} is ")) && text.contains(expected), "{text}");
    }
    let text = refused(Config::from_url(&format!("memory:?namespace={}", "n".repeat(65))));
    assert!(text.contains("65 bytes; 0 to 64"), "{text}");
    let text = refused(Config::from_url("memory:?namespace=%zz"));
    assert!(text.contains("\"namespace\" is not percent-encoded"), "{text}");
}

#[test]
fn an_option_is_given_once() {
    let text = refused(Config::from_url("memory:?lease=1s&lease=1s"));
    assert_eq!(text, "option lease is given twice; leave one of them");
    let text = refused(Config::from_toml_str("[lock]\nstore = \"memory:?lease=1s\"\nlease = \"1s\""));
    assert_eq!(text, "[lock]: option lease is given twice; leave one of them");
}

#[test]
fn stores_that_are_not_there_are_told_with_those_that_are() {
    let text = refused(Config::from_url("mongodb://host/locks"));
    assert_eq!(
        text,
        "unknown store mongodb:; the known ones are memory:, sqlite:, redis:, rediss:, etcd:, etcds:, postgres:, mysql:, zk: and zks:"
    );
}

#[test]
fn what_is_no_url_is_told() {
    for text in ["", "locks.db", "/var/locks.db", ":memory:"] {
        assert!(refused(Config::from_url(text)).contains("is no URL; write it as memory: or sqlite:PATH"));
    }
    let text = refused(Config::from_url(&format!("shop:{PASSWORD}@host/0")));
    assert!(text.starts_with("unknown store shop:"), "{text}");
    refused(Config::from_url(&format!("//shop:{PASSWORD}@host/0")));
    assert!(refused(Config::from_url("memory:x")).contains("takes no path"));
    assert!(refused(Config::from_url("memory:#x")).contains("write it as %23"));
}

#[test]
fn toml_that_is_wrong_is_told_without_its_lines() {
    let secret = format!("store = \"mongodb://shop:{PASSWORD}@host\"");
    for (text, expected) in [
        ("x = 1".to_owned(), "no table [lock]"),
        ("lock = 1".to_owned(), "expected a URL, or a table"),
        (format!("[lock]\n{secret} oops"), "line 2"),
        (format!("[lock]\n{secret}\n{secret}"), "duplicate key"),
        (format!("[lock]\n{secret}"), "unknown store mongodb:"),
        (format!("lock = \"mongodb://shop:{PASSWORD}@host\""), "unknown store mongodb:"),
        (format!("[lock]\nstore = [\"{PASSWORD}\"]"), "key \"store\": invalid type: sequence"),
        ("[lock]\nlease = \"1s\"".to_owned(), "key \"store\" is missing"),
        ("[lock]\nstore = \"memory:\"\nlease = true".to_owned(), "key \"lease\": invalid type: boolean `true`"),
        ("[lock]\nstore = \"memory:\"\nlease = 30".to_owned(), "option lease=30 is no duration"),
    ] {
        let told = refused(Config::from_toml_str(&text));
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn other_tables_are_read_by_their_path() {
    let text = "[stores.prod]\nstore = \"memory:\"\nnamespace = \"prod\"";
    let prod = Config::from_toml_table(text, &["stores", "prod"]).expect("TOML").expect("the table");
    assert_eq!(prod.namespace(), Some("prod"));
    assert!(Config::from_toml_table(text, &["stores", "test"]).expect("TOML").is_none());
    assert!(Config::from_toml_table(text, &["lock"]).expect("TOML").is_none());
}

#[cfg(feature = "metrics")]
#[test]
fn a_metric_group_is_one_of_three() {
    for known in ["none", "prefix", "name"] {
        Config::from_url(&format!("memory:?metric_group={known}")).expect("known");
    }
    let told = refused(Config::from_url("memory:?metric_group=names"));
    assert_eq!(told, "option metric_group=names is none of none, prefix and name");
}

#[cfg(not(feature = "metrics"))]
#[test]
fn a_metric_group_needs_its_feature() {
    let told = refused(Config::from_url("memory:?metric_group=prefix"));
    assert!(told.contains("Cargo feature \"metrics\""), "{told}");
}
