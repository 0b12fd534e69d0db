//! Real servers for the command, each private to its test and ended with it.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use conformance_tests::{PrivateServer, free_address};

/// A Redis server.
pub(crate) fn redis() -> PrivateServer {
    let recipe = |directory: &Path, address: SocketAddr| {
        let mut command = Command::new("redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(directory);
        command
    };
    start(recipe, |address| says(address, "PING\r\nQUIT\r\n").contains("PONG"))
}

/// An etcd member, alone.
pub(crate) fn etcd() -> PrivateServer {
    let peer = free_address().expect("a port");
    let recipe = move |directory: &Path, address: SocketAddr| {
        let (client, peer) = (format!("http://{address}"), format!("http://{peer}"));
        let mut command = Command::new("etcd");
        command.args(["--name", "n1", "--heartbeat-interval", "10", "--election-timeout", "100"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("n1={peer}"), "--data-dir"]).arg(directory.join("data"));
        command
    };
    start(recipe, |address| says(address, "GET /health HTTP/1.0\r\n\r\n").contains("\"true\""))
}

/// A ZooKeeper server, alone.
pub(crate) fn zookeeper() -> PrivateServer {
    let recipe = |directory: &Path, address: SocketAddr| {
        let config = directory.join("zoo.cfg");
        let text = format!(
            "tickTime=200\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             maxClientCnxns=0\n4lw.commands.whitelist=*\n",
            directory.join("data").display(),
            address.port()
        );
        fs::write(&config, text).expect("a file");
        let jars = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-cp", jars, "org.apache.zookeeper.server.ZooKeeperServerMain"]).arg(config);
        command
    };
    start(recipe, |address| says(address, "srvr").contains("Zookeeper version"))
}

/// A PostgreSQL server.
pub(crate) fn postgres() -> PrivateServer {
    let recipe = |directory: &Path, address: SocketAddr| {
        let data = directory.join("data");
        if !data.exists() {
            give(directory, "postgres");
            let mut initdb = postgres_program("initdb");
            run(initdb.args(["-N", "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "-D"]).arg(&data));
        }
        let mut command = postgres_program("postgres");
        command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &address.port().to_string(), "-k"]).arg(directory);
        // A kill leaves no segment of shared memory behind.
        command.args(["-c", "shared_memory_type=mmap", "-c", "dynamic_shared_memory_type=mmap"]);
        command
    };
    start(recipe, |address| {
        let mut ask = postgres_program("pg_isready");
        ask.args(["-q", "-h", "127.0.0.1", "-p", &address.port().to_string()]);
        ask.status().is_ok_and(|status| status.success())
    })
}

/// A MariaDB server with a database `leasehold`.
pub(crate) fn mariadb() -> PrivateServer {
    let recipe = |directory: &Path, address: SocketAddr| {
        let data = format!("--datadir={}", directory.join("data").display());
        let init = directory.join("init.sql");
        let user = if is_root() { "--user=root" } else { "--skip-name-resolve" };
        if !init.exists() {
            let mut install = Command::new("mariadb-install-db");
            install.args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db", user]);
            run(&mut install);
            fs::write(&init, "CREATE DATABASE IF NOT EXISTS leasehold;\n").expect("a file");
        }
        let mut command = Command::new("mariadbd");
        command.args(["--no-defaults", &data, "--bind-address=127.0.0.1", user]);
        command.arg(format!("--port={}", address.port())).arg(format!("--init-file={}", init.display()));
        command.arg(format!("--socket={}", directory.join("s").display()));
        command
    };
    start(recipe, |address| {
        let mut ask = Command::new("mariadb-admin");
        ask.args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp", "ping"]);
        ask.arg(format!("--port={}", address.port())).stdout(Stdio::null()).stderr(Stdio::null());
        ask.status().is_ok_and(|status| status.success())
    })
}

fn start(
    recipe: impl Fn(&Path, SocketAddr) -> Command + Send + Sync + 'static,
    ready: impl Fn(SocketAddr) -> bool + Send + Sync + 'static,
) -> PrivateServer {
    PrivateServer::start(Box::new(recipe), Box::new(ready)).expect("the server starts")
}

/// What a server answers to a text, or nothing while it is not there.
fn says(address: SocketAddr, text: &str) -> String {
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(text.as_bytes())?;
        let mut said = Vec::new();
        // What came before a timeout counts as well.
        let _ = stream.read_to_end(&mut said);
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    asked().unwrap_or_default()
}

fn run(command: &mut Command) {
    let done = command.stdin(Stdio::null()).output().expect("the program starts");
    assert!(done.status.success(), "{command:?}: {done:?}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// PostgreSQL refuses to run as root: there it runs as its own user.
fn postgres_program(name: &str) -> Command {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian: Option<PathBuf> = versions.map(|version| version.path().join("bin").join(name)).max();
    let program = debian.unwrap_or_else(|| name.into());
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

fn give(directory: &Path, user: &str) {
    if is_root() {
        run(Command::new("chown").arg(user).arg(directory));
    }
}
