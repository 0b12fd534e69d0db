//! What a lock in SQLite costs beside the statements that it cannot do without.
//!
//! Four ways to take a lock and give it back, on files of their own with the same settings, in turns so that all meet the
//! same noise: the least statements that would do and the backend's own statements, both through sqlx on one connection;
//! the backend; the client. Prints the median, and its ratio to the backend's own statements. Takes about twelve seconds.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use lock_core::{
    Attempt, Backend as _, Claim, ClaimId, FencingToken, HolderInfo, Intent, LockClient, LockKind, LockName, Namespace,
};
use lock_sql::{SqlBackend, SqliteConfig};
use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tokio::runtime::Builder;

/// Pairs of one way before it is the next one's turn.
const TURN: usize = 200;
const LIMIT: Duration = Duration::from_secs(6);

fn main() {
    let one_thread = Builder::new_current_thread().enable_all().build().expect("a runtime");
    print("one thread", &one_thread.block_on(measure()));
    let two_threads = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    // In a task, as a service's work is; what blocks on a runtime from outside pays for its own wake-ups.
    let measured = two_threads.block_on(two_threads.spawn(measure())).expect("no panic");
    print("two threads", &measured);
}

async fn measure() -> Vec<(&'static str, Histogram<u64>)> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut least = Raw::open(&directory.path().join("least.db"), LEAST_TABLE).await;
    let mut same = Raw::open(&directory.path().join("same.db"), SCHEMA).await;
    let backend = open(&directory.path().join("backend.db")).await;
    let client = LockClient::builder(open(&directory.path().join("client.db")).await).build().expect("a client");

    let mut taken = ["least statements", "same statements", "backend", "client"].map(|way| (way, recorder()));
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        for _ in 0..TURN {
            record(&mut taken[0].1, least.least_pair()).await;
        }
        for _ in 0..TURN {
            record(&mut taken[1].1, same.same_pair()).await;
        }
        for _ in 0..TURN {
            record(&mut taken[2].1, backend_pair(&backend)).await;
        }
        for _ in 0..TURN {
            record(&mut taken[3].1, client_pair(&client)).await;
        }
    }
    client.close().await.expect("the client closes");
    taken.into()
}

fn recorder() -> Histogram<u64> {
    Histogram::new(3).expect("three digits")
}

async fn record(taken: &mut Histogram<u64>, pair: impl Future<Output = ()>) {
    let begun = Instant::now();
    pair.await;
    let nanos = u64::try_from(begun.elapsed().as_nanos()).expect("less than centuries");
    taken.record(nanos).expect("the histogram grows");
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn print(runtime: &str, taken: &[(&str, Histogram<u64>)]) {
    let micros = |histogram: &Histogram<u64>, quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
    let floor = micros(&taken[1].1, 0.5);
    println!("SQLite, synchronous=NORMAL, acquire + release, one task, a runtime of {runtime}");
    for (way, histogram) in taken {
        let (p50, p99) = (micros(histogram, 0.5), micros(histogram, 0.99));
        let ratio = p50.as_secs_f64() / floor.as_secs_f64();
        println!("{way:>16}: p50 {p50:>9.1?}  p99 {p99:>9.1?}  {ratio:.2} x  ({} pairs)", histogram.len());
    }
}

const SCHEMA: &str = include_str!("../sql/schema.sqlite.sql");
const CLAIM: &str = include_str!("../sql/claim.sqlite.sql");
const RELEASE: &str = include_str!("../sql/release.sqlite.sql");

const LEAST_TABLE: &str = "CREATE TABLE locks (name TEXT PRIMARY KEY, owner BLOB, token INTEGER, expires INTEGER)";
const LEAST_CLAIM: &str = "INSERT INTO locks (name, owner, token, expires)
    VALUES (?1, ?2, 1, unixepoch('subsec') * 1000 + ?3)
    ON CONFLICT (name) DO UPDATE SET owner = ?2, token = token + 1, expires = excluded.expires
    WHERE owner IS NULL OR expires <= unixepoch('subsec') * 1000
    RETURNING token";
const LEAST_RELEASE: &str = "UPDATE locks SET owner = NULL WHERE name = ?1 AND owner = ?2";

/// A connection without a library around it.
struct Raw {
    connection: SqliteConnection,
}

impl Raw {
    async fn open(path: &Path, schema: &'static str) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .disable_statement_logging();
        let mut connection = options.connect().await.expect("the file opens");
        sqlx::raw_sql(schema).execute(&mut connection).await.expect("the tables");
        Raw { connection }
    }

    async fn least_pair(&mut self) {
        let owner = ClaimId::random().as_u128().to_be_bytes();
        let claim = sqlx::query(LEAST_CLAIM).bind("job").bind(owner.as_slice()).bind(30_000);
        let rows = claim.fetch_all(&mut self.connection).await.expect("claimed");
        assert_eq!(rows.len(), 1);
        let release = sqlx::query(LEAST_RELEASE).bind("job").bind(owner.as_slice());
        release.execute(&mut self.connection).await.expect("released");
    }

    async fn same_pair(&mut self) {
        let owner = ClaimId::random().as_u128().to_be_bytes();
        let key = |sql| sqlx::query(sql).bind(b"".as_slice()).bind("lock").bind(b"job".as_slice()).bind(0_i64);
        let claim = key(CLAIM).bind(owner.as_slice()).bind(30_000_000_i64).bind(0_i64);
        let claim = claim.bind("here").bind(1_u32).bind(None::<&str>);
        let rows = claim.fetch_all(&mut self.connection).await.expect("claimed");
        assert_eq!(rows.len(), 1);
        let release = key(RELEASE).bind(owner.as_slice());
        let done = release.execute(&mut self.connection).await.expect("released");
        assert_eq!(done.rows_affected(), 1);
    }
}

async fn open(path: &Path) -> SqlBackend {
    SqlBackend::sqlite(&SqliteConfig::new(path)).await.expect("the store opens")
}

async fn backend_pair(backend: &SqlBackend) {
    let claim = Claim {
        namespace: Namespace::default(),
        name: LockName::new("job").expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent: Intent::Try,
        lease: Duration::from_secs(30),
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 1, label: None }),
        min_token: FencingToken::ZERO,
    };
    let answer = backend.attempt(&claim).await.expect("claimed");
    assert!(matches!(answer, Attempt::Granted(_)));
    backend.release(&claim).await.expect("released");
}

async fn client_pair(client: &LockClient) {
    let guard = client.lock("job").acquire().await.expect("acquired");
    guard.release().await.expect("released");
}
