//! What a cluster's members and settings mean for locks. It is asked with calls that change nothing.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmType, StatusResponse};
use futures_util::future::join_all;
use lock_core::{BackendError, Finding, Usage};

use crate::{error::Failure, store::Store};

/// How long one member may take to tell of itself.
const MEMBER_LIMIT: Duration = Duration::from_secs(2);

/// One finding for each rule.
pub(crate) async fn check(store: &Store, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
    let mut told = Vec::new();
    let mut silent = Vec::new();
    let urls = store.members.endpoints();
    let asked = urls.iter().enumerate().map(async |(index, endpoint)| {
        let asked = async { store.members.member(index).await?.status().await };
        (endpoint, tokio::time::timeout(MEMBER_LIMIT, asked).await)
    });
    // All at once: members that are silent must not use up the time of the whole check.
    for (endpoint, answer) in join_all(asked).await {
        match answer {
            Ok(Ok(status)) => told.push(status),
            _ => silent.push(endpoint.clone()),
        }
    }
    let limit = store.members.limit(Duration::MAX);
    let members = store.members.ask(limit, async |member| member.member_list().await).await;
    let alarms = store
        .members
        .ask(limit, async |member| member.alarm(AlarmAction::Get, AlarmType::None).await)
        .await
        .map(|answer| answer.value.alarms().iter().map(etcd_client::AlarmMember::alarm).collect());
    Ok(vec![
        endpoints(told.len(), &silent),
        size(members.map(|answer| answer.value.members().len())),
        leader(&told),
        version(&told),
        alarm(alarms),
        shortest(store, usage),
    ])
}

fn endpoints(answered: usize, silent: &[String]) -> Finding {
    const RULE: &str = "endpoints";
    if silent.is_empty() {
        return Finding::good(RULE, format!("all {answered} endpoints of the URL answer"));
    }
    Finding::warning(
        RULE,
        format!("{} of {} endpoints do not answer: {}", silent.len(), silent.len() + answered, silent.join(", ")),
        "start these members, or take them out of the URL",
    )
}

fn size(members: Result<usize, Failure>) -> Finding {
    const RULE: &str = "members";
    match members {
        Ok(1) => Finding::note(RULE, "the cluster has one member: when it stops, no lock can be taken or renewed"),
        Ok(even) if even % 2 == 0 => Finding::note(
            RULE,
            format!("the cluster has {even} members, and survives no more failures than {}", even - 1),
        ),
        Ok(members) => Finding::good(RULE, format!("the cluster has {members} members")),
        Err(_) => Finding::note(RULE, "the user may not list the members"),
    }
}

fn leader(told: &[StatusResponse]) -> Finding {
    const RULE: &str = "leader";
    match told.iter().filter(|status| status.leader() == 0).count() {
        0 => Finding::good(RULE, "every member that answers knows a leader"),
        lost => Finding::warning(
            RULE,
            format!("{lost} of {} members know no leader", told.len()),
            "a majority of the members must be up and reach each other",
        ),
    }
}

/// Leaders of older versions that were stalled for longer than a lease could end it after another had kept it alive
/// (etcd-io/etcd#15247).
fn version(told: &[StatusResponse]) -> Finding {
    const RULE: &str = "version";
    let mut versions: Vec<&str> = told.iter().map(StatusResponse::version).collect();
    versions.sort_unstable();
    versions.dedup();
    let evidence = format!("etcd {}", versions.join(", "));
    if versions.iter().any(|version| has_lease_fault(version)) {
        return Finding::warning(
            RULE,
            format!("{evidence}: after a stall a former leader may end a lease that is alive (etcd-io/etcd#15247)"),
            "upgrade all members to 3.4.31, 3.5.13 or later",
        );
    }
    Finding::good(RULE, evidence)
}

fn has_lease_fault(version: &str) -> bool {
    let number = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    let mut parts = version.split('.').map(number);
    let at: (u32, u32, u32) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    at < (3, 4, 31) || ((3, 5, 0)..(3, 5, 13)).contains(&at)
}

fn alarm(alarms: Result<Vec<AlarmType>, Failure>) -> Finding {
    const RULE: &str = "alarms";
    let Ok(alarms) = alarms else { return Finding::note(RULE, "the user may not read the alarms") };
    let named = |alarm: &AlarmType| match alarm {
        AlarmType::Nospace => "NOSPACE",
        AlarmType::Corrupt => "CORRUPT",
        AlarmType::None => "unknown",
    };
    if alarms.is_empty() {
        return Finding::good(RULE, "no alarm is raised");
    }
    let names: Vec<&str> = alarms.iter().map(named).collect();
    Finding::warning(
        RULE,
        format!("alarms are raised: {}; no lock can be taken", names.join(", ")),
        "for NOSPACE: compact, defragment, then etcdctl alarm disarm",
    )
}

fn shortest(store: &Store, usage: &Usage) -> Finding {
    const RULE: &str = "election";
    let least = store.capabilities.lease_min;
    if usage.lease < least {
        let evidence = format!(
            "the election timeout of the members makes leases {least:?} long at least, and a lease of {:?} was asked for",
            usage.lease
        );
        return Finding::note(RULE, evidence);
    }
    Finding::good(RULE, format!("the shortest lease that the members give is {least:?}"))
}

#[cfg(test)]
mod tests {
    use super::has_lease_fault;

    #[test]
    fn the_versions_with_the_fault_are_known() {
        for version in ["3.3.27", "3.4.23", "3.4.30", "3.5.0", "3.5.12"] {
            assert!(has_lease_fault(version), "{version}");
        }
        for version in ["3.4.31", "3.4.40", "3.5.13", "3.6.0", "4.0.0"] {
            assert!(!has_lease_fault(version), "{version}");
        }
    }
}
