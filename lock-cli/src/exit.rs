//! The exit codes of the command, and the failure that carries one with its sentence.

use std::{
    fmt,
    os::unix::process::ExitStatusExt as _,
    process::{ExitCode, ExitStatus},
};

use leasehold::{Error, ErrorKind};

/// Why the command ends, as far as its caller can tell: one variant per documented exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well, where no CMD has a code of its own.
    Done,
    /// There was nothing to show or to break.
    Nothing,
    /// The store answers, and something about it endangers locks.
    Warnings,
    /// CMD's own code, passed through.
    Command(u8),
    /// A signal ended CMD, or leasehold while it waited.
    Signal(i32),
    /// The command line is wrong.
    Usage,
    /// The store did not answer, or refused.
    Unavailable,
    /// The lock was lost while CMD ran.
    Lost,
    /// Others hold the lock.
    Busy,
    /// Others hold the lock, and the user chose the code for that.
    BusyAs(u8),
    /// The answer could not be written.
    Output,
    /// The URL, the configuration file or the environment is wrong.
    Config,
    /// CMD is there and cannot be executed.
    NotExecutable,
    /// CMD is not there.
    NotFound,
}

impl Exit {
    /// How a command ended, as a shell would say it.
    pub(crate) fn of_command(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            // The kernel keeps eight bits of an exit code (wait(2)), so nothing is cut off.
            (Some(code), _) => Exit::Command(code.to_le_bytes()[0]),
            (None, Some(signal)) => Exit::Signal(signal),
            // Neither: only a stopped process, which is never asked for.
            (None, None) => Exit::Command(1),
        }
    }

    /// The number that the caller sees. Those between 64 and 78 are of sysexits(3), 126 and above are the shell's.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Nothing | Exit::Warnings => 1,
            Exit::Command(code) | Exit::BusyAs(code) => code,
            // Signals number 1 to 64 (signal(7)).
            Exit::Signal(signal) => u8::try_from(signal).unwrap_or(0).saturating_add(128),
            Exit::Usage => 2,
            Exit::Unavailable => 69,
            Exit::Lost => 70,
            Exit::Output => 74,
            Exit::Busy => 75,
            Exit::Config => 78,
            Exit::NotExecutable => 126,
            Exit::NotFound => 127,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// What ends the command early: the code, and the sentence for the person who reads stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the caller learns.
    pub(crate) exit: Exit,
    /// What the reader learns, without the command's name in front; empty for nothing. Never holds a password.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with this code and this sentence.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: message.into() }
    }

    /// A failure that the exit code alone tells.
    pub(crate) fn silent(exit: Exit) -> Self {
        Failure::new(exit, "")
    }

    /// A wrong value on the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(Exit::Usage, message)
    }

    /// A wrong value in the URL, the configuration file or the environment.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Failure::new(Exit::Config, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::InvalidInput => Exit::Usage,
            ErrorKind::Config | ErrorKind::Unsupported => Exit::Config,
            ErrorKind::TimedOut => Exit::Busy,
            ErrorKind::Lost => Exit::Lost,
            // The rest, and any kind that a later version adds, mean that the store gave no lock.
            _ => Exit::Unavailable,
        };
        Failure::new(exit, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_becomes_the_code_that_a_shell_gives() {
        let exited = |code: i32| Exit::of_command(ExitStatus::from_raw(code << 8)).code();
        assert_eq!([exited(0), exited(7), exited(255)], [0, 7, 255]);
        assert_eq!(Exit::of_command(ExitStatus::from_raw(15)).code(), 143);
        // The bit for a core dump does not change the signal.
        assert_eq!(Exit::of_command(ExitStatus::from_raw(3 | 0x80)).code(), 131);
    }

    #[test]
    fn each_kind_of_error_has_its_code() {
        let code = |kind| Failure::from(Error::new(kind, "x")).exit.code();
        assert_eq!(code(ErrorKind::InvalidInput), 2);
        assert_eq!(code(ErrorKind::Unavailable), 69);
        assert_eq!(code(ErrorKind::Backend), 69);
        assert_eq!(code(ErrorKind::Lost), 70);
        assert_eq!(code(ErrorKind::TimedOut), 75);
        assert_eq!(code(ErrorKind::Config), 78);
    }
}
