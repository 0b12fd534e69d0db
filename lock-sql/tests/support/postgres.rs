//! A PostgreSQL server of the tests' own, and a look at its rows past the backend.

use std::{
    fmt, fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Blind, Fixture, Key, Oracle, Outcome, PrivateServer, Seen, Server, Stop};
use lock_core::{Backend, ClaimId, FencingToken, Holder, HolderInfo, Namespace};
use lock_sql::{ServerConfig, SqlBackend};
use sqlx::{
    AssertSqlSafe, Connection as _, PgConnection, Postgres, Row as _,
    postgres::{PgArguments, PgRow},
    query::Query,
};
use tempfile::TempDir;

/// The URL of a server to test against, where that is not to be one of the tests' own.
pub(crate) const URL: &str = "LEASEHOLD_TEST_POSTGRES";

/// Where the server's programs are, all of one version: in the path, or where Debian puts them.
fn programs() -> Option<PathBuf> {
    let all = |dir: &PathBuf| ["initdb", "postgres", "pg_ctl", "pg_isready"].iter().all(|name| dir.join(name).exists());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = || {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        versions.map(|version| version.path().join("bin")).filter(all).max()
    };
    std::env::split_paths(&path).find(all).or_else(debian)
}

/// A program of the server's, as a user that it runs under: it refuses root.
fn program(name: &str) -> Command {
    let path = programs().unwrap_or_default().join(name);
    let mut command = match postgres_user() {
        Some(_) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
            command
        }
        None => Command::new(path),
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The server's user and group, where the tests are root and must change to it.
fn postgres_user() -> Option<(u32, u32)> {
    let number = |args: &[&str]| {
        let output = Command::new("id").args(args).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    (number(&["-u"]) == Some(0_u32)).then_some(())?;
    Some((number(&["-u", "postgres"])?, number(&["-g", "postgres"])?))
}

fn run(mut command: Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?} ended with {status}"))) }
}

/// Gives a directory to the server's user.
fn give(directory: &Path) -> io::Result<()> {
    match postgres_user() {
        Some((user, group)) => std::os::unix::fs::chown(directory, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// Data directories are copied from one, since making one takes a second. It goes with the last server that needs it.
fn template() -> io::Result<Arc<TempDir>> {
    static TEMPLATE: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut template = TEMPLATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(directory) = template.upgrade() {
        return Ok(directory);
    }
    let directory = tempfile::Builder::new().prefix("leasehold-test-").tempdir()?;
    give(directory.path())?;
    let mut initdb = program("initdb");
    initdb.args(["-N", "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "-D"]);
    initdb.arg(directory.path().join("data"));
    run(initdb)?;
    let directory = Arc::new(directory);
    *template = Arc::downgrade(&directory);
    Ok(directory)
}

fn copy_template(template: &TempDir, to: &Path) -> io::Result<()> {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(template.path().join("data")).arg(to);
    run(copy)
}

/// A server process. Ended with its handle.
#[derive(Debug)]
pub(crate) struct PgProcess {
    server: PrivateServer,
}

impl PgProcess {
    pub(crate) fn start(settings: &'static [&'static str]) -> io::Result<Arc<Self>> {
        let template = template()?;
        let recipe = move |directory: &Path, address: SocketAddr| {
            let data = directory.join("data");
            if !data.exists()
                && let Err(error) = give(directory).and_then(|()| copy_template(&template, &data))
            {
                eprintln!("no data directory for a test's server: {error}");
            }
            let mut command = program("postgres");
            command.arg("-D").arg(data).arg("-k").arg(directory);
            command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
            command.args(["-c", "max_connections=400", "-c", "fsync=off", "-c", "log_line_prefix=%m [%p] "]);
            for setting in settings {
                command.args(["-c", setting]);
            }
            command
        };
        let ready = |address: SocketAddr| {
            let mut ask = program("pg_isready");
            ask.args(["-q", "-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
            run(ask).is_ok()
        };
        Ok(Arc::new(PgProcess { server: PrivateServer::start(Box::new(recipe), Box::new(ready))? }))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn url(&self) -> String {
        url_at(self.address())
    }

    /// Ends all of the server's processes at once, as a crash of the server would, and waits for them.
    pub(crate) fn stop(&self) {
        let mut stop = program("pg_ctl");
        stop.args(["stop", "-m", "immediate", "-w", "-D"]).arg(self.server.directory().join("data"));
        // It fails for a server that has ended already.
        let _ = run(stop);
        self.server.kill();
    }

    pub(crate) fn start_again(&self) -> io::Result<()> {
        self.server.launch()
    }

    /// The server and the processes of its sessions: stopping the first alone would not stop them.
    fn signal_all(&self, signal: &str) -> io::Result<()> {
        let pid_file = fs::read_to_string(self.server.directory().join("data/postmaster.pid"))?;
        let postmaster = pid_file.lines().next().unwrap_or_default().to_owned();
        let children = Command::new("pgrep").args(["-P", &postmaster]).output()?;
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let mut kill = Command::new("kill");
        kill.arg(signal).arg(&postmaster).args(children.split_whitespace()).stderr(Stdio::null());
        // It says so when one of them has ended meanwhile, and has told the others.
        kill.status().map(drop)
    }
}

impl Drop for PgProcess {
    fn drop(&mut self) {
        // A killed server would leave a segment of shared memory behind, and a stopped one does not end.
        let _ = self.signal_all("-CONT");
        self.stop();
    }
}

fn url_at(address: SocketAddr) -> String {
    format!("postgres://postgres@{address}/postgres")
}

#[async_trait]
impl Server for PgProcess {
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
        Ok(self.signal_all("-STOP")?)
    }

    fn resume(&self) -> Outcome {
        Ok(self.signal_all("-CONT")?)
    }

    async fn cut_connections(&self) -> Outcome {
        let mut connection = connect(&self.url()).await?;
        terminate_all(&mut connection).await?;
        Ok(())
    }
}

/// Ends every session of a client but the asking one, as an administrator can.
pub(crate) async fn terminate_all(connection: &mut PgConnection) -> Seen<u64> {
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let count: i64 = sqlx::query_scalar(sql).fetch_one(connection).await.map_err(Blind::failed)?;
    Ok(count.unsigned_abs())
}

pub(crate) async fn connect(url: &str) -> Outcome<PgConnection> {
    PgConnection::connect(url).await.map_err(|error| Stop::broken(error.to_string()))
}

/// A server's URL, and its process where that is ours.
type Reached = (String, Option<Arc<PgProcess>>);

/// The server that a suite runs against: one for all cases, started by the first, and private ones.
#[derive(Debug, Default)]
pub(crate) struct Pg {
    shared: OnceLock<Result<Reached, String>>,
    private: bool,
}

impl Pg {
    /// A server of the environment's, or one that this machine has the programs for.
    pub(crate) fn find() -> Result<Self, String> {
        if std::env::var_os(URL).is_none() && programs().is_none() {
            return Err(format!("no PostgreSQL server: install postgresql-15, or set {URL}"));
        }
        Ok(Pg::default())
    }

    fn shared(&self) -> Outcome<&Reached> {
        let start = || match std::env::var(URL) {
            Ok(url) if !self.private => Ok((url, None)),
            _ => PgProcess::start(&[])
                .map(|process| (process.url(), Some(process)))
                .map_err(|error| format!("PostgreSQL does not start: {error}")),
        };
        self.shared.get_or_init(start).as_ref().map_err(Stop::broken)
    }

    fn process(&self) -> Option<Arc<PgProcess>> {
        self.shared().ok()?.1.clone()
    }
}

async fn backend(url: &str) -> Outcome<Arc<dyn Backend>> {
    // Many cases run at once, and each has clients of its own.
    Ok(Arc::new(SqlBackend::server(&ServerConfig::new(url)?.max_connections(4)).await?))
}

#[async_trait]
impl Fixture for Pg {
    fn name(&self) -> &str {
        "postgres"
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
        if programs().is_none() {
            return Err(Stop::skipped("a server of a case's own needs postgresql-15 on this machine"));
        }
        Ok(Arc::new(Pg { private: true, ..Pg::default() }))
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
    connection: tokio::sync::Mutex<PgConnection>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows")
    }
}

/// The server's clock, in microseconds.
const NOW: &str = "(extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint";
const OF_KEY: &str = "namespace = $1 AND family = $2 AND name = $3 AND slot = 0";

type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// A statement about one lock's row: its key comes first.
fn of_key<'q>(sql: String, key: &'q Key) -> Statement<'q> {
    sqlx::query(AssertSqlSafe(sql))
        .bind(key.namespace.as_str().as_bytes())
        .bind(key.kind.family())
        .bind(key.name.as_str().as_bytes())
}

impl Rows {
    /// Asks, on a new connection if the server has ended the last one.
    async fn ask<'q>(&self, statement: Statement<'q>) -> Seen<Vec<PgRow>> {
        let mut connection = self.connection.lock().await;
        if connection.ping().await.is_err() {
            *connection = PgConnection::connect(&self.url).await.map_err(Blind::failed)?;
        }
        statement.fetch_all(&mut *connection).await.map_err(Blind::failed)
    }

    async fn count(&self, namespace: &Namespace, condition: &str) -> Seen<u64> {
        let sql = format!("SELECT count(*) FROM leasehold_locks WHERE namespace = $1 AND {condition}");
        let rows = self.ask(sqlx::query(AssertSqlSafe(sql)).bind(namespace.as_str().as_bytes())).await?;
        Ok(rows[0].get::<i64, _>(0).unsigned_abs())
    }
}

#[async_trait]
impl Oracle for Rows {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        let sql = format!(
            "SELECT encode(claim, 'hex'), token, expires - {NOW}, host, pid FROM leasehold_locks
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
        let sql = format!(
            "UPDATE leasehold_locks SET claim = $4, expires = {NOW} + $5, token = token + 1 WHERE {OF_KEY} RETURNING 1"
        );
        let lease_us = i64::try_from(lease.as_micros()).map_err(Blind::failed)?;
        let claim = claim.as_u128().to_be_bytes().to_vec();
        match self.ask(of_key(sql, key).bind(claim).bind(lease_us)).await?.len() {
            1 => Ok(()),
            rows => Err(Blind::Failed(format!("{rows} rows were overwritten"))),
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
        let row = "INSERT INTO leasehold_locks (namespace, family, name, slot, claim, token, expires)
            VALUES ($1, 'of another kind, and not ' || $2, $3, 0, '\\x00', 1, 9223372036854775807)
            ON CONFLICT DO NOTHING";
        self.ask(of_key(row.to_owned(), key)).await?;
        self.ask(sqlx::query("CREATE TABLE IF NOT EXISTS locks (namespace bytea, name bytea, claim bytea)")).await?;
        Ok(())
    }

    async fn age_idle(&self, namespace: &Namespace) -> Seen<()> {
        let sql =
            "UPDATE leasehold_locks SET expires = expires - 2 * 86400000000 WHERE namespace = $1 AND claim IS NULL";
        self.ask(sqlx::query(sql).bind(namespace.as_str().as_bytes())).await?;
        // As the sweep of an hour ago left it; and so that the next client that comes looks for idle rows.
        let sql = "UPDATE leasehold_schema
            SET swept = 0, floor = greatest(floor, (SELECT max(token) FROM leasehold_locks WHERE claim IS NULL))";
        self.ask(sqlx::query(sql)).await.map(drop)
    }

    async fn connections(&self) -> Seen<u64> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
        Ok(self.ask(sqlx::query(sql)).await?[0].get::<i64, _>(0).unsigned_abs())
    }
}
