//! CMD under the lock: started, watched by [`Held`], and judged when both are over.

use std::{ffi::OsString, time::Duration};

use leasehold::{Error, ErrorKind, LockClient, LockGuard};

use super::{
    Run,
    child::{self, Child},
    held::{Ended, Held, Rules, Sent},
    lock::Lock,
    nested::{self, Enclosing},
    watch::{self, Hold},
};
use crate::{
    exit::{Exit, Failure},
    words::roughly,
};

/// From this part of the lease on a grant counts as whole: core takes its margin from each, and the answer took time.
const WHOLE: f64 = 0.9;

impl Run {
    /// Runs CMD under the guard, and gives the lock back.
    pub(super) fn hold(&self, client: &LockClient, guard: LockGuard) -> Result<Exit, Failure> {
        if let (Some(warning), false) = (child::warning(), self.args.quiet) {
            self.voice.say(warning);
        }
        let child = match Child::start(&self.args.command, &self.variables(client, &guard), self.reach) {
            Ok(child) => child,
            Err(failure) => {
                // The reason is told by the failure; a release that fails as well adds nothing to it. Nothing ran, so
                // nothing is kept for its shortest time: the end of the client gives the lock back.
                if self.args.min_hold.is_none() {
                    let _ = self.background.finish(guard.release());
                }
                return Err(failure);
            }
        };
        let rules = self.rules(guard.remaining());
        let lost = self.background.ask(guard.lost());
        let kept = Held::new(child, Lock::new(guard), rules, self.background.inbox(), &self.voice).keep();
        lost.abort();
        let (lock, ended) =
            kept.map_err(|error| Failure::new(Exit::Lost, format!("cannot learn how the command ended: {error}")))?;
        let release = lock.into_guard().release();
        let released = match self.args.min_hold {
            None => self.background.finish(release),
            // A signal ends the stay, not CMD's success: the end of the client gives the lock back.
            Some(_) => self.background.wait(release, None, drop).unwrap_or(Ok(())),
        };
        Ok(self.conclude(&ended, released))
    }

    /// The rules for a grant of this length, which a store of sessions may have made much shorter than the lease that was
    /// asked for: a grace as long as the whole grant would end CMD at once.
    fn rules(&self, granted: Duration) -> Rules {
        let lease = self.lease();
        if granted >= lease.mul_f64(WHOLE) {
            return Rules { grace: self.grace, tick: watch::tick(lease) };
        }
        let grace = match self.args.grace {
            Some(grace) if grace > granted / 3 => {
                self.voice.say(format!(
                    "--grace {} is shortened to a third of what the store grants at a time, {}",
                    humantime::format_duration(grace),
                    roughly(granted)
                ));
                granted / 3
            }
            Some(grace) => grace,
            None => self.grace.min(granted / 6),
        };
        Rules { grace, tick: watch::tick(granted) }
    }

    /// What CMD is told in its environment.
    fn variables(&self, client: &LockClient, guard: &LockGuard) -> [(&'static str, OsString); 4] {
        let namespace = client.namespace();
        let digest = nested::digest(&client.capabilities().store, namespace, &self.name, guard.claim_id());
        [
            ("LEASEHOLD_NAME", self.name.clone().into()),
            ("LEASEHOLD_NAMESPACE", namespace.into()),
            ("LEASEHOLD_FENCING_TOKEN", guard.fencing_token().to_string().into()),
            (nested::VARIABLE, Enclosing::from_environment().with(&digest)),
        ]
    }

    /// The code for the whole: CMD's own, unless the lock did not last as long as CMD.
    fn conclude(&self, ended: &Ended, released: Result<(), Error>) -> Exit {
        let told = match &released {
            Err(error) if error.kind() == ErrorKind::Lost => Some(error.to_string()),
            _ => None,
        };
        let lost = ended.sent != Sent::Nothing || !matches!(ended.hold, Hold::Held(_)) || told.is_some();
        let own = Exit::of_command(ended.status);
        if lost {
            let why = told.unwrap_or_else(|| format!("lock {:?} was about to be lost", self.name));
            let sent = match ended.sent {
                Sent::Nothing => "the command had ended by itself",
                Sent::Term => "the command ended after TERM",
                Sent::Kill => "the command was killed",
            };
            self.voice.say(format!("{why}; {sent} (its own exit code would be {})", own.code()));
            return Exit::Lost;
        }
        if let Err(error) = released {
            self.voice
                .say(format!("{error}; the command had ended in time, the lock is free when its lease has run out"));
        }
        own
    }
}
