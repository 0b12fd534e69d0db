//! The step between the fork and CMD: it ties CMD's life to leasehold's, and then becomes CMD.
//!
//! Linux can send a process a signal when its parent dies (`PR_SET_PDEATHSIG`), but only the process itself can ask for
//! it, and between fork and exec that takes unsafe code. So leasehold starts *itself* with a hidden first argument;
//! that process asks for the signal in safe code and replaces itself with CMD, keeping its pid, its group and every file
//! descriptor. The request survives the exec (`prctl(2)`), except into a set-user-ID, set-group-ID or capability
//! binary: such a CMD outlives a killed leasehold, and so do CMD's own children, for which nobody asked.
//!
//! Where exec fails, this process says so on stderr and exits with 126 or 127, which leasehold passes through like any
//! code of CMD's. Nothing else hangs on telling the two apart, so no channel is needed for it; the sentence on stderr
//! tells the reader.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    process::Command,
};

use rustix::process::{Pid, Signal, getpid, getppid};

use super::program;
use crate::exit::{Exit, Failure};

/// The hidden first argument. Not one that a person would type.
pub(crate) const FLAG: &str = "--become-child-of";

/// Arguments that make this binary become `command`, tied to this process.
pub(super) fn arguments(command: &[OsString]) -> impl Iterator<Item = OsString> {
    let parent = getpid().as_raw_nonzero().to_string();
    [OsString::from(FLAG), OsString::from(parent)].into_iter().chain(command.iter().cloned())
}

/// Becomes the command that follows the parent's pid in `arguments`. Returns only if it cannot.
pub(crate) fn become_command(mut arguments: impl Iterator<Item = OsString>) -> Failure {
    let parent = arguments.next().and_then(|pid| parse_pid(&pid));
    let (Some(parent), Some(program)) = (parent, arguments.next()) else {
        return Failure::usage(format!("{FLAG} is internal; use `leasehold run NAME -- CMD`"));
    };
    if let Err(error) = ask_to_die_with_parent() {
        return Failure::new(Exit::NotExecutable, format!("cannot tie the command to leasehold: {error}"));
    }
    // A parent that died before the request was made sends no signal. Its pid tells: an orphan has another parent.
    if getppid() != Some(parent) {
        return Failure::new(Exit::Signal(Signal::KILL.as_raw()), "leasehold was killed before the command began");
    }
    // std gives CMD an empty signal mask and the default SIGPIPE, which Rust programs ignore.
    let error = Command::new(&program).args(arguments).exec();
    program::cannot_run(&program, &error)
}

#[cfg(target_os = "linux")]
fn ask_to_die_with_parent() -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
}

/// Elsewhere CMD is started without this step, since the system has no such request.
#[cfg(not(target_os = "linux"))]
fn ask_to_die_with_parent() -> rustix::io::Result<()> {
    Ok(())
}

fn parse_pid(text: &OsStr) -> Option<Pid> {
    text.to_str()?.parse().ok().and_then(Pid::from_raw)
}
