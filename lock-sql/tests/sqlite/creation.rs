//! Many processes that create one store at once.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use lock_core::Backend as _;
use lock_sql::SqlBackend;

use crate::{Place, claim, granted};

const WORKERS: usize = 8;
const ROUNDS: usize = 5;
const STORE: &str = "LEASEHOLD_SQL_TEST_STORE";

#[test]
fn eight_processes_that_create_the_store_at_once_all_succeed() {
    for round in 0..ROUNDS {
        let place = Place::new();
        let mut workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                Command::new(env::current_exe().expect("this test"))
                    .args(["--exact", "creation::worker_of_the_creation", "--nocapture"])
                    .env(STORE, &place.path)
                    .stdout(Stdio::null())
                    .spawn()
                    .expect("a worker starts")
            })
            .collect();
        until(|| ready_files(&place.path) == WORKERS);
        fs::write(gate(&place.path), "").expect("the gate opens");
        for worker in &mut workers {
            assert!(worker.wait().expect("a worker ends").success(), "round {round}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut oracle = place.oracle().await;
            assert_eq!(oracle.rows().await.len(), WORKERS, "round {round}");
            assert_eq!(oracle.number("SELECT count(*) FROM leasehold_schema").await, 1);
        });
    }
}

/// Does nothing unless it was started by the test above.
#[tokio::test]
async fn worker_of_the_creation() {
    let Some(path) = env::var_os(STORE).map(PathBuf::from) else { return };
    let name = std::process::id().to_string();
    fs::write(path.with_file_name(format!("ready-{name}")), "").expect("ready");
    until(|| gate(&path).exists());
    let backend = SqlBackend::sqlite(&lock_sql::SqliteConfig::new(&path)).await.expect("the store is created");
    granted(&backend, &claim(&name)).await;
    backend.close().await;
}

#[tokio::test]
async fn many_backends_of_one_process_that_create_the_store_at_once_share_it() {
    let place = Place::new();
    let opening: Vec<_> = (0..WORKERS)
        .map(|_| {
            let config = place.config();
            tokio::spawn(async move { SqlBackend::sqlite(&config).await })
        })
        .collect();
    let mut backends = Vec::new();
    for backend in opening {
        backends.push(backend.await.expect("no panic").expect("the store is created"));
    }
    let held = claim("job");
    granted(&backends[0], &held).await;
    for backend in &backends[1..] {
        crate::busy(backend, &claim("job")).await;
    }
}

#[tokio::test]
async fn a_connection_is_shared_by_runtimes_and_outlives_the_one_that_opened_it() {
    let place = Place::new();
    let config = place.config();
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(SqlBackend::sqlite(&config)).expect("the store opens")
    });
    let backend = other.join().expect("no panic");
    let held = claim("job");
    granted(&backend, &held).await;
    backend.release(&held).await.expect("release");
}

fn gate(path: &Path) -> PathBuf {
    path.with_file_name("gate")
}

fn ready_files(path: &Path) -> usize {
    let directory = path.parent().expect("a directory");
    let names =
        fs::read_dir(directory).expect("readable").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("ready-")).count()
}

fn until(condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < limit, "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}
