//! The line that a person sees while waiting: who holds the lock, since when, and for how much longer.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    time::{Duration, Instant, SystemTime},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leasehold::{Holder, LockRecord};

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
        let mut line = format!("waiting for {:?} ({})", self.name, seconds(waited));
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

/// Who holds a lock, in one sentence: `host:pid "label" since ..., lease ends in ...`.
pub(super) fn holder_sentence(holder: &Holder, age: Duration, now: SystemTime) -> String {
    let mut text = format!("held by {}:{}", printable(&holder.host), holder.pid);
    if let Some(label) = &holder.label {
        let _ = write!(text, " {label:?}");
    }
    if let Some(since) = holder.since {
        let held = now.duration_since(since).unwrap_or_default();
        let _ = write!(text, " for {}", seconds(held));
    }
    if let Some(remaining) = holder.remaining {
        let _ = write!(text, ", its lease runs {} more unless renewed", seconds(remaining.saturating_sub(age)));
    }
    text
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
    if let Some(waiters @ 2..) = record.waiters {
        let _ = write!(line, "; {waiters} wait");
    }
}

fn seconds(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

/// A foreign text without what could move the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use leasehold::{ClaimId, FencingToken, HolderInfo};

    use super::*;

    #[test]
    fn the_line_says_who_since_when_and_how_long() {
        let info = HolderInfo { host: "a\u{1b}b".to_owned(), pid: 7, label: Some("nightly".to_owned()) };
        let mut holder = Holder::new(ClaimId::from_u128(1), FencingToken::new(1), &info);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(holder_sentence(&holder, Duration::ZERO, now), "held by a?b:7 \"nightly\"");
        holder.since = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(35));
        holder.remaining = Some(Duration::from_millis(20_500));
        assert_eq!(
            holder_sentence(&holder, Duration::from_secs(1), now),
            "held by a?b:7 \"nightly\" for 1m 5s, its lease runs 19s more unless renewed"
        );
    }
}
