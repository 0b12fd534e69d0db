//! TLS, with a certificate made for the test.

use std::{path::Path, process::Command};

use conformance_tests::PrivateServer;
use lock_core::{Backend as _, BackendErrorKind};
use lock_redis::{RedisBackend, RedisConfig};
use tempfile::TempDir;

use crate::{busy, claim, granted, waiting};

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    let output = output.expect("openssl is installed");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server that speaks TLS alone, and the directory that has `ca.pem`, which signed its certificate.
fn server() -> (PrivateServer, TempDir) {
    let keys = tempfile::tempdir().expect("a directory");
    let at = keys.path();
    openssl(
        at,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
    );
    openssl(
        at,
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=server",
    );
    std::fs::write(at.join("names"), "subjectAltName=IP:127.0.0.1").expect("the directory is there");
    openssl(
        at,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    );
    let directory = at.to_owned();
    let recipe = Box::new(move |data: &Path, address: std::net::SocketAddr| {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--tls-port", &address.port().to_string(), "--bind", "127.0.0.1"]);
        command.arg("--dir").arg(data).args(["--save", "", "--tls-auth-clients", "no"]);
        for (option, file) in
            [("--tls-cert-file", "server.pem"), ("--tls-key-file", "server.key"), ("--tls-ca-cert-file", "ca.pem")]
        {
            command.arg(option).arg(directory.join(file));
        }
        command
    });
    let ready = Box::new(|address| std::net::TcpStream::connect(address).is_ok());
    (PrivateServer::start(recipe, ready).expect("redis-server starts with TLS"), keys)
}

#[tokio::test]
async fn a_server_whose_certificate_is_trusted_is_reached_by_tls_and_no_other() {
    let (server, keys) = server();
    let url = format!("rediss://{}", server.address());
    let config = RedisConfig::from_url(&url).expect("a URL").tls_ca(keys.path().join("ca.pem")).expect("TLS");
    let (backend, held) = (RedisBackend::connect(&config).await.unwrap_or_else(|error| panic!("{error}")), claim("x"));
    granted(&backend, &held).await;
    let waiting = busy(&backend, &waiting("x")).await;
    backend.release(&held).await.expect("held");
    tokio::time::timeout(crate::NOISE, waiting.changed).await.expect("woken");

    // Neither the system's roots nor those of someone else have signed it.
    openssl(
        keys.path(),
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout b.key -out b.pem -days 2 -subj /CN=b",
    );
    let strangers = RedisConfig::from_url(&url).expect("a URL").tls_ca(keys.path().join("b.pem")).expect("TLS");
    let error = RedisBackend::connect(&strangers).await.expect_err("not trusted");
    assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    assert!(error.to_string().contains("is not trusted"), "{error}");
    // A name that the certificate does not have.
    let other = RedisConfig::from_url(&url.replace("127.0.0.1", "localhost")).expect("a URL");
    let other = other.tls_ca(keys.path().join("ca.pem")).expect("TLS");
    let error = RedisBackend::connect(&other).await.expect_err("not its name");
    assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    let plain = RedisConfig::from_url(&url.replace("rediss", "redis")).expect("a URL");
    RedisBackend::connect(&plain).await.expect_err("it speaks TLS alone");
}

#[tokio::test]
async fn roots_that_cannot_be_read_are_an_error_of_the_configuration() {
    let keys = tempfile::tempdir().expect("a directory");
    let empty = keys.path().join("empty.pem");
    std::fs::write(&empty, "nothing").expect("the directory is there");
    for file in [empty, keys.path().join("missing.pem"), keys.path().to_owned()] {
        let config = RedisConfig::from_url("rediss://127.0.0.1:1").expect("a URL").tls_ca(&file).expect("TLS");
        let error = RedisBackend::connect(&config).await.expect_err("no roots");
        assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
        assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
    }
}
