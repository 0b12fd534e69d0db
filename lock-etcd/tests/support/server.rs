//! An etcd server of a test's own, on free ports, ended by its own handle.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use conformance_tests::{PrivateServer, Recipe, free_address};

/// Starts one server that is its own cluster, with options of `etcd` after its own.
///
/// Its election timeout allows leases of one second, so that tests wait for the end of short ones.
pub(crate) fn start(options: &[&str]) -> io::Result<PrivateServer> {
    let peer = free_address()?;
    let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    let recipe: Recipe = Box::new(move |directory, client| {
        let mut command = member("n1", directory, client, peer, &format!("n1=http://{peer}"));
        command.args(["--heartbeat-interval", "10", "--election-timeout", "100"]).args(&options);
        command
    });
    PrivateServer::start(recipe, Box::new(is_healthy))
}

/// The command of one member of a cluster.
pub(crate) fn member(name: &str, directory: &Path, client: SocketAddr, peer: SocketAddr, cluster: &str) -> Command {
    let mut command = Command::new("etcd");
    let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
    command.args(["--name", name, "--data-dir"]).arg(data(directory));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", cluster, "--logger", "zap", "--log-level", "error"]);
    command
}

/// Where a server keeps its data.
pub(crate) fn data(directory: &Path) -> std::path::PathBuf {
    directory.join("data")
}

/// Whether a server says that it is healthy: then it has a leader.
pub(crate) fn is_healthy(address: SocketAddr) -> bool {
    says(address, "/health").is_ok_and(|answer| answer.contains("\"true\""))
}

/// What a server answers to a plain question.
pub(crate) fn says(address: SocketAddr, path: &str) -> io::Result<String> {
    let limit = Duration::from_millis(500);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
