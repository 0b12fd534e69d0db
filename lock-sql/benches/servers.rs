//! What a lock in a PostgreSQL or MariaDB server costs beside the statements that it cannot do without.
//!
//! On servers of their own, with every commit on the disk: the backend's own statements through sqlx alone, the backend,
//! and the client, in turns so that all meet the same noise. Then the same with 32 tasks on eight connections, with a
//! thousand and with a million rows in the table, a lock handed from one client to another, and a thousand waiters of
//! one client. Prints medians and their ratios to the raw statements. Takes about three minutes.

#[path = "../tests/support/mysql.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod mysql;
#[path = "../tests/support/postgres.rs"]
#[expect(dead_code, reason = "the suite uses the rest of it")]
mod postgres;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use lock_core::{
    Attempt, Backend as _, Claim, ClaimId, FencingToken, HolderInfo, Intent, LockClient, LockKind, LockName, Namespace,
};
use lock_sql::{ServerConfig, SqlBackend};
use sqlx::{MySqlPool, PgPool, mysql::MySqlPoolOptions, pool::PoolConnection, postgres::PgPoolOptions};
use tokio::runtime::Builder;

/// Pairs of one way before it is the next one's turn.
const TURN: usize = 100;
const LIMIT: Duration = Duration::from_secs(8);
const TASKS: usize = 32;
const CONNECTIONS: u32 = 8;

/// A server through sqlx alone, with the backend's own statements.
enum Raw {
    Postgres(PgPool),
    Mysql(MySqlPool),
}

/// One of its connections.
enum Connection {
    Postgres(PoolConnection<sqlx::Postgres>),
    Mysql(PoolConnection<sqlx::MySql>),
}

/// One database.
struct Place {
    name: &'static str,
    url: String,
    raw: Raw,
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    // Beside the runtime's threads, which then have the connections alone; all ways pay the same for that.
    runtime.block_on(all());
}

async fn all() {
    let server = postgres::PgProcess::start(&["fsync=on"]).expect("PostgreSQL starts");
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
    let raw = Raw::Postgres(pool.connect(&server.url()).await.expect("a pool"));
    let place = Place { name: "PostgreSQL", url: server.url(), raw };
    measure(&place).await;
    hand_off(&place).await;
    waiters(&place).await;
    drop(server);
    let server = mysql::MariaProcess::start(&["--innodb-flush-log-at-trx-commit=1"]).expect("MariaDB starts");
    let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
    let raw = Raw::Mysql(pool.connect(&server.url()).await.expect("a pool"));
    let place = Place { name: "MariaDB", url: server.url(), raw };
    measure(&place).await;
    hand_off(&place).await;
    waiters(&place).await;
}

/// One after the other, 32 at once, and again with a million rows.
async fn measure(place: &Place) {
    // The first makes the tables; then nobody looks for idle rows while the rest is measured.
    place.backend().await;
    place.raw.prepare().await;
    let backend = place.backend().await;
    let client = LockClient::builder(place.backend().await).build().expect("a client");
    let mut few = Duration::ZERO;
    for rows in [1_000, 1_000_000] {
        place.raw.fill(rows).await;
        let p50 = alone(place, &backend, &client, rows).await;
        if rows == 1_000 {
            few = p50;
        } else {
            println(format_args!("  {rows} rows cost {:.2} x what 1000 cost\n", p50.as_secs_f64() / few.as_secs_f64()));
        }
    }
    together(place, &Arc::new(backend), &client).await;
}

async fn alone(place: &Place, backend: &SqlBackend, client: &LockClient, rows: u64) -> Duration {
    let mut taken = [recorder(), recorder(), recorder()];
    // Each way has one connection.
    let mut raw = place.raw.connection().await;
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        for _ in 0..TURN {
            record(&mut taken[0], raw.pair("raw")).await;
        }
        for _ in 0..TURN {
            record(&mut taken[1], backend_pair(backend, "backend")).await;
        }
        for _ in 0..TURN {
            record(&mut taken[2], client_pair(client, "client")).await;
        }
    }
    println(format_args!("{}, acquire + release, one task, {rows} rows", place.name));
    let floor = quantile(&taken[0], 0.5);
    for (way, histogram) in ["same statements", "backend", "client"].iter().zip(&taken) {
        let (p50, p99) = (quantile(histogram, 0.5), quantile(histogram, 0.99));
        let ratio = p50.as_secs_f64() / floor.as_secs_f64();
        println(format_args!("{way:>16}: p50 {p50:>9.1?}  p99 {p99:>9.1?}  {ratio:.2} x"));
    }
    quantile(&taken[2], 0.5)
}

async fn together(place: &Place, backend: &Arc<SqlBackend>, client: &LockClient) {
    println(format_args!("{}, {TASKS} tasks on names of their own, {CONNECTIONS} connections", place.name));
    let mut rates = [0.0; 3];
    // In turns, twice, so that noise meets all of them.
    for _ in 0..2 {
        rates[0] += rate(async |name: String| place.raw.connection().await.pair(&name).await).await;
        rates[1] += rate(async |name: String| backend_pair(backend, &name).await).await;
        rates[2] += rate(async |name: String| client_pair(client, &name).await).await;
    }
    for (way, rate) in ["same statements", "backend", "client"].iter().zip(rates) {
        println(format_args!("{way:>16}: {:>6.0} pairs/s  {:.2} x", rate / 2.0, rate / rates[0]));
    }
}

/// How many pairs all tasks make in a second. They are futures of one task: what differs is what they wait for.
async fn rate(pair: impl AsyncFn(String)) -> f64 {
    let (count, begun) = (AtomicU64::new(0), Instant::now());
    let limit = LIMIT / 2;
    let tasks = (0..TASKS).map(|task| {
        let (count, pair) = (&count, &pair);
        async move {
            while begun.elapsed() < limit {
                pair(format!("job{task}")).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    lock_core::reexport::futures_util::future::join_all(tasks).await;
    count.into_inner() as f64 / begun.elapsed().as_secs_f64()
}

/// From the call of a release in one client to the guard in another.
async fn hand_off(place: &Place) {
    let (one, other) = (place.client().await, place.client().await);
    let mut taken = recorder();
    for _ in 0..300 {
        let guard = one.lock("baton").acquire().await.expect("free");
        let waiter = tokio::spawn(other.lock("baton").acquire());
        tokio::time::sleep(Duration::from_millis(30)).await;
        let released_at = Instant::now();
        let (released, got) = tokio::join!(guard.release(), waiter);
        let got = got.expect("no panic").expect("granted");
        let nanos = u64::try_from(released_at.elapsed().as_nanos()).expect("small");
        taken.record(nanos).expect("the histogram grows");
        released.expect("released");
        got.release().await.expect("released");
    }
    let (p50, p99) = (quantile(&taken, 0.5), quantile(&taken, 0.99));
    println(format_args!("{}, handed to another client: p50 {p50:.1?}  p99 {p99:.1?}", place.name));
}

/// What a thousand waiters of one client cost while the lock stays held.
async fn waiters(place: &Place) {
    let (holder, client) = (place.client().await, place.client().await);
    let guard = holder.lock("held").acquire().await.expect("free");
    let waiters: Vec<_> = (0..1_000).map(|_| tokio::spawn(client.lock("held").acquire())).collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (before, begun) = (place.raw.statements().await, Instant::now());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let made = place.raw.statements().await - before;
    let per_second = made as f64 / begun.elapsed().as_secs_f64();
    println(format_args!("{}, 1000 waiters of one client: {per_second:.1} statements/s\n", place.name));
    for waiter in waiters {
        waiter.abort();
    }
    guard.release().await.expect("released");
}

impl Place {
    async fn backend(&self) -> SqlBackend {
        let config = ServerConfig::new(&self.url).expect("a good URL").max_connections(CONNECTIONS);
        SqlBackend::server(&config).await.expect("the server takes us")
    }

    async fn client(&self) -> LockClient {
        LockClient::builder(self.backend().await).build().expect("a client")
    }
}

const PG_CLAIM: &str = include_str!("../sql/claim.postgres.sql");
const PG_RELEASE: &str = include_str!("../sql/release.postgres.sql");
const MY_CLAIM: &str = include_str!("../sql/claim.mysql.sql");
const MY_RELEASE: &str = include_str!("../sql/release.mysql.sql");

impl Raw {
    /// The sessions' settings are the backend's, and no sweep is due.
    async fn prepare(&self) {
        match self {
            Raw::Postgres(pool) => {
                let swept = "UPDATE leasehold_schema SET swept = (extract(EPOCH FROM now()) * 1000000)::bigint";
                sqlx::query(swept).execute(pool).await.expect("rights");
            }
            Raw::Mysql(pool) => {
                let settings = "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED";
                sqlx::query(settings).execute(pool).await.expect("settings");
                let swept = "UPDATE leasehold_schema SET swept = UNIX_TIMESTAMP() * 1000000";
                sqlx::query(swept).execute(pool).await.expect("rights");
            }
        }
    }

    async fn connection(&self) -> Connection {
        match self {
            Raw::Postgres(pool) => Connection::Postgres(pool.acquire().await.expect("a connection")),
            Raw::Mysql(pool) => Connection::Mysql(pool.acquire().await.expect("a connection")),
        }
    }

    /// Puts free rows into the table until it has so many.
    async fn fill(&self, rows: u64) {
        let rows = i64::try_from(rows).expect("not so many");
        match self {
            Raw::Postgres(pool) => {
                let insert = "INSERT INTO leasehold_locks (namespace, family, name, slot, token, expires)
                    SELECT '', 'lock', convert_to('row' || i, 'UTF8'), 0, i, (extract(EPOCH FROM now()) * 1000000)::bigint
                    FROM generate_series(1, $1) AS i ON CONFLICT DO NOTHING";
                sqlx::query(insert).bind(rows).execute(pool).await.expect("rows");
                sqlx::query("VACUUM ANALYZE leasehold_locks").execute(pool).await.expect("vacuum");
            }
            Raw::Mysql(pool) => {
                let insert = "INSERT IGNORE INTO leasehold_locks (namespace, family, name, slot, token, expires)
                    SELECT '', 'lock', CAST(CONCAT('row', seq) AS BINARY), 0, seq, UNIX_TIMESTAMP() * 1000000
                    FROM seq_1_to_1000000 WHERE seq <= ?";
                sqlx::query(insert).bind(rows).execute(pool).await.expect("rows");
            }
        }
    }

    /// How many statements the server has run.
    async fn statements(&self) -> i64 {
        match self {
            // Each is a transaction of its own; this one is, too.
            Raw::Postgres(pool) => {
                let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
                sqlx::query_scalar(sql).fetch_one(pool).await.expect("statistics")
            }
            Raw::Mysql(pool) => {
                let sql = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS
                    WHERE VARIABLE_NAME = 'QUESTIONS'";
                sqlx::query_scalar(sql).fetch_one(pool).await.expect("statistics")
            }
        }
    }
}

impl Connection {
    async fn pair(&mut self, name: &str) {
        let owner = ClaimId::random().as_u128().to_be_bytes();
        match self {
            Connection::Postgres(connection) => {
                let key = |sql| sqlx::query(sql).bind(b"".as_slice()).bind("lock").bind(name.as_bytes()).bind(0_i64);
                let claim = key(PG_CLAIM).bind(owner.as_slice()).bind(30_000_000_i64).bind(0_i64);
                let claim = claim.bind("here").bind(1_i64).bind(None::<&str>);
                assert_eq!(claim.fetch_all(&mut **connection).await.expect("claimed").len(), 1);
                let release = key(PG_RELEASE).bind(owner.as_slice()).bind("channel");
                assert_eq!(release.fetch_all(&mut **connection).await.expect("released").len(), 1);
            }
            Connection::Mysql(connection) => {
                let key =
                    |sql| sqlx::query(sql).bind(b"".as_slice()).bind(b"lock".as_slice()).bind(name.as_bytes()).bind(0);
                let claim = key(MY_CLAIM).bind(owner.as_slice()).bind(0_i64).bind(30_000_000_i64);
                let claim = claim.bind("here").bind(1).bind(None::<&str>).bind(30_000_000_i64).bind(30_000_000_i64);
                assert!(claim.execute(&mut **connection).await.expect("claimed").last_insert_id() > 0);
                let release = key(MY_RELEASE).bind(owner.as_slice());
                assert_eq!(release.execute(&mut **connection).await.expect("released").last_insert_id(), 2);
            }
        }
    }
}

async fn backend_pair(backend: &SqlBackend, name: &str) {
    let claim = Claim {
        namespace: Namespace::default(),
        name: LockName::new(name).expect("a good name"),
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

async fn client_pair(client: &LockClient, name: &str) {
    let guard = client.lock(name).acquire().await.expect("acquired");
    guard.release().await.expect("released");
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

fn quantile(histogram: &Histogram<u64>, quantile: f64) -> Duration {
    Duration::from_nanos(histogram.value_at_quantile(quantile))
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn println(line: std::fmt::Arguments<'_>) {
    println!("{line}");
}
