//! `leasehold show`: one lock.

use std::time::SystemTime;

use leasehold::{LockName, LockRecord, Selector};

use super::{json::LockJson, who};
use crate::{
    cli::{ShowArgs, StoreArgs},
    exit::{Exit, Failure},
    out, session,
    words::{age, printable, roughly},
};

/// Shows it. Nobody holding it is an exit code of its own, for scripts.
pub(crate) fn show(store: &StoreArgs, args: &ShowArgs) -> Result<Exit, Failure> {
    LockName::new(&args.name)?;
    let selector = Selector::name(&args.name);
    let (records, namespace) =
        session::ask(store, async move |client| Ok((client.inspect(selector).await?, client.namespace().to_owned())))?;
    let record = records.first();
    let held = record.is_some_and(|record| !record.holders.is_empty());
    if args.json {
        let free = || LockJson::free(&args.name, &namespace);
        out::write_json(&record.map_or_else(free, LockJson::of))?;
    } else if let Some(record) = record.filter(|_| held) {
        out::write(&page(record, SystemTime::now()))?;
    } else {
        return Err(Failure::new(Exit::Nothing, format!("nobody holds lock {:?}{}", args.name, waiting(record))));
    }
    Ok(if held { Exit::Done } else { Exit::Nothing })
}

fn waiting(record: Option<&LockRecord>) -> String {
    match record.and_then(|record| record.waiters) {
        Some(waiters @ 1..) => format!(", and {waiters} wait for it"),
        _ => String::new(),
    }
}

fn page(record: &LockRecord, now: SystemTime) -> String {
    let mut lines = vec![("name", printable(&record.name))];
    if !record.namespace.is_empty() {
        lines.push(("namespace", printable(&record.namespace)));
    }
    for holder in &record.holders {
        lines.push(("holder", who(holder)));
        lines.push(("token", holder.token.to_string()));
        lines.push(("claim", holder.claim.to_string()));
        if let Some(since) = holder.since {
            let at = humantime::format_rfc3339_seconds(since);
            lines.push(("since", format!("{at}, for {}", roughly(age(since, now)))));
        }
        if let Some(remaining) = holder.remaining {
            lines.push(("lease left", format!("{}, unless renewed", roughly(remaining))));
        }
    }
    if let Some(waiters) = record.waiters {
        lines.push(("waiters", waiters.to_string()));
    }
    lines.iter().map(|(key, value)| format!("{key:<12}{value}\n")).collect()
}
