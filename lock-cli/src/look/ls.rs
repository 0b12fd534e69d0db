//! `leasehold ls`: the locks that are held or waited for.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, SystemTime},
};

use leasehold::{LockRecord, Selector};

use super::{json::LockJson, who};
use crate::{
    cli::{LsArgs, StoreArgs},
    exit::{Exit, Failure},
    out, session,
    table::{self, table},
    voice,
    words::{age, printable, roughly},
};

/// Lists them.
pub(crate) fn ls(store: &StoreArgs, args: &LsArgs) -> Result<Exit, Failure> {
    let prefix = args.prefix.clone().unwrap_or_default();
    let mut records = session::ask(store, async move |client| Ok(client.inspect(Selector::prefix(prefix)).await?))?;
    let now = SystemTime::now();
    if let Some(limit) = args.older_than {
        records.retain(|record| is_older(record, limit, now));
    }
    if args.json {
        out::write_json(&records.iter().map(LockJson::of).collect::<Vec<_>>())?;
    } else if !records.is_empty() {
        out::write(&listing(&records, now))?;
    } else if io::stdout().is_terminal() {
        // A wrong file or namespace looks just like this; a script reads nothing as nothing.
        voice::write_line("no locks; if there should be some, look at --store and --namespace");
    }
    Ok(Exit::Done)
}

/// Whether one holder has had the lock for longer. Where a store does not tell since when, nobody is accused.
fn is_older(record: &LockRecord, limit: Duration, now: SystemTime) -> bool {
    record.holders.iter().filter_map(|holder| holder.since).any(|since| age(since, now) > limit)
}

fn listing(records: &[LockRecord], now: SystemTime) -> String {
    let mut listed = table(["NAME", "TOKEN", "HOLDER", "HELD", "LEASE LEFT", "WAITERS"]);
    for record in records {
        let name = printable(&record.name);
        let waiters = record.waiters.map_or_else(|| "-".to_owned(), |waiters| waiters.to_string());
        if record.holders.is_empty() {
            listed.add_row([name.as_str(), "-", "nobody", "-", "-", &waiters]);
        }
        for holder in &record.holders {
            listed.add_row([
                &name,
                &holder.token.to_string(),
                &who(holder),
                &holder.since.map_or_else(|| "-".to_owned(), |since| roughly(age(since, now))),
                &holder.remaining.map_or_else(|| "-".to_owned(), roughly),
                &waiters,
            ]);
        }
    }
    table::text(&mut listed)
}
