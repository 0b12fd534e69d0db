//! A Redis server of a test's own, on a free port, ended by its own handle.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use conformance_tests::{PrivateServer, Ready, Recipe};

/// Whether a server keeps what it has across a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    Nothing,
    /// Every write is on the disk before it is answered.
    Everything,
}

/// Starts a server, with options of `redis-server` after its own.
pub(crate) fn start(keeps: Keeps, options: &[&str]) -> io::Result<PrivateServer> {
    start_with_ready(keeps, options, Box::new(answers))
}

/// Starts a server that is ready when this says so.
pub(crate) fn start_with_ready(keeps: Keeps, options: &[&str], ready: Ready) -> io::Result<PrivateServer> {
    let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    let recipe: Recipe = Box::new(move |directory: &Path, address: SocketAddr| {
        let mut command = Command::new("redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", &address.ip().to_string()]);
        command.arg("--dir").arg(directory).args(["--save", ""]);
        if keeps == Keeps::Everything {
            command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        }
        command.args(&options);
        command
    });
    PrivateServer::start(recipe, ready)
}

/// Whether the server answers a PING, be it with a demand to log in.
pub(crate) fn answers(address: SocketAddr) -> bool {
    says(address, b"PING\r\n").is_ok_and(|answer| answer.starts_with("+PONG") || answer.starts_with("-NOAUTH"))
}

/// What a server says to one command, without any client library.
pub(crate) fn says(address: SocketAddr, command: &[u8]) -> io::Result<String> {
    let limit = Duration::from_millis(500);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(command)?;
    let mut answer = [0; 512];
    let count = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}
