//! The examples, run as they were built, with what they tell. Each asserts its own claim and fails if it does not hold.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The example's program, which `cargo test` builds beside the tests unless it is told to build one test alone.
fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("this test has a path");
    let built = test.parent().and_then(Path::parent).expect("target/PROFILE/deps").join("examples");
    let program = built.join(name).with_extension(env::consts::EXE_EXTENSION);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let written = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let again = "build it with the features of this test: cargo build --examples --features ...";
    assert!(program.exists(), "{} is not there; {again}", program.display());
    assert!(written(&program) >= written(&source), "{} is older than its source; {again}", program.display());
    program
}

/// What an example tells; it must end well.
fn told<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> String {
    let mut command = Command::new(program(name));
    let done = command.args(arguments).stdin(Stdio::null()).output().expect("it starts");
    assert!(done.status.success(), "{name}: {done:?}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

const NONE: [&str; 0] = [];

#[test]
fn one_host_of_three_runs_a_scheduled_job() {
    let told = told("scheduled", NONE);
    assert_eq!(told.matches("ran the job, the others skipped").count(), 2, "{told}");
    assert!(told.ends_with("without min_hold 3 hosts ran it\n"), "{told}");
}

#[test]
fn one_instance_of_many_rebuilds_the_cache() {
    assert_eq!(told("cache_rebuild", NONE), "8 instances read the page, and it was built 1 time\n");
}

#[test]
fn several_names_let_several_holders_in() {
    let told = told("hot_key", NONE);
    assert!(told.starts_with("shelves: 1, pieces sold: 40, buyers at once: 1\nshelves: 4, pieces sold: 40,"), "{told}");
}

#[test]
fn a_service_is_tested_without_a_server() {
    assert!(told("unit_test", NONE).starts_with("4 tests passed"));
}

#[cfg(feature = "metrics")]
#[test]
fn metrics_are_served() {
    assert!(told("metrics", NONE).contains("leasehold_acquisitions_total{"));
}

#[cfg(feature = "sqlite")]
mod on_sqlite {
    use super::{NONE, told};

    #[test]
    fn a_table_refuses_a_late_write() {
        assert!(told("fencing", NONE).ends_with("the table refuses it\n"));
    }

    #[test]
    fn a_local_lock_excludes_within_one_host_alone() {
        let told = told("store_down", NONE);
        assert!(told.contains("while the first one still holds. That is the price\n"), "{told}");
        assert!(told.ends_with("the store is back, and grants again\n"), "{told}");
    }

    #[test]
    fn workers_lose_no_update() {
        let directory = tempfile::tempdir().expect("a directory");
        let told = told("turns", [directory.path()]);
        assert!(told.starts_with("0 + 4 x 25 = 100,"), "{told}");
    }
}

#[cfg(all(feature = "redis", feature = "sqlite"))]
mod on_two_stores {
    use std::{
        fs,
        io::{Read as _, Write as _},
        net::{SocketAddr, TcpStream},
        path::Path,
        process::Command,
        time::Duration,
    };

    use conformance_tests::PrivateServer;

    use super::told;

    fn redis() -> PrivateServer {
        let recipe = |directory: &Path, address: SocketAddr| {
            let mut command = Command::new("redis-server");
            command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
            command.arg("--dir").arg(directory);
            command
        };
        PrivateServer::start(Box::new(recipe), Box::new(answers)).expect("redis-server is installed and starts")
    }

    fn answers(address: SocketAddr) -> bool {
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"PING\r\nQUIT\r\n")?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            Ok(said)
        };
        asked().is_ok_and(|said| said.starts_with("+PONG"))
    }

    #[test]
    fn one_line_of_configuration_swaps_the_store() {
        let directory = tempfile::tempdir().expect("a directory");
        let server = redis();
        let lines = |store: &str| format!("[lock]\nstore = \"{store}\"\nnamespace = \"shop\"\nlease = \"10s\"\n");
        let sqlite = lines(&format!("sqlite:{}", directory.path().join("locks.db").display()));
        let redis = lines(&format!("redis://{}", server.address()));
        let changed = sqlite.lines().zip(redis.lines()).filter(|(one, other)| one != other).count();
        assert_eq!(changed, 1);
        for (text, store) in [(sqlite, "sqlite"), (redis, "redis")] {
            let path = directory.path().join("shop.toml");
            fs::write(&path, text).expect("a file");
            assert_eq!(told("swap_store", [&path]), format!("two clients took turns on {store}\n"));
        }
    }

    #[test]
    fn without_a_configuration_it_takes_a_file() {
        assert_eq!(told("swap_store", super::NONE), "two clients took turns on sqlite\n");
    }
}
