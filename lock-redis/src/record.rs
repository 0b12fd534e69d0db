//! A claim's value: its id, its token, since when, and who holds, for people.

use std::time::{Duration, SystemTime};

use lock_core::{ClaimId, FencingToken, Holder, HolderInfo};
use serde::{Deserialize, Serialize};

/// Who holds, as the value tells it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Who {
    #[serde(default)]
    host: String,
    #[serde(default)]
    pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

/// The part of a value that the client writes; the script puts the rest before it.
pub(crate) fn who(info: &HolderInfo) -> String {
    let who = Who { host: info.host.clone(), pid: info.pid, label: info.label.clone() };
    // Texts and a number always have a JSON form.
    serde_json::to_string(&who).unwrap_or_default()
}

/// The holder that a value tells of; None for a value that no script of ours writes.
///
/// `remaining_ms` is below zero for a key that has no end, as one would be that someone persisted by hand.
pub(crate) fn holder(value: &[u8], remaining_ms: i64) -> Option<Holder> {
    let value = std::str::from_utf8(value).ok()?;
    let mut parts = value.splitn(4, ' ');
    let claim: ClaimId = parts.next()?.parse().ok()?;
    let token: u64 = parts.next()?.parse().ok()?;
    let since_us: u64 = parts.next()?.parse().ok()?;
    // What is for people decides nothing: a record is ours whatever became of it.
    let who: Who = parts.next().and_then(|who| serde_json::from_str(who).ok()).unwrap_or_default();
    let info = HolderInfo { host: who.host, pid: who.pid, label: who.label };
    let mut holder = Holder::new(claim, FencingToken::new(token), &info);
    holder.since = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(since_us));
    holder.remaining = u64::try_from(remaining_ms).ok().map(Duration::from_millis);
    Some(holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_back_as_its_holder() {
        let info = HolderInfo { host: "a b".to_owned(), pid: 7, label: Some("näch\"tly {}".to_owned()) };
        let claim = ClaimId::random();
        let value = format!("{claim} 12 1000000 {}", who(&info));
        let holder = holder(value.as_bytes(), 2_500).expect("a record of ours");
        assert_eq!((holder.claim, holder.token.get(), holder.pid), (claim, 12, 7));
        assert_eq!((holder.host.as_str(), holder.label.as_deref()), ("a b", Some("näch\"tly {}")));
        assert_eq!(holder.since, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1)));
        assert_eq!(holder.remaining, Some(Duration::from_millis(2_500)));
    }

    #[test]
    fn what_no_script_writes_is_no_record() {
        let id = ClaimId::random();
        for value in
            [String::new(), "x".to_owned(), id.to_string(), format!("{id} x 1 {{}}"), format!("{id}1 1 1 {{}}")]
        {
            assert!(holder(value.as_bytes(), 1).is_none(), "{value:?}");
        }
        assert!(holder(&[0xFF; 40], 1).is_none());
    }

    #[test]
    fn a_holder_that_people_cannot_read_still_holds() {
        let value = format!("{} 1 1 not json", ClaimId::random());
        let holder = holder(value.as_bytes(), -1).expect("a record of ours");
        assert_eq!((holder.host.as_str(), holder.remaining), ("", None));
    }
}
