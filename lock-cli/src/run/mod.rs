//! `leasehold run`: a command that runs while a lock is held.
//!
//! The main thread starts CMD, watches it, signals it and reaps it, and never waits for the store while CMD runs. The
//! store's client lives on a runtime of its own, whose tasks wake the main thread through the same inbox as signals do.

mod acquire;
mod background;
mod child;
mod group;
mod held;
mod lock;
mod nested;
mod program;
pub(crate) mod shim;
mod signals;
mod under_lock;
mod wait_line;
mod watch;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
    time::Duration,
};

use leasehold::{LockName, LockRecord};

use self::{background::Background, child::Reach, signals::Arrived};
use crate::{
    cli::{RunArgs, StoreArgs},
    exit::{Exit, Failure},
    store::{self, Store},
    voice::Voice,
};

/// Beyond core's own limits for giving a lock back, so that no store can keep the command from ending.
const END_LIMIT: Duration = Duration::from_secs(15);

/// The longest grace that nobody asked for.
const DEFAULT_GRACE_MAX: Duration = Duration::from_secs(5);

/// What wakes the main thread.
#[derive(Debug)]
enum Event {
    /// A signal arrived.
    Signal(Arrived),
    /// Who holds the lock, for the wait line.
    Records(Vec<LockRecord>),
    /// Something asked for has ended.
    Wake,
}

/// Runs a command under a lock. The answer is what the whole command exits with.
pub(crate) fn run(store: &StoreArgs, args: RunArgs) -> Result<Exit, Failure> {
    let (name, args) = args.into_operands().map_err(Failure::usage)?;
    LockName::new(&name)?;
    program::check(args.command.first().map_or("".as_ref(), OsString::as_os_str))?;
    let store = store::choose(store, &store::Environment::of_this_process())?;
    let grace = grace(&args, store.lease())?;
    // Only the foreground group may read the terminal and hears its ^C; a CMD that talks to a person must be in it.
    let reach = if io::stdin().is_terminal() { Reach::Process } else { Reach::Group };
    let background = Background::start()?;
    signals::listen(reach, background.events())
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot listen for signals: {error}")))?;
    let voice =
        Voice::new().map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start a thread: {error}")))?;
    let run = Run { name, args, store, grace, reach, background, voice };
    let done = run.whole();
    run.background.stop();
    done
}

/// The grace that was asked for, or the default.
fn grace(args: &RunArgs, default_lease: Duration) -> Result<Duration, Failure> {
    let lease = args.lease.unwrap_or(default_lease);
    match args.grace {
        // A lease of zero has an error of its own.
        Some(grace) if grace > lease / 3 && !lease.is_zero() => Err(Failure::usage(format!(
            "--grace {} is out of range: 0s to {} (a third of the lease of {}) are allowed; shorten it or lengthen --lease",
            humantime::format_duration(grace),
            humantime::format_duration(lease / 3),
            humantime::format_duration(lease),
        ))),
        Some(grace) => Ok(grace),
        None => Ok((lease / 6).min(DEFAULT_GRACE_MAX)),
    }
}

/// One run, from the checked command line on.
#[derive(Debug)]
struct Run {
    name: String,
    args: RunArgs,
    store: Store,
    grace: Duration,
    reach: Reach,
    background: Background,
    voice: Voice,
}

impl Run {
    fn whole(&self) -> Result<Exit, Failure> {
        let client = self.background.wait(self.store.connect(), None, drop)??;
        if client.capabilities().store == "memory" && !self.args.quiet {
            self.voice
                .say("a memory: store is this process's own, so the lock excludes nobody; name a store with --store");
        }
        let done = self.acquire(&client).and_then(|guard| self.hold(&client, guard));
        // Also after a wait that was interrupted: it is over when nothing of ours is left in the store. Signals do not
        // cut it short, since those who stop a service often send two at once; its limit does.
        self.background.finish(limited(END_LIMIT, async move { client.close().await }));
        done
    }

    fn lease(&self) -> Duration {
        self.args.lease.unwrap_or(self.store.lease())
    }
}

/// A future with a limit; None when it took longer.
async fn limited<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}
