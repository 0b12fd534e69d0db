//! What a server's settings mean for locks. It is asked with commands that change nothing.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use lock_core::{BackendError, Finding, LockKind, Selector, Usage};
use redis::{Cmd, FromRedisValue, Value};

use crate::{
    keys::{Keys, Place},
    link::{AfterCut, Failure, Link},
};

/// How many rounds of SCAN look for locks whose end lies too far away, and how much each looks at.
const ROUNDS: usize = 20;
const AT_ONCE: usize = 500;

/// The server's clock.
pub(crate) async fn wall_clock(link: &Link) -> Result<Option<SystemTime>, BackendError> {
    let now: Option<(u64, u64)> = ask(link, &["TIME"]).await?;
    let since = now.map(|(seconds, micros)| Duration::from_secs(seconds) + Duration::from_micros(micros));
    Ok(since.map(|since| SystemTime::UNIX_EPOCH + since))
}

/// One finding for each rule.
pub(crate) async fn check(link: &Link, usage: &Usage, kinds: &[LockKind]) -> Result<Vec<Finding>, BackendError> {
    let info: Option<String> = ask(link, &["INFO", "everything"]).await?;
    let info = Info::parse(info.as_deref().unwrap_or_default());
    let fsync: Option<BTreeMap<String, String>> = ask(link, &["CONFIG", "GET", "appendfsync"]).await?;
    let fsync = fsync.and_then(|known| known.into_values().next());
    let mut findings = vec![
        info.version(),
        info.writable(),
        info.eviction(),
        info.persistence(fsync.as_deref()),
        info.failover(),
        rights(link, usage).await?,
        channel(link, usage).await?,
    ];
    for &kind in kinds {
        findings.push(leases(link, usage, kind).await?);
    }
    Ok(findings)
}

/// Asks a question; None where the server does not answer it, for want of rights or because it has no such command.
async fn ask<T: FromRedisValue>(link: &Link, words: &[&str]) -> Result<Option<T>, BackendError> {
    Ok(said(link, words).await?.ok().and_then(|value| redis::from_redis_value(value).ok()))
}

/// What the server said; an error of the connection is the caller's.
async fn said(link: &Link, words: &[&str]) -> Result<Result<Value, String>, BackendError> {
    let mut command = Cmd::new();
    for word in words {
        command.arg(*word);
    }
    match link.send(&command, AfterCut::Repeat).await {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::NotSent(error)) => Err(error),
        Err(Failure::Said(error)) if error.code().is_some() => Ok(Err(error.code().unwrap_or_default().to_owned())),
        Err(Failure::Said(error)) => Err(link.connector().error(error)),
    }
}

/// The keys of a lock that nobody uses.
fn probe(usage: &Usage) -> Keys {
    Keys::new(&usage.namespace, LockKind::Exclusive, "check")
}

/// A script that the server does not know: it is looked up only after all rights have been found good.
async fn rights(link: &Link, usage: &Usage) -> Result<Finding, BackendError> {
    const RULE: &str = "rights";
    let keys = probe(usage);
    let answer = said(link, &["EVALSHA", &"0".repeat(40), "2", &keys.claim, &keys.fence]).await?;
    Ok(match answer {
        Err(code) if code == "NOPERM" => Finding::warning(
            RULE,
            "the user may not run scripts on the keys of this namespace",
            "ACL SETUSER ... +@scripting +get +set +del +pttl +pexpire +time +publish ~leasehold/*",
        ),
        _ => Finding::good(RULE, "the user may run scripts on the keys of this namespace"),
    })
}

/// A message to nobody.
async fn channel(link: &Link, usage: &Usage) -> Result<Finding, BackendError> {
    const RULE: &str = "channel";
    let channel = probe(usage).channel(link.connector().database());
    Ok(match said(link, &["PUBLISH", &channel, ""]).await? {
        Err(code) if code == "NOPERM" => Finding::warning(
            RULE,
            "the user may not publish, so waiters are woken late, by their poll",
            "ACL SETUSER ... +publish +subscribe &leasehold/*",
        ),
        _ => Finding::good(RULE, "the user may tell waiters of a release"),
    })
}

/// Looks for locks whose end lies far beyond any lease, as after the server's clock was set.
async fn leases(link: &Link, usage: &Usage, kind: LockKind) -> Result<Finding, BackendError> {
    const RULE: &str = "leases";
    let limit = usage.lease.saturating_mul(10).saturating_add(Duration::from_secs(60));
    let Place::Pattern(pattern) = Place::of(&Selector::prefix("").in_namespace(usage.namespace.clone()), kind) else {
        return Ok(Finding::note(RULE, "the locks of this namespace cannot be looked through"));
    };
    let (mut cursor, mut seen) = ("0".to_owned(), 0_u64);
    for _ in 0..ROUNDS {
        let count = AT_ONCE.to_string();
        let page = ask::<(String, Vec<String>)>(link, &["SCAN", &cursor, "MATCH", &pattern, "COUNT", &count]).await?;
        let Some((next, keys)) = page else {
            return Ok(Finding::note(RULE, "the user may not SCAN, so the ends of held locks were not looked at"));
        };
        for key in keys {
            let left: Option<i64> = ask(link, &["PTTL", &key]).await?;
            seen += 1;
            let left = Duration::from_millis(u64::try_from(left.unwrap_or_default()).unwrap_or_default());
            if left > limit {
                let evidence = format!("key {key:?} ends only in {left:.0?}, far above a lease of {:?}", usage.lease);
                let remedy = "if no one asked for such a lease, the server's clock was set: break the lock by hand";
                return Ok(Finding::warning(RULE, evidence, remedy));
            }
        }
        if next == "0" {
            return Ok(Finding::good(RULE, format!("{seen} held locks, none with an end beyond {limit:?}")));
        }
        cursor = next;
    }
    Ok(Finding::note(
        RULE,
        format!("{seen} held locks looked at, none with an end beyond {limit:?}; there may be more"),
    ))
}

/// What the server says of itself.
struct Info<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Info<'a> {
    fn parse(text: &'a str) -> Self {
        Info(text.lines().filter_map(|line| line.split_once(':')).collect())
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(|value| value.parse().ok())
    }

    fn version(&self) -> Finding {
        const RULE: &str = "version";
        let Some(version) = self.get("redis_version") else {
            return Finding::note(RULE, "the user may not read INFO, so the server's settings are not known");
        };
        let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        let evidence = format!("Redis {version}");
        // Scripts that write after reading the time are replicated by their effects from 5 on, without being told to.
        if major < 5 {
            return Finding::warning(RULE, evidence, "use Redis 6 or later");
        }
        Finding::good(RULE, evidence)
    }

    fn writable(&self) -> Finding {
        const RULE: &str = "writable";
        match self.get("role") {
            Some("slave") => {
                Finding::warning(RULE, "this server is a replica, and takes no locks", "name the primary in the URL")
            }
            Some(_) if self.get("loading") == Some("1") => {
                Finding::warning(RULE, "the server is loading its data", "wait until it has")
            }
            Some(role) => Finding::good(RULE, format!("the server's role is {role}")),
            None => Finding::note(RULE, "the server's role is not known"),
        }
    }

    fn eviction(&self) -> Finding {
        const RULE: &str = "eviction";
        match (self.get("maxmemory_policy"), self.number("maxmemory")) {
            (Some("noeviction"), Some(limit)) => {
                let limit = if limit == 0 { "no limit".to_owned() } else { format!("maxmemory {limit}") };
                Finding::good(RULE, format!("maxmemory-policy is noeviction, with {limit}"))
            }
            (Some(policy), Some(0)) => {
                Finding::note(RULE, format!("maxmemory-policy is {policy}, without effect as long as maxmemory is 0"))
            }
            (Some(policy), _) => Finding::warning(
                RULE,
                format!("maxmemory-policy is {policy}: a full server deletes held locks and their tokens"),
                "set maxmemory-policy noeviction, or use a server of its own for locks",
            ),
            _ => Finding::note(RULE, "maxmemory-policy is not known"),
        }
    }

    fn persistence(&self, fsync: Option<&str>) -> Finding {
        const RULE: &str = "persistence";
        match (self.get("aof_enabled"), fsync) {
            (Some("1"), Some("always")) => Finding::good(RULE, "appendonly yes, appendfsync always"),
            (Some("1"), fsync) => {
                let fsync = fsync.unwrap_or("unknown");
                let evidence =
                    format!("appendonly yes, appendfsync {fsync}: a crash may forget claims of the last second");
                Finding::note(RULE, evidence)
            }
            (Some(_), _) => Finding::warning(
                RULE,
                "appendonly is off: a restart forgets held locks, and grants them again",
                "set appendonly yes and appendfsync always, or let the resource check the fencing token",
            ),
            _ => Finding::note(RULE, "the persistence of the server is not known"),
        }
    }

    fn failover(&self) -> Finding {
        const RULE: &str = "failover";
        // The second is there only if min-replicas-to-write is set.
        match (self.number("connected_slaves"), self.number("min_slaves_good_slaves")) {
            (Some(0), _) => Finding::note(RULE, "no replica is attached: there is no failover"),
            (Some(replicas), None) => Finding::warning(
                RULE,
                format!("{replicas} replicas are attached, asynchronously: a failover may forget a claim"),
                "set min-replicas-to-write and min-replicas-max-lag, which bound the loss; only a quorum of independent \
                 servers, or fencing, excludes it",
            ),
            (Some(replicas), Some(good)) => Finding::note(
                RULE,
                format!(
                    "{replicas} replicas, {good} of them good for min-replicas-to-write: a failover may still forget a claim"
                ),
            ),
            _ => Finding::note(RULE, "the replicas of the server are not known"),
        }
    }
}
