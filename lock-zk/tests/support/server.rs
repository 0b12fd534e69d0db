//! A ZooKeeper server of the test's own, from the jars that Debian's libzookeeper-java installs.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use async_trait::async_trait;
use conformance_tests::{Outcome, PrivateServer, Recipe, Server};

const JARS: [&str; 2] = ["/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"];

/// A server with a directory and a port of its own.
#[derive(Debug)]
pub(crate) struct PrivateZooKeeper(PrivateServer);

impl PrivateZooKeeper {
    pub(crate) fn start() -> io::Result<Self> {
        if let Some(missing) = JARS.iter().find(|jar| !Path::new(jar).exists()) {
            return Err(io::Error::other(format!("{missing} is missing; apt-get install libzookeeper-java")));
        }
        let recipe: Recipe = Box::new(command);
        PrivateServer::start(
            recipe,
            Box::new(|address| srvr(address).is_ok_and(|said| said.contains("Zookeeper version"))),
        )
        .map(PrivateZooKeeper)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Ends the server as a crash would.
    pub(crate) fn kill(&self) {
        self.0.kill();
    }

    /// Starts it again, with its data.
    pub(crate) fn launch(&self) -> io::Result<()> {
        self.0.launch()
    }
}

fn command(directory: &Path, address: SocketAddr) -> Command {
    let config = directory.join("zoo.cfg");
    // Sessions are ended to the tick, and the bounds are wide, so that cases may choose.
    let text = format!(
        "tickTime=100\nminSessionTimeout=200\nmaxSessionTimeout=60000\ndataDir={}\nclientPort={}\n\
         clientPortAddress={}\nadmin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n",
        directory.join("data").display(),
        address.port(),
        address.ip()
    );
    // A start that finds no configuration says so by itself.
    let _ = fs::write(&config, text);
    let mut command = Command::new("java");
    command
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        // The disk is the machine's; what the process wrote outlives it without.
        .arg("-Dzookeeper.forceSync=no")
        // Directories are reaped all the time, so that every case meets it.
        .arg("-Dznode.container.checkIntervalMs=1000")
        .args(["-cp", &JARS.join(":"), "org.apache.zookeeper.server.ZooKeeperServerMain"])
        .arg(config);
    command
}

/// What the server says of itself.
pub(crate) fn srvr(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"srvr")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

#[async_trait]
impl Server for PrivateZooKeeper {
    async fn restart(&self) -> Outcome {
        self.kill();
        Ok(self.launch()?)
    }

    async fn restart_empty(&self) -> Outcome {
        self.0.kill();
        fs::remove_dir_all(self.0.directory().join("data"))?;
        Ok(self.0.launch()?)
    }

    fn pause(&self) -> Outcome {
        Ok(self.0.pause()?)
    }

    fn resume(&self) -> Outcome {
        Ok(self.0.resume()?)
    }
}
