//! TLS, with certificates made for the test and servers that speak nothing else.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, time::Duration};

use lock_core::{BackendErrorKind, LockClient};
use lock_sql::{ServerConfig, SqlBackend};
use tempfile::TempDir;

use crate::{
    LEASE,
    db::Db,
    programs::{give_to_postgres, leaked, output},
};

const PASSWORD: &str = "s3cr3t-w0rd";

/// The directory of an authority `ca.pem`, of what it signed for the server and a client, and of an authority `b.pem`.
fn keys() -> TempDir {
    let keys = tempfile::tempdir().expect("a directory");
    let openssl = |arguments: &str| {
        output(Command::new("openssl").args(arguments.split(' ')).current_dir(keys.path()));
    };
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for authority in ["ca", "b"] {
        openssl(&format!("req -x509 {new} -keyout {authority}.key -out {authority}.pem -days 2 -subj /CN={authority}"));
    }
    fs::write(keys.path().join("names"), "subjectAltName=IP:127.0.0.1").expect("the directory is there");
    for name in ["server", "client"] {
        openssl(&format!("req {new} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        let by = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names";
        openssl(&format!("x509 -req -in {name}.csr -out {name}.pem {by}"));
    }
    keys
}

/// A server that takes no plain connection, and asks the user `certified` for a certificate.
async fn postgres() -> (Db, TempDir) {
    let keys = keys();
    let at = keys.path().display();
    let rules = "hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca\nhostssl all all 127.0.0.1/32 trust\n";
    fs::write(keys.path().join("hba"), rules).expect("the directory is there");
    // The server reads no key that others may read.
    fs::set_permissions(keys.path().join("server.key"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    give_to_postgres(keys.path());
    let db = crate::db::postgres(leaked(vec![
        "ssl=on".to_owned(),
        format!("ssl_cert_file={at}/server.pem"),
        format!("ssl_key_file={at}/server.key"),
        format!("ssl_ca_file={at}/ca.pem"),
        format!("hba_file={at}/hba"),
    ]));
    db.admin().await.execute("CREATE USER certified; GRANT ALL ON SCHEMA public TO certified").await;
    (db, keys)
}

async fn mysql() -> (Db, TempDir) {
    let keys = keys();
    let at = keys.path().display();
    let db = crate::db::mysql(leaked(vec![
        format!("--ssl-cert={at}/server.pem"),
        format!("--ssl-key={at}/server.key"),
        format!("--ssl-ca={at}/ca.pem"),
    ]));
    let mut admin = db.admin().await;
    admin.execute(&format!("CREATE USER certified IDENTIFIED BY '{PASSWORD}' REQUIRE X509")).await;
    admin.execute(&format!("CREATE USER shop IDENTIFIED BY '{PASSWORD}'")).await;
    admin.execute("GRANT ALL ON leasehold.* TO certified").await;
    admin.execute("GRANT ALL ON leasehold.* TO shop").await;
    // Not from the start: whoever asks whether it is ready speaks no TLS.
    admin.execute("SET GLOBAL require_secure_transport = ON").await;
    (db, keys)
}

/// A server's URL with the options of TLS, as each driver calls them.
struct Urls<'a> {
    db: &'a Db,
    keys: &'a Path,
}

impl Urls<'_> {
    fn of(&self, user: &str, options: &str) -> String {
        let database = if matches!(self.db, Db::Postgres(_)) { "postgres" } else { "leasehold" };
        format!("{}?{options}", self.db.url_of(user, PASSWORD, database))
    }

    fn user(&self) -> &'static str {
        if matches!(self.db, Db::Postgres(_)) { "postgres" } else { "shop" }
    }

    /// Options that verify the authority of this file, and the host's name or not.
    fn verifies(&self, name: bool, ca: &str) -> String {
        let ca = self.keys.join(ca);
        let ca = ca.display();
        match (self.db, name) {
            (Db::Postgres(_), true) => format!("sslmode=verify-full&sslrootcert={ca}"),
            (Db::Postgres(_), false) => format!("sslmode=verify-ca&sslrootcert={ca}"),
            (Db::Mysql(_), true) => format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}"),
            (Db::Mysql(_), false) => format!("ssl-mode=VERIFY_CA&ssl-ca={ca}"),
        }
    }

    fn certificate(&self, name: &str) -> String {
        let option = if matches!(self.db, Db::Postgres(_)) { "ssl" } else { "ssl-" };
        let at = self.keys.display();
        format!("{option}cert={at}/{name}.pem&{option}key={at}/{name}.key")
    }

    fn mode(&self, postgres: &str, mysql: &str) -> String {
        match self.db {
            Db::Postgres(_) => format!("sslmode={postgres}"),
            Db::Mysql(_) => format!("ssl-mode={mysql}"),
        }
    }
}

async fn accepted(url: &str) -> SqlBackend {
    let config = ServerConfig::new(url).expect("a good URL");
    SqlBackend::server(&config).await.unwrap_or_else(|error| panic!("{error}"))
}

/// That it is refused as a wrong setting, and that the password is nowhere. Gives what a person reads.
async fn refused(url: &str) -> String {
    let config = ServerConfig::new(url).expect("a good URL");
    let error = SqlBackend::server(&config).await.expect_err("it cannot be used");
    let mut told = format!("{error} {error:?} {config:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        told += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    assert!(!told.contains(PASSWORD), "{told}");
    assert_eq!(error.kind(), BackendErrorKind::Config, "{told}");
    error.to_string()
}

async fn only_a_trusted_server_of_that_name_is_used_and_never_a_plain_one(db: &Db, keys: &Path) {
    let urls = Urls { db, keys };
    let user = urls.user();
    let good = urls.of(user, &urls.verifies(true, "ca.pem"));
    let clients = [accepted(&good).await, accepted(&good).await];
    let [holder, waits] = clients.map(|backend| LockClient::builder(backend).lease(LEASE).build().expect("a client"));
    let guard = holder.lock("job").acquire().await.expect("free");
    let waiter = tokio::spawn(waits.lock("job").wait(LEASE).acquire());
    tokio::time::sleep(Duration::from_millis(500)).await;
    guard.release().await.expect("release");
    let served = tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic");
    served.expect("granted").release().await.expect("release");

    let told = refused(&urls.of(user, &urls.verifies(true, "b.pem"))).await;
    assert!(told.contains("invalid peer certificate: UnknownIssuer"), "{told}");
    let elsewhere = |name| urls.of(user, &urls.verifies(name, "ca.pem")).replace("@127.0.0.1", "@localhost");
    let told = refused(&elsewhere(true)).await;
    assert!(told.contains("certificate not valid for name"), "{told}");
    accepted(&elsewhere(false)).await;
    refused(&urls.of(user, &urls.mode("disable", "DISABLED"))).await;
    // Unless it is set otherwise, a connection is encrypted where the server can.
    accepted(&urls.of(user, "")).await;
    accepted(&urls.of(user, &urls.mode("require", "REQUIRED"))).await;
}

async fn a_client_shows_its_certificate(db: &Db, keys: &Path) {
    let urls = Urls { db, keys };
    // Whoever creates the tables owns them.
    let verifies = urls.verifies(true, "ca.pem");
    refused(&urls.of("certified", &verifies)).await;
    accepted(&urls.of("certified", &format!("{verifies}&{}", urls.certificate("client")))).await;
    // The server does not know the authority that signed this one.
    refused(&urls.of("certified", &format!("{verifies}&{}", urls.certificate("b")))).await;
    let half = urls.certificate("client");
    let half = half.split('&').next().expect("two options");
    assert!(refused(&urls.of("certified", &format!("{verifies}&{half}"))).await.contains("together"));
}

async fn files_that_cannot_be_read_are_named(db: &Db, keys: &Path) {
    let urls = Urls { db, keys };
    fs::write(keys.join("empty.pem"), "nothing").expect("the directory is there");
    for file in ["missing.pem", "empty.pem", ""] {
        let told = refused(&urls.of(urls.user(), &urls.verifies(true, file))).await;
        assert!(told.contains(&*keys.join(file).to_string_lossy()), "{told}");
    }
    let missing = format!("{}&{}", urls.verifies(true, "ca.pem"), urls.certificate("missing"));
    assert!(refused(&urls.of(urls.user(), &missing)).await.contains("missing.pem"));
}

async fn a_server_without_tls_is_not_used_where_it_is_required(db: &Db) {
    let urls = Urls { db, keys: Path::new("/") };
    refused(&urls.of(urls.user(), &urls.mode("require", "REQUIRED"))).await;
}

macro_rules! with_tls {
    ($($name:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (db, keys) = super::postgres().await;
                super::$name(&db, keys.path()).await;
            })+
        }
        mod on_mysql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (db, keys) = super::mysql().await;
                super::$name(&db, keys.path()).await;
            })+
        }
    };
}

with_tls!(
    only_a_trusted_server_of_that_name_is_used_and_never_a_plain_one,
    a_client_shows_its_certificate,
    files_that_cannot_be_read_are_named,
);

mod without {
    super::super::on_both!(a_server_without_tls_is_not_used_where_it_is_required);

    use super::a_server_without_tls_is_not_used_where_it_is_required;
}
