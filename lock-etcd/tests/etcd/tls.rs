//! TLS, with certificates made for the test and a server that speaks nothing else.

use std::{net::TcpStream, path::Path, process::Command, time::Duration};

use conformance_tests::{PrivateServer, Recipe, free_address};
use lock_core::{BackendErrorKind, LockClient};
use lock_etcd::{EtcdBackend, EtcdConfig, EtcdTls};
use tempfile::TempDir;

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    let output = output.expect("openssl is installed");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and a certificate that it signed for this machine and for clients.
fn authority(directory: &Path, name: &str) {
    const EC: &str = "ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    let ca = format!("req -x509 -newkey {EC} -keyout {name}-ca.key -out {name}-ca.pem -days 2 -subj /CN={name}");
    openssl(directory, &ca);
    openssl(directory, &format!("req -newkey {EC} -keyout {name}.key -out {name}.csr -subj /CN=client"));
    let uses = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth";
    std::fs::write(directory.join("uses"), uses).expect("the directory is there");
    let signed = format!("{name}-ca.pem -CAkey {name}-ca.key -CAcreateserial -out {name}.pem -days 2 -extfile uses");
    openssl(directory, &format!("x509 -req -in {name}.csr -CA {signed}"));
}

/// A server that asks its clients for a certificate of the authority `ours`.
fn server() -> (PrivateServer, TempDir) {
    let keys = tempfile::tempdir().expect("a directory");
    authority(keys.path(), "ours");
    authority(keys.path(), "theirs");
    let at = keys.path().to_owned();
    let peer = free_address().expect("a free port");
    let recipe: Recipe = Box::new(move |directory, client| {
        let (url, peer) = (format!("https://{client}"), format!("http://{peer}"));
        let mut command = Command::new("etcd");
        command.args(["--name", "n1", "--logger", "zap", "--log-level", "error", "--data-dir"]);
        command.arg(crate::server::data(directory));
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("n1={peer}")]);
        command.args(["--heartbeat-interval", "10", "--election-timeout", "100", "--client-cert-auth"]);
        for (option, file) in
            [("--cert-file", "ours.pem"), ("--key-file", "ours.key"), ("--trusted-ca-file", "ours-ca.pem")]
        {
            command.arg(option).arg(at.join(file));
        }
        command
    });
    let ready = Box::new(|address| TcpStream::connect(address).is_ok());
    (PrivateServer::start(recipe, ready).expect("etcd starts with TLS"), keys)
}

fn tls(keys: &TempDir, ca: &str) -> EtcdTls {
    EtcdTls::new().ca(keys.path().join(format!("{ca}-ca.pem")))
}

fn identified(tls: EtcdTls, keys: &TempDir, name: &str) -> EtcdTls {
    tls.identity(keys.path().join(format!("{name}.pem")), keys.path().join(format!("{name}.key")))
}

#[tokio::test]
async fn a_lock_is_taken_by_tls_where_both_sides_trust_each_other_and_nowhere_else() {
    let (server, keys) = server();
    let plain = EtcdConfig::new([server.address().to_string()]).connect_timeout(Duration::from_secs(10));
    let ours = plain.clone().tls(identified(tls(&keys, "ours"), &keys, "ours"));
    let client = || async {
        let backend = EtcdBackend::connect(&ours).await.unwrap_or_else(|error| panic!("{error}"));
        LockClient::builder(backend).build().expect("a client")
    };
    let (holder, other) = (client().await, client().await);
    let guard = holder.lock("x").acquire().await.expect("free");
    assert!(other.lock("x").try_acquire().await.expect("answered").is_none());
    guard.release().await.expect("held");
    other.lock("x").acquire().await.expect("free again").release().await.expect("held");

    // Whom we do not trust, who does not trust us, who shows nothing, and who speaks no TLS.
    for (what, config) in [
        ("a server of another authority", plain.clone().tls(identified(tls(&keys, "theirs"), &keys, "ours"))),
        ("a client of another authority", plain.clone().tls(identified(tls(&keys, "ours"), &keys, "theirs"))),
        ("a client without a certificate", plain.clone().tls(tls(&keys, "ours"))),
        ("no TLS", plain.clone()),
    ] {
        let error = EtcdBackend::connect(&config.connect_timeout(Duration::from_secs(3))).await.err();
        let error = error.unwrap_or_else(|| panic!("{what} is let in"));
        assert!(
            matches!(error.kind(), BackendErrorKind::Unavailable | BackendErrorKind::Config),
            "{what}: {:?} {error}",
            error.kind()
        );
    }
}
