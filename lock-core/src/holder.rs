//! Who holds a lock: what a claim says of itself, and what a store's record says of a holder.

use std::time::{Duration, SystemTime};

use crate::{ClaimId, FencingToken};

/// What a claim tells of its maker, for people who look into the store. Nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderInfo {
    /// The host's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// What the user called this acquisition.
    pub label: Option<String>,
}

impl HolderInfo {
    /// This host and process.
    #[must_use]
    pub fn of_this_process() -> Self {
        HolderInfo { host: host_name(), pid: std::process::id(), label: None }
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// One holder of a lock, as the store's record shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The claim that holds.
    pub claim: ClaimId,
    /// Its fencing token.
    pub token: FencingToken,
    /// The holder's host.
    pub host: String,
    /// The holder's process.
    pub pid: u32,
    /// What the holder called the acquisition.
    pub label: Option<String>,
    /// When it was granted, by the store's clock; None where the store does not tell.
    pub since: Option<SystemTime>,
    /// What is left of the lease, by the store's clock; None where the store does not tell.
    pub remaining: Option<Duration>,
}

impl Holder {
    /// A holder of which only the claim, the token and what the claim told are known yet.
    #[must_use]
    pub fn new(claim: ClaimId, token: FencingToken, info: &HolderInfo) -> Self {
        Holder {
            claim,
            token,
            host: info.host.clone(),
            pid: info.pid,
            label: info.label.clone(),
            since: None,
            remaining: None,
        }
    }
}
