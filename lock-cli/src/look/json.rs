//! Locks as JSON. The shape is documented in `schemas/lock.json`, and stays.

use leasehold::{Holder, LockRecord};
use serde::Serialize;

/// One lock.
#[derive(Debug, Serialize)]
pub(super) struct LockJson<'a> {
    name: &'a str,
    namespace: &'a str,
    kind: String,
    holders: Vec<HolderJson<'a>>,
    waiters: Option<u64>,
}

/// One holder of a lock.
#[derive(Debug, Serialize)]
struct HolderJson<'a> {
    claim: String,
    token: u64,
    host: &'a str,
    pid: u32,
    label: Option<&'a str>,
    since: Option<String>,
    remaining_ms: Option<u64>,
}

impl<'a> LockJson<'a> {
    /// The lock of a record.
    pub(super) fn of(record: &'a LockRecord) -> Self {
        LockJson {
            name: &record.name,
            namespace: &record.namespace,
            kind: record.kind.to_string(),
            holders: record.holders.iter().map(HolderJson::of).collect(),
            waiters: record.waiters,
        }
    }

    /// A lock that the store has no record of.
    pub(super) fn free(name: &'a str, namespace: &'a str) -> Self {
        let kind = leasehold::LockKind::Exclusive.to_string();
        LockJson { name, namespace, kind, holders: Vec::new(), waiters: None }
    }
}

impl<'a> HolderJson<'a> {
    fn of(holder: &'a Holder) -> Self {
        HolderJson {
            claim: holder.claim.to_string(),
            token: holder.token.get(),
            host: &holder.host,
            pid: holder.pid,
            label: holder.label.as_deref(),
            since: holder.since.map(|since| humantime::format_rfc3339_millis(since).to_string()),
            remaining_ms: holder.remaining.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}
