//! The command on a Redis server.
#![cfg(feature = "redis")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// A server of the test's own, ended with its handle.
struct Server {
    child: Child,
    address: SocketAddr,
    _data: TempDir,
}

impl Server {
    fn start() -> Self {
        let data = tempfile::tempdir().expect("a temporary directory");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
        let mut command = Command::new("redis-server");
        command.args(["--port", &free.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(data.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut server =
            Server { child: command.spawn().expect("redis-server is installed"), address: free, _data: data };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !server.says("PING").starts_with("+PONG") {
            assert!(Instant::now() < deadline, "redis-server does not answer");
            assert!(server.child.try_wait().expect("a child").is_none(), "redis-server has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    /// What the server says to a command, or nothing while it is not there.
    fn says(&self, command: &str) -> String {
        let asked = TcpStream::connect(self.address).and_then(|mut stream| {
            stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes())?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            Ok(said)
        });
        asked.unwrap_or_default()
    }

    fn leasehold(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["--store", &format!("redis://{}", self.address), "--namespace", "shop"]).args(arguments);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = (self.child.kill(), self.child.wait());
    }
}

#[test]
fn run_holds_the_lock_on_the_server_while_the_command_runs_and_no_longer() {
    let server = Server::start();
    let key = "leasehold/{shop/lock/nightly}";
    let print = "printf '%s ' $LEASEHOLD_NAME $LEASEHOLD_FENCING_TOKEN; read -r line; exit 3";
    let mut holder = server.leasehold(&["run", "nightly", "--", "sh", "-c", print]);
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut told = [0; 25];
    holder.stdout.as_mut().expect("a pipe").read_exact(&mut told).expect("the command runs");
    let told = String::from_utf8_lossy(&told).into_owned();
    let token: u64 = told.trim_end().strip_prefix("nightly ").expect("the name").parse().expect("a token");

    assert!(server.says(&format!("GET {key}")).contains(&format!(" {token} ")), "the server shows the claim");
    let refused = server.leasehold(&["run", "-n", "nightly", "--", "true"]).output().expect("the command starts");
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");

    drop(holder.stdin.take());
    assert_eq!(holder.wait().expect("a child").code(), Some(3), "the command's own code");
    assert_eq!(server.says(&format!("EXISTS {key}")).lines().next(), Some(":0"), "nothing is left");
    let next = server.leasehold(&["run", "nightly", "--", "sh", "-c", "echo $LEASEHOLD_FENCING_TOKEN"]).output();
    let next: u64 = String::from_utf8_lossy(&next.expect("the command starts").stdout).trim().parse().expect("a token");
    assert!(next > token, "{next} after {token}");
}

#[test]
fn a_server_that_is_not_there_or_wants_a_login_has_a_code_of_its_own() {
    let server = Server::start();
    server.says("CONFIG SET requirepass s3cret-horse");
    let refused = server.leasehold(&["run", "x", "--", "true"]).output().expect("the command starts");
    assert_eq!(refused.status.code(), Some(78), "{refused:?}");
    assert!(!format!("{refused:?}").contains("s3cret"), "{refused:?}");
    let address = server.address;
    drop(server);
    let store = format!("redis://:s3cret-horse@{address}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    let gone = command.args(["--store", &store, "run", "x", "--", "true"]).output().expect("the command starts");
    assert_eq!(gone.status.code(), Some(69), "{gone:?}");
    assert!(!format!("{gone:?}").contains("s3cret"), "{gone:?}");
}
