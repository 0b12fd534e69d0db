//! TLS, with certificates made for the test and a server that speaks nothing else.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use conformance_tests::{PrivateServer, Recipe, finding};
use lock_core::{BackendErrorKind, Level, LockClient};
use lock_zk::{ZkBackend, ZkConfig, ZkTls};
use tempfile::TempDir;

/// What the server needs of Netty, which speaks TLS for it.
const NETTY: [&str; 6] =
    ["netty-buffer", "netty-codec", "netty-common", "netty-handler", "netty-resolver", "netty-transport"];

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    let output = output.expect("openssl is installed");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and a certificate that it signed for this machine. The server reads certificate and key from one file.
fn authority(directory: &Path, name: &str) {
    const EC: &str = "ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(
        directory,
        &format!("req -x509 -newkey {EC} -keyout {name}-ca.key -out {name}-ca.pem -days 2 -subj /CN={name}"),
    );
    openssl(directory, &format!("req -newkey {EC} -keyout {name}.key -out {name}.csr -subj /CN=127.0.0.1"));
    std::fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1").expect("the directory is there");
    let signed = format!("{name}-ca.pem -CAkey {name}-ca.key -CAcreateserial -out {name}.pem -days 2 -extfile names");
    openssl(directory, &format!("x509 -req -in {name}.csr -CA {signed}"));
    let (certificate, key) = (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
    let both = [std::fs::read(certificate).expect("made"), std::fs::read(key).expect("made")].concat();
    std::fs::write(directory.join(format!("{name}-both.pem")), both).expect("the directory is there");
}

/// A server that asks its clients for a certificate of the authority `ours`.
fn server() -> (PrivateServer, TempDir) {
    let keys = tempfile::tempdir().expect("a directory");
    authority(keys.path(), "ours");
    authority(keys.path(), "theirs");
    let at = keys.path().to_owned();
    let recipe: Recipe = Box::new(move |directory: &Path, address: SocketAddr| {
        let config = directory.join("zoo.cfg");
        let text = format!(
            "tickTime=100\nminSessionTimeout=200\nmaxSessionTimeout=60000\ndataDir={}\nsecureClientPort={}\n\
             secureClientPortAddress={}\nadmin.enableServer=false\n\
             serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\nssl.clientAuth=need\n\
             ssl.keyStore.location={keys}/ours-both.pem\nssl.trustStore.location={keys}/ours-ca.pem\n",
            directory.join("data").display(),
            address.port(),
            address.ip(),
            keys = at.display(),
        );
        // A start that finds no configuration says so by itself.
        let _ = std::fs::write(&config, text);
        let jars: Vec<_> = ["zookeeper", "slf4j-simple"].into_iter().chain(NETTY).collect();
        let jars: Vec<_> = jars.iter().map(|jar| format!("/usr/share/java/{jar}.jar")).collect();
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no"]);
        command.args(["-cp", &jars.join(":"), "org.apache.zookeeper.server.ZooKeeperServerMain"]).arg(config);
        command
    });
    let ready = Box::new(|address| std::net::TcpStream::connect(address).is_ok());
    (PrivateServer::start(recipe, ready).expect("ZooKeeper starts with TLS"), keys)
}

fn tls(keys: &TempDir, ca: &str, identity: &str) -> ZkTls {
    let file = |name: String| keys.path().join(name);
    ZkTls::new(file(format!("{ca}-ca.pem"))).identity(file(format!("{identity}.pem")), file(format!("{identity}.key")))
}

#[tokio::test]
async fn a_lock_is_taken_by_tls_where_both_sides_trust_each_other_and_nowhere_else() {
    let (server, keys) = server();
    let plain = ZkConfig::new(server.address().to_string()).connect_timeout(Duration::from_secs(10));
    let ours = plain.clone().tls(tls(&keys, "ours", "ours"));
    let client = || async {
        let backend = ZkBackend::connect(&ours).await.unwrap_or_else(|error| panic!("{error}"));
        LockClient::builder(backend).build().expect("a client")
    };
    let (holder, other) = (client().await, client().await);
    let guard = holder.lock("x").acquire().await.expect("free");
    assert!(other.lock("x").try_acquire().await.expect("answered").is_none());
    guard.release().await.expect("held");
    other.lock("x").acquire().await.expect("free again").release().await.expect("held");

    let told = holder.check().await.expect("a server of TLS takes no four-letter commands, and is not waited for");
    assert_eq!(finding(&told.findings, "servers").level, Level::Good, "{told:?}");
    assert!(told.findings.iter().all(|finding| finding.level < Level::Warning), "{told:?}");

    // Whom we do not trust, who does not trust us, and who speaks no TLS.
    for (what, config) in [
        ("a server of another authority", plain.clone().tls(tls(&keys, "theirs", "ours"))),
        ("a client of another authority", plain.clone().tls(tls(&keys, "ours", "theirs"))),
        ("no TLS", plain.clone()),
    ] {
        let error = ZkBackend::connect(&config.connect_timeout(crate::NOISE)).await.err();
        let error = error.unwrap_or_else(|| panic!("{what} is let in"));
        assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{what}: {error}");
    }
}

#[tokio::test]
async fn files_that_do_not_fit_are_an_error_of_the_configuration() {
    let keys = tempfile::tempdir().expect("a directory");
    authority(keys.path(), "ours");
    std::fs::write(keys.path().join("empty-ca.pem"), "nothing").expect("the directory is there");
    for (ca, identity, named) in
        [("empty", "ours", "empty-ca.pem"), ("missing", "ours", "missing-ca.pem"), ("ours", "missing", "missing.pem")]
    {
        let config = ZkConfig::new("127.0.0.1:1").tls(tls(&keys, ca, identity));
        let error = ZkBackend::connect(&config).await.expect_err("unfit");
        assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}
