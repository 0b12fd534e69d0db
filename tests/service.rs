//! The example of a web service, run as a program: it locks, and shows its metrics, on SQLite and on Redis.

#[path = "../lock-redis/tests/support/server.rs"]
mod server;

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use server::Keeps;

/// A running service, ended when dropped.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(config: &Path) -> Self {
        let directory = config.parent().expect("a file in a directory");
        let test = env::current_exe().expect("this test has a path");
        let program = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").join("examples/service");
        assert!(program.exists(), "{} is not built: cargo build --examples --all-features", program.display());
        let mut command = Command::new(program);
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
    for (store, url) in [("sqlite", "sqlite:locks.db".to_owned()), ("redis", format!("redis://{}", server.address()))] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("shop.toml");
        fs::write(&path, format!("[lock]\nstore = \"{url}\"\nnamespace = \"shop\"\nlease = \"10s\"\n"))
            .expect("a file");
        let mut service = Service::start(&path);
        let paid = service.ask("POST /orders/1001/pay");
        assert!(paid.starts_with("HTTP/1.1 200") && paid.contains("order 1001 is paid"), "{paid}");
        let page = service.ask("GET /metrics");
        let series =
            format!("leasehold_acquisitions_total{{store=\"{store}\",namespace=\"shop\",outcome=\"granted\"}} 1");
        assert!(page.contains(&series), "{series} is not in\n{page}");
        let id = service.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        assert!(service.child.wait().expect("it ends").success(), "a service that is asked to stop closes its client");
    }
}
