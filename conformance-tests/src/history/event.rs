//! One event of a history, and its form as a line of text that another process can read.

use std::{fmt, fs, io, path::Path, str::FromStr, time::Duration};

/// What a client, or who watches it, did or saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It began to acquire.
    Asked,
    /// The acquire returned with a guard, valid at least until `until`. `ends` is a moment that no renewal moves, where
    /// the hold has one.
    Granted {
        /// The fencing token.
        token: u64,
        /// The moment of the look plus what remained then.
        until: Duration,
        /// The latest end that a hold without renewal can have.
        ends: Option<Duration>,
    },
    /// `is_held` said yes, in a call that began at the event's moment, and what remained then reached until `until`.
    Held {
        /// The moment of the look plus what remained then.
        until: Duration,
    },
    /// `is_held` said no.
    NotHeld,
    /// The guard was told to be lost.
    Lost,
    /// It began to release, or dropped the guard.
    Releasing,
    /// The release returned Ok.
    Released,
    /// The acquire returned without a guard, or was dropped.
    GaveUp,
    /// Its process is about to be killed.
    Died,
    /// Its process has been stopped.
    Stopped,
    /// Its process is about to go on.
    Resumed,
    /// The last fault is over.
    Healed,
    /// At the end, when everything must be gone, the store still had this many claims.
    Left {
        /// How many.
        claims: u64,
    },
}

/// One event. The moment is read from the machine's clock, so those of several processes compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When. For what a client does: before it did it. For what it was told: after it was told.
    pub at: Duration,
    /// Which client; one process has one or several.
    pub client: u64,
    /// Which acquisition of that client; zero for what concerns all of them.
    pub attempt: u64,
    /// The lock; empty for what concerns all of them.
    pub name: String,
    /// What happened.
    pub what: What,
}

/// The events of all clients, by moment.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In order.
    pub events: Vec<Event>,
}

impl History {
    /// A history of these events, in the order of their moments.
    #[must_use]
    pub fn of(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| event.at);
        History { events }
    }

    /// The history that the files of a directory hold.
    ///
    /// # Errors
    ///
    /// When a file cannot be read. The last line of a process that was killed while it wrote is left out.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let mut events = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "history") {
                let text = fs::read_to_string(path)?;
                let whole = text.rfind('\n').map_or("", |end| &text[..end]);
                for line in whole.lines() {
                    events.push(line.parse().map_err(io::Error::other)?);
                }
            }
        }
        Ok(History::of(events))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}\t{}\t", self.at.as_nanos(), self.client, self.attempt, self.name)?;
        match self.what {
            What::Asked => f.write_str("asked"),
            What::Granted { token, until, ends } => {
                let ends = ends.map_or(0, |ends| ends.as_nanos());
                write!(f, "granted\t{token}\t{}\t{ends}", until.as_nanos())
            }
            What::Held { until } => write!(f, "held\t{}", until.as_nanos()),
            What::NotHeld => f.write_str("not-held"),
            What::Lost => f.write_str("lost"),
            What::Releasing => f.write_str("releasing"),
            What::Released => f.write_str("released"),
            What::GaveUp => f.write_str("gave-up"),
            What::Died => f.write_str("died"),
            What::Stopped => f.write_str("stopped"),
            What::Resumed => f.write_str("resumed"),
            What::Healed => f.write_str("healed"),
            What::Left { claims } => write!(f, "left\t{claims}"),
        }
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let parts: Vec<_> = line.split('\t').collect();
        let [at, client, attempt, name, word, rest @ ..] = parts.as_slice() else {
            return Err(format!("not an event: {line:?}"));
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is no number, in {line:?}"));
        let moment = |text: &str| number(text).map(Duration::from_nanos);
        let what = match (*word, rest) {
            ("asked", []) => What::Asked,
            ("granted", [token, until, ends]) => {
                let ends = moment(ends)?;
                What::Granted { token: number(token)?, until: moment(until)?, ends: (!ends.is_zero()).then_some(ends) }
            }
            ("held", [until]) => What::Held { until: moment(until)? },
            ("not-held", []) => What::NotHeld,
            ("lost", []) => What::Lost,
            ("releasing", []) => What::Releasing,
            ("released", []) => What::Released,
            ("gave-up", []) => What::GaveUp,
            ("died", []) => What::Died,
            ("stopped", []) => What::Stopped,
            ("resumed", []) => What::Resumed,
            ("healed", []) => What::Healed,
            ("left", [claims]) => What::Left { claims: number(claims)? },
            _ => return Err(format!("not an event: {line:?}")),
        };
        let name = (*name).to_owned();
        Ok(Event { at: moment(at)?, client: number(client)?, attempt: number(attempt)?, name, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_reads_back_as_written() {
        let moment = Duration::from_nanos;
        let whats = [
            What::Asked,
            What::Granted { token: u64::MAX, until: moment(5), ends: None },
            What::Granted { token: 1, until: moment(5), ends: Some(moment(9)) },
            What::Held { until: moment(7) },
            What::NotHeld,
            What::Lost,
            What::Releasing,
            What::Released,
            What::GaveUp,
            What::Died,
            What::Stopped,
            What::Resumed,
            What::Healed,
            What::Left { claims: 2 },
        ];
        for what in whats {
            let event = Event { at: moment(1_234), client: 3, attempt: 4, name: "a b".to_owned(), what };
            assert_eq!(event.to_string().parse(), Ok(event));
        }
        assert!("1\t2\t3\tx\tdanced".parse::<Event>().is_err());
    }
}
