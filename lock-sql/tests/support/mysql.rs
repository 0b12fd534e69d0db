//! A MariaDB server of the tests' own, and a look at its rows past the backend.

use std::{
    fmt, fs, io,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Blind, Fixture, Key, Oracle, Outcome, PrivateServer, Seen, Server, Stop};
use lock_core::{Backend, ClaimId, FencingToken, Holder, HolderInfo, Namespace};
use lock_sql::{ServerConfig, SqlBackend};
use sqlx::{
    AssertSqlSafe, Connection as _, MySql, MySqlConnection, Row as _,
    mysql::{MySqlArguments, MySqlRow},
    query::Query,
};
use tempfile::TempDir;

/// The URL of a server to test against, where that is not to be one of the tests' own.
pub(crate) const URL: &str = "LEASEHOLD_TEST_MYSQL";

/// A program of the server's, whose words go nowhere.
fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(mut command: Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?} ended with {status}"))) }
}

fn is_installed() -> bool {
    run({
        let mut version = program("mariadbd");
        version.arg("--version");
        version
    })
    .is_ok()
}

/// Data directories are copied from one, since making one takes seconds. It goes with the last server that needs it.
fn template() -> io::Result<Arc<TempDir>> {
    static TEMPLATE: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut template = TEMPLATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(directory) = template.upgrade() {
        return Ok(directory);
    }
    let directory = tempfile::Builder::new().prefix("leasehold-test-").tempdir()?;
    let mut install = program("mariadb-install-db");
    install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    install.arg(format!("--datadir={}", directory.path().join("data").display()));
    run(install)?;
    let directory = Arc::new(directory);
    *template = Arc::downgrade(&directory);
    Ok(directory)
}

fn fill(template: &TempDir, directory: &Path) -> io::Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(template.path().join("data")).arg(directory.join("data"));
    run(copy)?;
    fs::write(directory.join("init.sql"), "CREATE DATABASE IF NOT EXISTS leasehold;\n")
}

/// A server process. Ended with its handle.
#[derive(Debug)]
pub(crate) struct MariaProcess {
    server: PrivateServer,
}

impl MariaProcess {
    pub(crate) fn start(settings: &'static [&'static str]) -> io::Result<Arc<Self>> {
        let template = template()?;
        let recipe = move |directory: &Path, address: SocketAddr| {
            if !directory.join("data").exists()
                && let Err(error) = fill(&template, directory)
            {
                eprintln!("no data directory for a test's server: {error}");
            }
            let path = |name: &str| directory.join(name).display().to_string();
            let mut command = program("mariadbd");
            // The user is for those who are root, and of no effect for others.
            command.args(["--no-defaults", "--user=root", "--max-connections=400", "--innodb-buffer-pool-size=64M"]);
            command.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=16M"]);
            command.arg(format!("--datadir={}", path("data"))).arg(format!("--socket={}", path("s.sock")));
            command.arg(format!("--init-file={}", path("init.sql")));
            command.arg(format!("--bind-address={}", address.ip())).arg(format!("--port={}", address.port()));
            command.args(settings);
            command
        };
        let ready = |address: SocketAddr| {
            let mut ask = program("mariadb");
            ask.args(["--no-defaults", "--protocol=tcp", "-u", "root", "-h", &address.ip().to_string()]);
            ask.args(["-P", &address.port().to_string(), "-e", "SELECT 1", "leasehold"]);
            run(ask).is_ok()
        };
        Ok(Arc::new(MariaProcess { server: PrivateServer::start(Box::new(recipe), Box::new(ready))? }))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn url(&self) -> String {
        url_at(self.address())
    }

    /// Ends the server, as a crash would.
    pub(crate) fn stop(&self) {
        self.server.kill();
    }

    pub(crate) fn start_again(&self) -> io::Result<()> {
        self.server.launch()
    }
}

fn url_at(address: SocketAddr) -> String {
    format!("mysql://root@{address}/leasehold")
}

#[async_trait]
impl Server for MariaProcess {
    async fn restart(&self) -> Outcome {
        self.stop();
        Ok(self.start_again()?)
    }

    async fn restart_empty(&self) -> Outcome {
        self.stop();
        fs::remove_dir_all(self.server.directory().join("data"))?;
        Ok(self.start_again()?)
    }

    fn pause(&self) -> Outcome {
        Ok(self.server.pause()?)
    }

    fn resume(&self) -> Outcome {
        Ok(self.server.resume()?)
    }

    async fn cut_connections(&self) -> Outcome {
        let mut connection = connect(&self.url()).await?;
        kill_all(&mut connection).await?;
        Ok(())
    }

    fn recovery(&self) -> Duration {
        Duration::from_secs(8)
    }
}

/// Ends every session of a client but the asking one, as an administrator can.
pub(crate) async fn kill_all(connection: &mut MySqlConnection) -> Seen<u64> {
    let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND DB = 'leasehold'";
    let ids: Vec<i64> = sqlx::query_scalar(sql).fetch_all(&mut *connection).await.map_err(Blind::failed)?;
    for id in &ids {
        // A session may have ended by itself meanwhile.
        let _ = sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}"))).execute(&mut *connection).await;
    }
    Ok(ids.len() as u64)
}

pub(crate) async fn connect(url: &str) -> Outcome<MySqlConnection> {
    MySqlConnection::connect(url).await.map_err(|error| Stop::broken(error.to_string()))
}

/// A server's URL, and its process where that is ours.
type Reached = (String, Option<Arc<MariaProcess>>);

/// The server that a suite runs against: one for all cases, started by the first, and private ones.
#[derive(Debug, Default)]
pub(crate) struct Maria {
    shared: OnceLock<Result<Reached, String>>,
    private: bool,
}

impl Maria {
    /// A server of the environment's, or one that this machine has the programs for.
    pub(crate) fn find() -> Result<Self, String> {
        if std::env::var_os(URL).is_none() && !is_installed() {
            return Err(format!("no MariaDB server: install mariadb-server, or set {URL}"));
        }
        Ok(Maria::default())
    }

    fn shared(&self) -> Outcome<&Reached> {
        let start = || match std::env::var(URL) {
            Ok(url) if !self.private => Ok((url, None)),
            _ => MariaProcess::start(&[])
                .map(|process| (process.url(), Some(process)))
                .map_err(|error| format!("MariaDB does not start: {error}")),
        };
        self.shared.get_or_init(start).as_ref().map_err(Stop::broken)
    }

    fn process(&self) -> Option<Arc<MariaProcess>> {
        self.shared().ok()?.1.clone()
    }
}

async fn backend(url: &str) -> Outcome<Arc<dyn Backend>> {
    // Many cases run at once, and each has clients of its own.
    Ok(Arc::new(SqlBackend::server(&ServerConfig::new(url)?.max_connections(4)).await?))
}

#[async_trait]
impl Fixture for Maria {
    fn name(&self) -> &str {
        "mysql"
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        backend(&self.shared()?.0).await
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        // The backend makes the tables; the oracle only looks.
        self.connect().await?.close().await;
        let url = self.shared()?.0.clone();
        let connection = connect(&url).await?;
        Ok(Arc::new(Rows { url, connection: tokio::sync::Mutex::new(connection) }))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        if !is_installed() {
            return Err(Stop::skipped("a server of a case's own needs mariadb-server on this machine"));
        }
        Ok(Arc::new(Maria { private: true, ..Maria::default() }))
    }

    fn spec(&self) -> Option<String> {
        Some(self.shared().ok()?.0.clone())
    }

    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        backend(spec).await
    }

    fn server(&self) -> Option<Arc<dyn Server>> {
        if !self.private {
            return None;
        }
        self.process().map(|process| process as Arc<dyn Server>)
    }

    fn address(&self) -> Option<SocketAddr> {
        self.process().map(|process| process.address())
    }

    async fn connect_by(&self, address: SocketAddr) -> Outcome<Arc<dyn Backend>> {
        backend(&url_at(address)).await
    }
}

/// The rows as a database shell shows them.
struct Rows {
    url: String,
    connection: tokio::sync::Mutex<MySqlConnection>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows")
    }
}

/// The server's clock, in microseconds.
const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
const OF_KEY: &str = "namespace = ? AND family = ? AND name = ? AND slot = 0";

type Statement<'q> = Query<'q, MySql, MySqlArguments>;

/// A statement about one lock's row: its key comes first.
fn of_key<'q>(sql: String, key: &'q Key) -> Statement<'q> {
    sqlx::query(AssertSqlSafe(sql))
        .bind(key.namespace.as_str().as_bytes())
        .bind(key.kind.family().as_bytes())
        .bind(key.name.as_str().as_bytes())
}

impl Rows {
    /// Asks, on a new connection if the server has ended the last one.
    async fn ask<'q>(&self, statement: Statement<'q>) -> Seen<Vec<MySqlRow>> {
        let mut connection = self.connection.lock().await;
        if connection.ping().await.is_err() {
            *connection = MySqlConnection::connect(&self.url).await.map_err(Blind::failed)?;
        }
        statement.fetch_all(&mut *connection).await.map_err(Blind::failed)
    }

    async fn count(&self, namespace: &Namespace, condition: &str) -> Seen<u64> {
        let sql = format!("SELECT count(*) FROM leasehold_locks WHERE namespace = ? AND {condition}");
        let rows = self.ask(sqlx::query(AssertSqlSafe(sql)).bind(namespace.as_str().as_bytes())).await?;
        Ok(rows[0].get::<i64, _>(0).unsigned_abs())
    }
}

#[async_trait]
impl Oracle for Rows {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        let sql = format!(
            "SELECT LOWER(HEX(claim)), token, expires - {NOW}, host, pid FROM leasehold_locks
            WHERE {OF_KEY} AND claim IS NOT NULL AND expires > {NOW}"
        );
        let mut holders = Vec::new();
        for row in self.ask(of_key(sql, key)).await? {
            let claim: ClaimId = row.get::<String, _>(0).parse().map_err(Blind::failed)?;
            let pid = u32::try_from(row.get::<Option<i64>, _>(4).unwrap_or_default()).map_err(Blind::failed)?;
            let info = HolderInfo { host: row.get::<Option<String>, _>(3).unwrap_or_default(), pid, label: None };
            let mut holder = Holder::new(claim, FencingToken::new(row.get::<i64, _>(1).unsigned_abs()), &info);
            holder.remaining = Some(Duration::from_micros(row.get::<i64, _>(2).unsigned_abs()));
            holders.push(holder);
        }
        Ok(holders)
    }

    async fn waiting(&self, _key: &Key) -> Seen<u64> {
        // No row stands for a waiter: there is nowhere one could be left.
        Ok(0)
    }

    async fn claims(&self, namespace: &Namespace) -> Seen<u64> {
        self.count(namespace, &format!("family = 'lock' AND claim IS NOT NULL AND expires > {NOW}")).await
    }

    async fn records(&self, namespace: &Namespace) -> Seen<u64> {
        self.count(namespace, "true").await
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        self.ask(of_key(format!("DELETE FROM leasehold_locks WHERE {OF_KEY}"), key)).await.map(drop)
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()> {
        let lease_us = i64::try_from(lease.as_micros()).map_err(Blind::failed)?;
        let id = claim.as_u128();
        // Its values are numbers of ours, and the key's parameters come first in every statement here.
        let sql = format!(
            "UPDATE leasehold_locks SET claim = x'{id:032x}', expires = {NOW} + {lease_us}, token = token + 1 WHERE {OF_KEY}"
        );
        self.ask(of_key(sql, key)).await?;
        match self.holders(key).await?.first() {
            Some(holder) if holder.claim == claim => Ok(()),
            other => Err(Blind::Failed(format!("{other:?} holds after the row was overwritten"))),
        }
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        // Every row has an end; one beyond what a lease can be is none.
        let beyond = self
            .count(namespace, &format!("family = 'lock' AND claim IS NOT NULL AND expires > {NOW} + 31622400000000"))
            .await?;
        Ok((beyond > 0).then(|| format!("{beyond} rows that end in more than a year")).into_iter().collect())
    }

    async fn plant_foreign(&self, key: &Key) -> Seen<()> {
        let row = "INSERT IGNORE INTO leasehold_locks (namespace, family, name, slot, claim, token, expires)
            VALUES (?, CONCAT('not ', ?), ?, 0, x'00', 1, 9223372036854775807)";
        self.ask(of_key(row.to_owned(), key)).await?;
        self.ask(sqlx::query("CREATE TABLE IF NOT EXISTS locks (namespace BLOB, name BLOB, claim BLOB)")).await?;
        Ok(())
    }

    async fn age_idle(&self, namespace: &Namespace) -> Seen<()> {
        let sql =
            "UPDATE leasehold_locks SET expires = expires - 2 * 86400000000 WHERE namespace = ? AND claim IS NULL";
        self.ask(sqlx::query(sql).bind(namespace.as_str().as_bytes())).await?;
        // As the sweep of an hour ago left it; and so that the next client that comes looks for idle rows.
        let sql = "UPDATE leasehold_schema
            SET swept = 0, floor = GREATEST(floor, (SELECT MAX(token) FROM leasehold_locks WHERE claim IS NULL))";
        self.ask(sqlx::query(sql)).await.map(drop)
    }

    async fn connections(&self) -> Seen<u64> {
        let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'leasehold'";
        Ok(self.ask(sqlx::query(sql)).await?[0].get::<i64, _>(0).unsigned_abs())
    }
}
