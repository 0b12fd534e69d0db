//! Who holds what, for people: by one key, or by a walk over the keys that never stops the server.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{BackendError, BackendErrorKind, LockKind, LockName, LockRecord, Namespace, Selector};
use redis::{FromRedisValue as _, Value};

use crate::{
    error::foreign,
    keys::{Place, name_of},
    link::{AfterCut, Failure, Link},
    record::holder,
    scripts::SHOW,
};

/// How many keys the server looks at in one step of the walk.
const STEP: usize = 1_000;

/// How many claims are read by one script.
const PAGE: usize = 200;

/// The records that a selector shows, in the order of their names.
pub(crate) async fn records(
    link: &Link,
    selector: &Selector,
    kinds: &[LockKind],
) -> Result<Vec<LockRecord>, BackendError> {
    let mut shown = BTreeMap::new();
    for &kind in kinds {
        let namespace = selector.namespace();
        match Place::of(selector, kind) {
            Place::Nowhere => {}
            Place::Unknown => {
                let message = format!("the Redis backend cannot select names by {:?}", selector.pattern());
                return Err(BackendError::new(BackendErrorKind::Unsupported, message));
            }
            Place::Key(key) => {
                let claims = read(link, std::slice::from_ref(&key)).await?;
                if matches!(claims.as_slice(), [Claim::Foreign]) {
                    return Err(foreign(link.connector().place(), &key));
                }
                show(&mut shown, namespace, kind, &[key], &claims);
            }
            Place::Pattern(pattern) => {
                // The walk may meet a key more than once. Keys that are not ours, or hold no claim, are someone else's.
                let found = walk(link, &pattern, namespace, kind).await?;
                let keys: Vec<String> = found.into_iter().collect();
                for page in keys.chunks(PAGE) {
                    show(&mut shown, namespace, kind, page, &read(link, page).await?);
                }
            }
        }
    }
    Ok(shown.into_values().collect())
}

type Shown = BTreeMap<(LockName, LockKind), LockRecord>;

/// What is at one key.
enum Claim {
    Nothing,
    Held(Box<lock_core::Holder>),
    /// Something that no script of ours wrote.
    Foreign,
}

fn show(shown: &mut Shown, namespace: &Namespace, kind: LockKind, keys: &[String], claims: &[Claim]) {
    for (key, claim) in keys.iter().zip(claims) {
        let (Claim::Held(holder), Some(name)) = (claim, name_of(key.as_bytes(), namespace, kind)) else { continue };
        let record = LockRecord::new(namespace, &name, kind, vec![(**holder).clone()]);
        shown.insert((name, kind), record);
    }
}

async fn walk(
    link: &Link,
    pattern: &str,
    namespace: &Namespace,
    kind: LockKind,
) -> Result<BTreeSet<String>, BackendError> {
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let mut command = redis::cmd("SCAN");
        command.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(STEP);
        let answer = link.send(&command, AfterCut::Repeat).await.map_err(|failure| match failure {
            Failure::NotSent(error) => error,
            Failure::Said(error) => link.connector().error(error),
        })?;
        let unread = |_| link.connector().unread();
        let (next, keys) = <(String, Vec<Vec<u8>>)>::from_redis_value(answer).map_err(unread)?;
        let ours = keys.into_iter().filter(|key| name_of(key, namespace, kind).is_some());
        found.extend(ours.filter_map(|key| String::from_utf8(key).ok()));
        if next == "0" {
            return Ok(found);
        }
        cursor = next;
    }
}

/// The claims at these keys.
async fn read(link: &Link, keys: &[String]) -> Result<Vec<Claim>, BackendError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let answer = SHOW.run(link, &keys, &[], AfterCut::Repeat).await?;
    let Value::Array(claims) = answer else { return Err(link.connector().unread()) };
    if claims.len() != keys.len() {
        return Err(link.connector().unread());
    }
    Ok(claims.into_iter().map(claim).collect())
}

fn claim(answer: Value) -> Claim {
    let Value::Array(parts) = answer else { return Claim::Foreign };
    match parts.as_slice() {
        [] => Claim::Nothing,
        [Value::BulkString(value), Value::Int(remaining_ms)] => {
            holder(value, *remaining_ms).map_or(Claim::Foreign, |holder| Claim::Held(Box::new(holder)))
        }
        _ => Claim::Foreign,
    }
}
