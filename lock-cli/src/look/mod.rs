//! `leasehold ls`, `show` and `break`: who holds what.

mod breaking;
mod json;
mod ls;
mod show;

use std::time::{Duration, SystemTime};

use leasehold::Holder;

pub(crate) use self::{breaking::break_lock, ls::ls, show::show};
use crate::words::{age, printable, roughly};

/// Who holds, in one sentence; `looked` is how long ago the store said so.
pub(crate) fn holder_sentence(holder: &Holder, looked: Duration, now: SystemTime) -> String {
    let mut text = format!("held by {}", who(holder));
    if let Some(since) = holder.since {
        text.push_str(&format!(" for {}", roughly(age(since, now))));
    }
    if let Some(remaining) = holder.remaining {
        text.push_str(&format!(", its lease runs {} more unless renewed", roughly(remaining.saturating_sub(looked))));
    }
    text
}

/// The holder's process and what it calls itself.
fn who(holder: &Holder) -> String {
    let process = format!("{}:{}", printable(&holder.host), holder.pid);
    match &holder.label {
        Some(label) => format!("{process} {label:?}"),
        None => process,
    }
}

#[cfg(test)]
mod tests {
    use leasehold::{ClaimId, FencingToken, HolderInfo};

    use super::*;

    #[test]
    fn the_sentence_says_who_since_when_and_how_long() {
        let info = HolderInfo { host: "a\u{1b}b".to_owned(), pid: 7, label: Some("nightly".to_owned()) };
        let mut holder = Holder::new(ClaimId::from_u128(1), FencingToken::new(1), &info);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(holder_sentence(&holder, Duration::ZERO, now), "held by a\\u{1b}b:7 \"nightly\"");
        holder.since = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(35));
        holder.remaining = Some(Duration::from_millis(20_500));
        assert_eq!(
            holder_sentence(&holder, Duration::from_secs(1), now),
            "held by a\\u{1b}b:7 \"nightly\" for 1m 5s, its lease runs 19s more unless renewed"
        );
    }
}
