//! A private server process: a directory of its own, a free port, ready when it answers, ended by its own handle.

use std::{
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Says how a server is started in a directory and on a port.
pub type Recipe = Box<dyn Fn(&Path, SocketAddr) -> Command + Send + Sync>;

/// Says whether the server at this address answers in its own protocol.
pub type Ready = Box<dyn Fn(SocketAddr) -> bool + Send + Sync>;

/// A server that belongs to this test alone. Dropping it ends the server and removes its data.
pub struct PrivateServer {
    child: Mutex<Option<Child>>,
    directory: TempDir,
    address: SocketAddr,
    recipe: Recipe,
    ready: Ready,
}

impl PrivateServer {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it cannot be started, ends by itself, or does not answer within half a minute. The error shows its output.
    pub fn start(recipe: Recipe, ready: Ready) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("leasehold-test-").tempdir()?;
        let server = PrivateServer { child: Mutex::new(None), directory, address: free_address()?, recipe, ready };
        server.launch()?;
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its data.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills it, as a crash of its host would.
    pub fn kill(&self) {
        if let Some(mut child) = self.lock().take() {
            // Both fail only for a process that has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again after [`kill`](PrivateServer::kill), on the same data and address.
    ///
    /// # Errors
    ///
    /// As for [`start`](PrivateServer::start).
    pub fn launch(&self) -> io::Result<()> {
        let output = self.output();
        let log = File::options().create(true).append(true).open(&output)?;
        let mut command = (self.recipe)(self.directory.path(), self.address);
        let mut child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let deadline = Instant::now() + Duration::from_secs(30);
        let failed = loop {
            // A server of someone else could answer on this port: ours must be alive as well.
            if let Some(status) = child.try_wait()? {
                break format!("the server ended with {status}");
            }
            if (self.ready)(self.address) {
                *self.lock() = Some(child);
                return Ok(());
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                break "the server did not answer within 30 s".to_owned();
            }
            thread::sleep(Duration::from_millis(10));
        };
        Err(io::Error::other(format!("{failed}; it wrote:\n{}", std::fs::read_to_string(output).unwrap_or_default())))
    }

    /// Stops the process, so that what it is sent waits in its buffers.
    ///
    /// # Errors
    ///
    /// When it is not running.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a stopped process go on.
    ///
    /// # Errors
    ///
    /// When it is not running.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let guard = self.lock();
        let child = guard.as_ref().ok_or(io::ErrorKind::NotFound)?;
        send(child.id(), signal)
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("server.log")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl std::fmt::Debug for PrivateServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivateServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Sends a signal to a process that this one started and has not yet waited for.
pub(crate) fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// An address on the loopback interface that nobody listens on now.
///
/// # Errors
///
/// When none can be bound.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_what_it_wrote() {
        let recipe: Recipe = Box::new(|_, _| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo no such option >&2; exit 3"]);
            command
        });
        let error = PrivateServer::start(recipe, Box::new(|_| false)).expect_err("it ended");
        assert!(error.to_string().contains("no such option"), "{error}");
        assert!(error.to_string().contains('3'), "{error}");
    }

    #[test]
    fn a_server_is_ended_with_its_handle() {
        let recipe: Recipe = Box::new(|directory, _| {
            let mut command = Command::new("sh");
            command.current_dir(directory).args(["-c", "echo $$ > pid; exec sleep 600"]);
            command
        });
        let server = PrivateServer::start(recipe, Box::new(|_| true)).expect("a process");
        let pid = server.lock().as_ref().map(Child::id).expect("a child");
        server.pause().and_then(|()| server.resume()).expect("it takes signals");
        drop(server);
        assert!(send(pid, Signal::CONT).is_err(), "the process has been waited for");
    }
}
