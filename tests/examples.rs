//! The examples, run as programs.

#[path = "../lock-redis/tests/support/server.rs"]
mod server;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use server::Keeps;

/// The program of an example, which `cargo test` has built beside this test.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let built = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").join("examples").join(name);
    assert!(built.exists(), "{} is not built: cargo build --examples --all-features", built.display());
    built
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}

#[track_caller]
fn tells(name: &str, expected: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let told = succeeds(Command::new(program(name)).current_dir(directory.path()));
    for expected in expected {
        assert!(told.contains(expected), "{name} does not say {expected:?}:\n{told}");
    }
}

#[test]
fn a_scheduled_job_runs_once_for_each_tick() {
    tells("scheduled", &["3 ticks on 3 hosts: 3 runs"]);
}

#[test]
fn a_cache_is_rebuilt_by_one() {
    tells("cache", &["the cache was rebuilt 1 time"]);
}

#[test]
fn a_hot_key_is_split() {
    tells("hot_key", &["at one name"]);
}

#[test]
fn a_store_that_is_down_is_told_from_a_lock_that_is_held() {
    tells("store_down", &["down: held in this process alone", "back: held everywhere"]);
}

#[test]
fn a_late_writer_is_refused() {
    tells("fencing", &["the table refuses it"]);
}

#[test]
fn metrics_are_scraped() {
    tells("metrics", &["the report took too long: MaxHold", "outcome=\"busy\",group=\"order\"} 1"]);
}

#[test]
fn workers_take_turns() {
    let directory = tempfile::tempdir().expect("a directory");
    let told = succeeds(Command::new(program("turns")).arg(directory.path()));
    assert!(told.contains("0 + 4 x 25 = 100"), "{told}");
}

fn example(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn one_line_changes_the_store() {
    let (sqlite, redis) = (example("swap/sqlite.toml"), example("swap/redis.toml"));
    let changed = sqlite.lines().zip(redis.lines()).filter(|(a, b)| a != b).count();
    assert_eq!((changed, sqlite.lines().count()), (1, redis.lines().count()));

    let directory = tempfile::tempdir().expect("a directory");
    let run = |config: &str| {
        let path = directory.path().join("leasehold.toml");
        fs::write(&path, config).expect("a file");
        succeeds(Command::new(program("swap")).arg(&path).current_dir(directory.path()))
    };
    assert_eq!(run(&sqlite), "locked on sqlite\n");
    assert!(directory.path().join("locks.db").exists(), "the store is the file that the configuration names");
    let server = server::start(Keeps::Nothing, &[]).expect("redis-server starts");
    assert_eq!(run(&redis.replace("127.0.0.1:6379", &server.address().to_string())), "locked on redis\n");
}

/// A running service, ended when dropped.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(config: &Path) -> Self {
        let directory = config.parent().expect("a file in a directory");
        let mut command = Command::new(program("service"));
        let mut child =
            command.arg(config).current_dir(directory).stdout(Stdio::piped()).spawn().expect("the service starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it is");
        let address = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no address: {line:?}")).to_owned();
        Service { child, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_web_service_locks_and_shows_its_metrics_on_either_store() {
    let server = server::start(Keeps::Nothing, &[]).expect("redis-server starts");
    let redis = example("swap/redis.toml").replace("127.0.0.1:6379", &server.address().to_string());
    for (store, config) in [("sqlite", example("swap/sqlite.toml")), ("redis", redis)] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("leasehold.toml");
        fs::write(&path, config).expect("a file");
        let mut service = Service::start(&path);
        let paid = service.ask("POST /orders/1001/pay");
        assert!(paid.starts_with("HTTP/1.1 200") && paid.contains("order 1001 is paid"), "{paid}");
        let page = service.ask("GET /metrics");
        let series =
            format!("leasehold_acquisitions_total{{store=\"{store}\",namespace=\"shop\",outcome=\"granted\"}} 1");
        assert!(page.contains(&series), "{series} is not in\n{page}");
        let id = service.child.id().to_string();
        succeeds(Command::new("kill").args(["-TERM", &id]));
        assert!(service.child.wait().expect("it ends").success(), "a service that is asked to stop closes its client");
    }
}
