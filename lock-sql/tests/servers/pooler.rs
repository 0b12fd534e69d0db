//! PostgreSQL behind PgBouncer's transaction mode, where each transaction may have another session.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use conformance_tests::{PrivateServer, assert_warns, finding};
use lock_core::{
    Attempt, Backend as _, BackendErrorKind, Extension, Level, LockClient, Namespace, Release, Selector, Usage,
};
use lock_sql::{ServerConfig, SqlBackend};
use sqlx::{Connection as _, PgConnection};
use tokio::task::JoinSet;

use crate::{
    LEASE, claim,
    db::Db,
    granted, is_busy,
    programs::{as_postgres, give_to_postgres},
};

/// The program, which Debian keeps out of the path of those who are not root.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("pgbouncer")).find(|program| program.exists());
    found.unwrap_or_else(|| PathBuf::from("/usr/sbin/pgbouncer"))
}

/// PgBouncer before a server, with so many sessions there for all its clients.
fn pooler(server: SocketAddr, sessions: u32) -> PrivateServer {
    let recipe = move |directory: &Path, address: SocketAddr| {
        let settings = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\nunix_socket_dir =\n\
             pool_mode = transaction\ndefault_pool_size = {sessions}\nauth_type = trust\nauth_file = {}\n",
            server.ip(),
            server.port(),
            address.ip(),
            address.port(),
            directory.join("users").display(),
        );
        let written = fs::write(directory.join("pgbouncer.ini"), settings)
            .and_then(|()| fs::write(directory.join("users"), "\"postgres\" \"\"\n"));
        written.expect("the directory is there");
        give_to_postgres(directory);
        let mut command = as_postgres(&program());
        command.arg(directory.join("pgbouncer.ini"));
        command
    };
    let ready = |address: SocketAddr| TcpStream::connect(address).is_ok();
    PrivateServer::start(Box::new(recipe), Box::new(ready)).expect("PgBouncer starts; scripts/install.sh installs it")
}

fn url(pooler: &PrivateServer) -> String {
    format!("postgres://postgres@{}/postgres", pooler.address())
}

fn config(pooler: &PrivateServer) -> ServerConfig {
    ServerConfig::new(url(pooler)).expect("a good URL").without_notifications()
}

async fn backend(pooler: &PrivateServer) -> SqlBackend {
    SqlBackend::server(&config(pooler)).await.unwrap_or_else(|error| panic!("{error}"))
}

fn server() -> (Db, SocketAddr) {
    let db = crate::db::postgres(&["default_transaction_isolation=serializable"]);
    let Db::Postgres(process) = &db else { panic!("it is PostgreSQL") };
    let address = process.address();
    (db, address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_does_there_what_it_does_without_a_pooler() {
    let (db, address) = server();
    let pooler = pooler(address, 2);
    let (one, other) = (backend(&pooler).await, backend(&pooler).await);
    // Each of these would end a text that is not written out with care; 512 bytes are the most.
    let names = ["job", "a'b", "a\\b", "$1", "-- x", "é\u{0}\u{1}\n", &"n".repeat(512)];
    for name in names {
        let held = claim(name);
        let first = granted(&one, &held).await;
        assert!(is_busy(&other, &claim(name)).await, "{name:?}");
        // Sent again, as after a lost answer, it is the same grant.
        assert_eq!(granted(&one, &held).await.token, first.token, "{name:?}");
        assert!(matches!(one.extend(&held, LEASE * 2).await.expect("extend"), Extension::Extended(_)));
        let seen = other.inspect(&Selector::name(name)).await.expect("inspect");
        assert_eq!((seen.len(), seen[0].holders[0].claim), (1, held.id), "{name:?}");
        assert_eq!(seen[0].holders[0].label.as_deref(), Some("night\u{fffd}ly"));
        assert_eq!(one.release(&held).await.expect("release"), Release::Removed);
        assert!(granted(&other, &claim(name)).await.token > first.token, "{name:?}");
    }
    assert_eq!(db.admin().await.number("SELECT count(*) FROM leasehold_locks").await, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_that_race_through_few_sessions_have_one_winner() {
    let (_db, address) = server();
    let pooler = pooler(address, 3);
    let backends = [Arc::new(backend(&pooler).await), Arc::new(backend(&pooler).await)];
    for _ in 0..20 {
        let mut racers = JoinSet::new();
        for racer in 0..8 {
            let backend = Arc::clone(&backends[racer % 2]);
            racers.spawn(async move {
                let claim = claim("job");
                let answer = backend.attempt(&claim).await.expect("no error reaches the caller");
                matches!(answer, Attempt::Granted(_)).then_some(claim)
            });
        }
        let winners: Vec<_> = racers.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(backends[0].release(&winners[0]).await.expect("release"), Release::Removed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_by_the_poll_and_outlive_a_restart_of_the_pooler() {
    let (db, address) = server();
    let pooler = pooler(address, 2);
    let mut admin = db.admin().await;
    // Short enough that the test need not wait for long for a renewal.
    let client = |lease| {
        let config = config(&pooler);
        async move {
            let backend = SqlBackend::server(&config).await.expect("the pooler takes us");
            LockClient::builder(backend).lease(lease).build().expect("a client")
        }
    };
    let (holder, waits) = (client(Duration::from_secs(12)).await, client(LEASE).await);
    for restarts in [false, true] {
        let guard = holder.lock("job").acquire().await.expect("free");
        let waiter = tokio::spawn(waits.lock("job").wait(LEASE).acquire());
        if restarts {
            pooler.kill();
            pooler.launch().expect("it starts again");
        }
        let end = "SELECT expires FROM leasehold_locks";
        let before = admin.number(end).await;
        let renewed = async {
            while admin.number(end).await == before {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(LEASE, renewed).await.expect("it is renewed");
        assert!(guard.is_held(), "the pooler's restart is no loss");
        assert!(!waiter.is_finished(), "it waits");
        guard.extend(LEASE).await.expect("still its own");
        guard.release().await.expect("release");
        let served = tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic");
        served.expect("granted").release().await.expect("release");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_row_is_told_in_time_and_the_sessions_stay_as_they_were() {
    let (db, address) = server();
    let pooler = pooler(address, 1);
    let backend = backend(&pooler).await;
    let first = claim("job");
    granted(&backend, &first).await;
    backend.release(&first).await.expect("release");
    let mut admin = db.admin().await;
    admin.execute("BEGIN").await;
    admin.execute("UPDATE leasehold_locks SET host = 'blocked'").await;
    let answer = tokio::time::timeout(Duration::from_secs(20), backend.attempt(&claim("job"))).await.expect("an end");
    let error = answer.expect_err("the row stays locked");
    assert!(error.to_string().contains("another transaction"), "{error}");
    admin.execute("ROLLBACK").await;

    let options = url(&pooler).parse::<sqlx::postgres::PgConnectOptions>().expect("a URL").extra_float_digits(None);
    let mut neighbour = PgConnection::connect_with(&options).await.expect("the pooler takes it");
    let asks = "SELECT current_setting('lock_timeout') || ' ' || current_setting('transaction_isolation') || ' '
        || (SELECT count(*) FROM pg_prepared_statements)";
    let row = sqlx::raw_sql(asks).fetch_one(&mut neighbour).await.expect("an answer");
    assert_eq!(sqlx::Row::get::<String, _>(&row, 0), "0 serializable 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_sees_the_pooler_and_says_what_to_set() {
    let (_db, address) = server();
    let pooler = pooler(address, 1);
    let usage = || Usage::new(Namespace::default(), LEASE);
    let told = backend(&pooler).await.check(&usage()).await.expect("an answer");
    assert_eq!(finding(&told, "pooler").level, Level::Good);
    assert!(finding(&told, "pooler").evidence.contains("a pooler is between"), "{told:?}");

    // Such parameters are the session's, which is nobody's here.
    let options = ServerConfig::new(url(&pooler) + "?options=-c%20work_mem=1MB").expect("a good URL");
    let error = SqlBackend::server(&options.without_notifications()).await.expect_err("the pooler refuses them");
    assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    assert!(error.to_string().contains("unsupported startup parameter: options"), "{error}");

    // The first to use a session finds it as its driver believes, and who comes next does not.
    let listens = ServerConfig::new(url(&pooler)).expect("a good URL");
    let first = SqlBackend::server(&listens).await.expect("a fresh session");
    assert_warns(&first.check(&usage()).await.expect("an answer"), "pooler", "no notification arrives");
    let error = SqlBackend::server(&listens).await.expect_err("the session has statements of the first");
    assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    assert!(error.to_string().contains("listen=off"), "{error}");
}
