//! CMD as a process: started, signalled, and reaped. All of it by the main thread.
//!
//! Nobody else reaps CMD, so while this value has not seen it end, its pid and its group are its own and no signal can
//! hit a stranger that was given the same number.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, ExitStatus},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{group, program, shim};
use crate::exit::{Exit, Failure};

/// The running binary, whatever became of the file that it was started from.
const SELF: &str = "/proc/self/exe";

/// Whom a signal for CMD reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// CMD's group, which is its own: CMD and what it started.
    Group,
    /// CMD alone: it shares our group, because the terminal talks to one group only.
    Process,
}

/// A started CMD.
#[derive(Debug)]
pub(super) struct Child {
    inner: std::process::Child,
    pid: Pid,
    reach: Reach,
    status: Option<ExitStatus>,
}

impl Child {
    /// Starts `command` with these variables added to its environment.
    ///
    /// To be called by the main thread: the kernel ties the parent-death signal to the *thread* that started the child.
    pub(super) fn start(
        command: &[OsString],
        variables: &[(&'static str, OsString)],
        reach: Reach,
    ) -> Result<Self, Failure> {
        let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        let mut starter = if tied_to_us() {
            let mut shim = Command::new(SELF);
            shim.arg0("leasehold").args(shim::arguments(command));
            shim
        } else {
            let mut direct = Command::new(program);
            direct.args(command.iter().skip(1));
            direct
        };
        starter.envs(variables.iter().map(|(name, value)| (name, value)));
        if reach == Reach::Group {
            starter.process_group(0);
        }
        let inner = starter.spawn().map_err(|error| {
            if tied_to_us() {
                Failure::new(Exit::NotExecutable, format!("cannot start a process for {program:?}: {error}"))
            } else {
                program::cannot_run(program, &error)
            }
        })?;
        let pid = i32::try_from(inner.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::new(Exit::NotExecutable, "the system gave CMD no usable pid"))?;
        Ok(Child { inner, pid, reach, status: None })
    }

    /// Sends a signal to CMD, and to its group if that is its own. Nothing happens once CMD has been seen to end.
    pub(super) fn signal(&self, signal: Signal) {
        if self.status.is_some() {
            return;
        }
        // The one error that can come is that CMD has made itself another user's process; nothing can be done then.
        let _ = match self.reach {
            Reach::Group => kill_process_group(self.pid, signal),
            Reach::Process => kill_process(self.pid, signal),
        };
    }

    /// How CMD ended, if it has.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.inner.try_wait()?;
        }
        Ok(self.status)
    }

    /// Whether CMD, which has ended, left processes in a group of its own.
    pub(super) fn left_others(&self) -> bool {
        self.reach == Reach::Group && group::lives(self.pid)
    }

    /// Kills what is left of CMD's group.
    ///
    /// For when [`left_others`](Child::left_others) has just said yes: CMD itself is reaped by then, but as long as its
    /// group has members the kernel gives the number to nobody else.
    pub(super) fn kill_others(&self) {
        if self.reach == Reach::Group {
            // An error means that there is nobody left.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Whom signals reach.
    pub(super) fn reach(&self) -> Reach {
        self.reach
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Only on a panic or an error of the system: CMD must not run on without anyone who watches its lock.
        if matches!(self.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            let _ = self.inner.wait();
        }
    }
}

/// What the user of a Linux system without /proc must know before CMD starts; None where all is well.
pub(super) fn warning() -> Option<&'static str> {
    let untied = cfg!(target_os = "linux") && !tied_to_us();
    untied.then_some("/proc is not mounted, so the command will live on if leasehold is killed")
}

/// Whether CMD can be made to die with us: on Linux, unless /proc is not there to start ourselves from.
fn tied_to_us() -> bool {
    cfg!(target_os = "linux") && Path::new(SELF).exists()
}
