//! What the conformance suite needs of SQLite: a file of its own, and a look at its rows past the backend.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Blind, Fixture, Key, Oracle, Outcome, Seen, Stop};
use lock_core::{Backend, ClaimId, FencingToken, Holder, HolderInfo, Namespace};
use lock_sql::{SqlBackend, SqliteConfig};
use sqlx::{
    ConnectOptions as _, Row as _, SqliteConnection,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteConnectOptions},
};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// An SQLite file in a directory of its own, which goes with the fixture.
#[derive(Debug)]
pub(crate) struct SqliteFile {
    directory: TempDir,
}

impl SqliteFile {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(SqliteFile { directory: tempfile::tempdir()? })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }
}

async fn open(path: &Path) -> Outcome<Arc<dyn Backend>> {
    Ok(Arc::new(SqlBackend::sqlite(&SqliteConfig::new(path)).await?))
}

#[async_trait]
impl Fixture for SqliteFile {
    fn name(&self) -> &str {
        "sqlite"
    }

    async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
        open(&self.path()).await
    }

    async fn oracle(&self) -> Outcome<Arc<dyn Oracle>> {
        // The backend makes the file and its tables; the oracle only looks.
        self.connect().await?.close().await;
        let options = SqliteConnectOptions::new().filename(self.path()).busy_timeout(Duration::from_secs(10));
        let connection = options.connect().await.map_err(|error| Stop::broken(error.to_string()))?;
        Ok(Arc::new(Rows { connection: Mutex::new(connection) }))
    }

    async fn private(&self) -> Outcome<Arc<dyn Fixture>> {
        Ok(Arc::new(SqliteFile::new()?))
    }

    async fn of_one_case(&self) -> Outcome<Option<Arc<dyn Fixture>>> {
        // All clients of a file in one process share its one connection, and a busy case would slow down the others.
        Ok(Some(self.private().await?))
    }

    fn spec(&self) -> Option<String> {
        Some(format!("sqlite:{}", self.path().display()))
    }

    async fn open(&self, spec: &str) -> Outcome<Arc<dyn Backend>> {
        let path = spec.strip_prefix("sqlite:").ok_or_else(|| Stop::broken(format!("{spec:?} is no SQLite file")))?;
        open(Path::new(path)).await
    }
}

/// The rows as a database shell shows them.
struct Rows {
    connection: Mutex<SqliteConnection>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows")
    }
}

/// The store's clock, in microseconds.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000";

type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// A statement about one lock's row: its key comes first.
fn of_key<'q>(sql: String, key: &'q Key) -> Statement<'q> {
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(key.namespace.as_str().as_bytes())
        .bind(key.kind.family())
        .bind(key.name.as_str().as_bytes())
}

const OF_KEY: &str = "namespace = ?1 AND family = ?2 AND name = ?3 AND slot = 0";

impl Rows {
    async fn run(&self, statement: Statement<'_>) -> Seen<u64> {
        let mut connection = self.connection.lock().await;
        let done = statement.execute(&mut *connection).await.map_err(Blind::failed)?;
        Ok(done.rows_affected())
    }

    async fn count(&self, namespace: &Namespace, condition: &str) -> Seen<u64> {
        let sql = format!("SELECT count(*) FROM leasehold_locks WHERE namespace = ?1 AND {condition}");
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(namespace.as_str().as_bytes());
        let count: i64 = query.fetch_one(&mut *self.connection.lock().await).await.map_err(Blind::failed)?;
        Ok(count.unsigned_abs())
    }
}

#[async_trait]
impl Oracle for Rows {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        let sql = format!(
            "SELECT lower(hex(claim)), token, expires - {NOW}, host, pid FROM leasehold_locks
            WHERE {OF_KEY} AND claim IS NOT NULL AND expires > {NOW}"
        );
        let rows = of_key(sql, key).fetch_all(&mut *self.connection.lock().await).await.map_err(Blind::failed)?;
        let mut holders = Vec::new();
        for row in rows {
            let claim: ClaimId = row.get::<String, _>(0).parse().map_err(Blind::failed)?;
            let pid = u32::try_from(row.get::<i64, _>(4)).map_err(Blind::failed)?;
            let info = HolderInfo { host: row.get(3), pid, label: None };
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
        self.count(namespace, "family = 'lock'").await
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        self.run(of_key(format!("DELETE FROM leasehold_locks WHERE {OF_KEY}"), key)).await?;
        Ok(())
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()> {
        let sql =
            format!("UPDATE leasehold_locks SET claim = ?4, expires = {NOW} + ?5, token = token + 1 WHERE {OF_KEY}");
        let lease_us = i64::try_from(lease.as_micros()).map_err(Blind::failed)?;
        let claim = claim.as_u128().to_be_bytes().to_vec();
        match self.run(of_key(sql, key).bind(claim).bind(lease_us)).await? {
            1 => Ok(()),
            rows => Err(Blind::Failed(format!("{rows} rows were overwritten"))),
        }
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        // Every row has an end; one beyond what a lease can be is none.
        let beyond = self.count(namespace, &format!("family = 'lock' AND expires > {NOW} + 31622400000000")).await?;
        Ok((beyond > 0).then(|| format!("{beyond} rows that end in more than a year")).into_iter().collect())
    }

    async fn plant_foreign(&self, key: &Key) -> Seen<()> {
        let row = "INSERT INTO leasehold_locks (namespace, family, name, slot, claim, token, since, expires, host, pid)
            VALUES (?1, 'ofanotherkind', ?3, 0, x'00', 1, NULL, 9223372036854775807, NULL, NULL) ON CONFLICT DO NOTHING";
        // The family is bound like the others and not used: this is the row of another kind of lock.
        self.run(of_key(format!("{row} -- ?2"), key)).await?;
        let table = "CREATE TABLE IF NOT EXISTS locks (namespace BLOB, name BLOB, claim BLOB)";
        self.run(sqlx::query(table)).await?;
        Ok(())
    }

    async fn age_idle(&self, namespace: &Namespace) -> Seen<()> {
        let sql =
            "UPDATE leasehold_locks SET expires = expires - 2 * 86400000000 WHERE namespace = ?1 AND claim IS NULL";
        self.run(sqlx::query(sql).bind(namespace.as_str().as_bytes())).await?;
        // So that the next process that opens the file looks for idle rows.
        self.run(sqlx::query("UPDATE leasehold_schema SET swept = 0")).await?;
        Ok(())
    }
}
