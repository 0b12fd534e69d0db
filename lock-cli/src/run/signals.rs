//! The signals that leasehold receives, each with its origin, as events of the main thread.

use std::{fs, io, sync::mpsc::Sender, thread};

use rustix::process::{Signal, getpid, getsid};
use signal_hook::{
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::Cause,
};

use super::{Event, child::Reach};

/// What leasehold passes on to CMD while it runs.
const PASSED_ON: [Signal; 6] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// One signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Which.
    pub(super) signal: Signal,
    /// Who sent it.
    pub(super) origin: Origin,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The kernel, for the terminal.
    Kernel,
    /// A process.
    Process,
}

impl Arrived {
    /// Whether it is one of those that are meant for CMD.
    pub(super) fn is_passed_on(self) -> bool {
        PASSED_ON.contains(&self.signal)
    }

    /// Whether every process of our group received it, and not we alone.
    pub(super) fn reached_our_group(self) -> bool {
        // A terminal that hangs up tells the session's leader alone, which is expected to tell the others (tty_io.c,
        // `tty_signal_session_leader`). That is us under `ssh -t host leasehold run ...`.
        let told_alone = self.signal == Signal::HUP && getsid(None).is_ok_and(|session| session == getpid());
        self.origin == Origin::Kernel && !told_alone
    }

    /// Whether it ends the wait for a lock. USR1 and USR2 do not: they are for CMD, which is not there yet.
    pub(super) fn ends_the_wait(self) -> bool {
        [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&self.signal)
    }
}

/// Begins to turn signals into events. From here on none of them ends leasehold by itself.
///
/// A signal that our caller ignores stays ignored, here and in CMD, which inherits that: so `nohup` and the background
/// jobs of a script work as without leasehold.
pub(super) fn listen(reach: Reach, events: Sender<Event>) -> io::Result<()> {
    let ignored = ignored_by_caller();
    let wanted = PASSED_ON.into_iter().filter(|signal| ignored & bit(*signal) == 0);
    // CHLD and CONT only wake the main thread: CMD may have ended, the lease may have run out while we were stopped.
    let mut raw: Vec<i32> = wanted.chain([Signal::CHILD, Signal::CONT]).map(Signal::as_raw).collect();
    if reach == Reach::Group && ignored & bit(Signal::TSTP) == 0 {
        raw.push(Signal::TSTP.as_raw());
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(raw)?;
    let forward = move || {
        for origin in signals.forever() {
            let Some(signal) = Signal::from_named_raw(origin.signal) else { continue };
            let origin = if origin.cause == Cause::Kernel { Origin::Kernel } else { Origin::Process };
            if events.send(Event::Signal(Arrived { signal, origin })).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(forward)?;
    Ok(())
}

/// The set of signals whose disposition we inherited as "ignore", as Linux shows it; empty where nothing shows it.
fn ignored_by_caller() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|status| parse_ignored(&status)).unwrap_or(0)
}

fn parse_ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_mask_names_the_ignored_signals() {
        let mask = parse_ignored("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n").expect("a mask");
        assert_ne!(mask & bit(Signal::HUP), 0);
        assert_ne!(mask & bit(Signal::PIPE), 0);
        assert_eq!(mask & bit(Signal::TERM), 0);
        assert_eq!(parse_ignored("Name:\tx\n"), None);
    }
}
