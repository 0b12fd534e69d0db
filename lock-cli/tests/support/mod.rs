//! What the command's tests share: a sandbox with a store of its own, and processes that never outlive their test.
#![expect(dead_code, reason = "each test file uses its part of this")]

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use leasehold::{LockClient, LockRecord, Selector};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) mod blocked;
pub(crate) mod schema;
pub(crate) mod servers;
pub(crate) mod terminal;

/// Nothing in these tests takes this long unless it hangs. It is a limit, never a wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with a store, and an environment that has nothing else.
#[derive(Debug)]
pub(crate) struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    /// A new one.
    pub(crate) fn new() -> Self {
        Sandbox { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// A file in the sandbox.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The store's URL.
    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.path("locks.db").display())
    }

    /// The command with these arguments, with no environment but PATH, and with the sandbox as home and directory.
    pub(crate) fn bare<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        self.any(env!("CARGO_BIN_EXE_leasehold"), arguments)
    }

    /// Any program in the same environment.
    pub(crate) fn any<S: AsRef<OsStr>>(&self, program: &str, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("BIN", env!("CARGO_BIN_EXE_leasehold"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The command on the sandbox's store.
    pub(crate) fn leasehold<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.bare(arguments);
        command.env("LEASEHOLD_STORE", self.url());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.leasehold(arguments))
    }

    /// What the store shows of a lock, through a client of the test's own.
    pub(crate) fn records(&self, name: &str) -> Vec<LockRecord> {
        let name = name.to_owned();
        self.with_client(async move |client| client.inspect(Selector::name(name)).await.expect("an answer"))
    }

    /// Takes the lock away from whoever holds it, as a person would by hand.
    pub(crate) fn break_lock(&self, name: &str) {
        let name = name.to_owned();
        self.with_client(async move |client| client.break_lock(&name, None).await.map(drop).expect("an answer"));
    }

    fn with_client<T>(&self, action: impl AsyncFnOnce(&LockClient) -> T) -> T {
        runtime().block_on(async {
            let client = leasehold::connect(&self.url()).await.expect("the sandbox's store");
            let result = action(&client).await;
            client.close().await.expect("closed");
            result
        })
    }

    /// Waits until a file has this text, and something behind it was not expected to come.
    pub(crate) fn wait_for_text(&self, file: &str, text: &str) {
        let path = self.path(file);
        until(&format!("{file} has {text:?}"), || fs::read_to_string(&path).is_ok_and(|now| now.contains(text)));
    }

    /// Waits for a pid that a script writes into a file, with a newline behind it.
    pub(crate) fn wait_for_pid(&self, file: &str) -> Pid {
        self.wait_for_text(file, "\n");
        let text = fs::read_to_string(self.path(file)).expect("the file");
        Pid::from_raw(text.trim().parse().expect("a pid")).expect("a pid")
    }

    /// What a file has now; empty if it is not there.
    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_default()
    }
}

/// A tokio runtime for what the test itself asks of the store.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    /// The exit code; a death by signal is an error in the test.
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Ended {
            status: output.status,
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
pub(crate) fn finish(command: Command) -> Ended {
    Running::start(command).finish()
}

/// A process that is killed when the test lets go of it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> Self {
        Running { child: command.spawn().expect("the command starts") }
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal. It is not reaped before it is finished, so the pid is its own.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the signal is sent");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ended {
        let (stdout, stderr) = (drain(self.child.stdout.take()), drain(self.child.stderr.take()));
        let mut status = None;
        until("the command has ended", || {
            status = self.child.try_wait().expect("a status");
            status.is_some()
        });
        // It ends only when nobody has the other end any more, so this is also the end of all that wrote there.
        until("its output has ended", || stdout.is_finished() && stderr.is_finished());
        Ended {
            status: status.expect("it has ended"),
            stdout: stdout.join().expect("stdout"),
            stderr: String::from_utf8_lossy(&stderr.join().expect("stderr")).into_owned(),
        }
    }
}

/// Reads a pipe to its end, so that nobody who writes there is held up.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut all).expect("output");
        }
        all
    })
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is so, and fails when patience runs out.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The state letter of a process (proc(5)): None once there is none. A zombie is `Z`.
pub(crate) fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process is there and no zombie.
pub(crate) fn alive(pid: Pid) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
