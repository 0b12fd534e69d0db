//! What a claim's node tells people about its maker. Nothing is decided by it.

use std::time::{Duration, SystemTime};

use lock_core::{Claim, ClaimId, FencingToken, Holder, HolderInfo};
use serde::{Deserialize, Serialize};
use zookeeper_client::Stat;

/// The data of a claim's node.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Told {
    host: String,
    pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

/// The data for this claim's node.
pub(crate) fn data(claim: &Claim) -> Vec<u8> {
    let HolderInfo { host, pid, label } = &*claim.holder;
    // Texts and a number are always JSON; a holder without words would still be one.
    serde_json::to_vec(&Told { host: host.clone(), pid: *pid, label: label.clone() }).unwrap_or_default()
}

/// The holder that a node shows. One that does not tell is shown all the same.
pub(crate) fn holder(id: ClaimId, data: &[u8], stat: &Stat) -> Holder {
    let told: Told = serde_json::from_slice(data).unwrap_or_default();
    let info = HolderInfo { host: told.host, pid: told.pid, label: told.label };
    let mut holder = Holder::new(id, token(stat), &info);
    // Written at the grant: at the creation of one that was first at once, and anew by one that had to wait.
    let millis = u64::try_from(stat.mtime).ok();
    holder.since = millis.and_then(|millis| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)));
    holder
}

/// The transaction that created the node. They are counted up over all of the ensemble, so that of two nodes in one
/// directory the later has the larger (L13).
pub(crate) fn token(stat: &Stat) -> FencingToken {
    FencingToken::new(u64::try_from(stat.czxid).unwrap_or_default())
}
