//! The line that a person sees while waiting: who holds the lock, since when, and for how much longer.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    time::{Duration, Instant, SystemTime},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leasehold::LockRecord;

use crate::{look::holder_sentence, words::roughly};

/// Whoever gets the lock at once should not see a flicker.
const SHOW_AFTER: Duration = Duration::from_millis(300);

/// The line, on a terminal. Elsewhere there is none: a log wants no animation, and cron mails every word.
#[derive(Debug)]
pub(super) struct WaitLine {
    bar: ProgressBar,
    name: String,
    since: Instant,
    known: Option<Known>,
}

/// What the store said, and when it did.
#[derive(Debug)]
struct Known {
    record: Option<LockRecord>,
    at: Instant,
}

impl WaitLine {
    /// A line for a wait that begins now, if there is a terminal to show it on.
    pub(super) fn begin(name: &str) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        Some(WaitLine { bar, name: name.to_owned(), since: Instant::now(), known: None })
    }

    /// Takes what the store says now.
    pub(super) fn learn(&mut self, records: Vec<LockRecord>) {
        self.known = Some(Known { record: records.into_iter().next(), at: Instant::now() });
    }

    /// Draws the line as it is now.
    pub(super) fn draw(&self) {
        let waited = self.since.elapsed();
        if waited < SHOW_AFTER {
            return;
        }
        let mut line = format!("waiting for {:?} ({})", self.name, roughly(waited));
        if let Some(known) = &self.known {
            line.push_str("; ");
            describe(&mut line, known.record.as_ref(), known.at.elapsed(), SystemTime::now());
        }
        self.bar.set_message(line);
        self.bar.tick();
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        // CMD, or the sentence that comes instead, begins on an empty line.
        self.bar.finish_and_clear();
    }
}

fn describe(line: &mut String, record: Option<&LockRecord>, age: Duration, now: SystemTime) {
    let Some(record) = record else {
        line.push_str("nobody holds it");
        return;
    };
    match record.holders.as_slice() {
        [] => line.push_str("nobody holds it"),
        [holder, ..] => line.push_str(&holder_sentence(holder, age, now)),
    }
    match (record.place, record.waiters) {
        (Some(place), Some(waiters)) => {
            let _ = write!(line, "; place {place} of {waiters} in line");
        }
        (None, Some(waiters @ 2..)) => {
            let _ = write!(line, "; {waiters} wait");
        }
        _ => {}
    }
}
