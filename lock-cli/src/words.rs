//! How times and foreign texts are shown to people.

use std::time::{Duration, SystemTime};

/// A time in at most two units, such as `1h 4m`: people compare it, nobody calculates with it.
pub(crate) fn roughly(time: Duration) -> String {
    let whole = Duration::from_secs(time.as_secs());
    let text = humantime::format_duration(whole).to_string();
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// How long ago a moment of the store's clock was, by ours.
pub(crate) fn age(since: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(since).unwrap_or_default()
}

/// A foreign text with all escaped that could move the cursor or end the line.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        assert_eq!(roughly(Duration::from_millis(900)), "0s");
        assert_eq!(roughly(Duration::from_secs(3_725)), "1h 2m");
        assert_eq!(roughly(Duration::from_secs(59)), "59s");
    }

    #[test]
    fn what_could_move_the_cursor_is_escaped() {
        assert_eq!(printable("a\u{1b}[2Jb\nü"), "a\\u{1b}[2Jb\\nü");
    }
}
