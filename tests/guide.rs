//! The guide's tables, compared with what the stores and their checks say of themselves.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use leasehold::{Capabilities, LeaseModel, LossPush, Queue, Verdicts, Wakes};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs/guide").join(name)).expect("a page of the guide")
}

/// A store's row of the table of behaviour.
fn behaviour(store: &Capabilities) -> String {
    let ends = match store.lease_model {
        LeaseModel::PerClaim if store.crash_slack.is_zero() => "its lease".to_owned(),
        LeaseModel::PerClaim => format!("its lease and {:?}", store.crash_slack),
        LeaseModel::PerSession => format!("its session, lease and {:?}", store.crash_slack),
        other => panic!("no words for {other:?}"),
    };
    let waits = if store.wakes == Wakes::Push { "is woken" } else { "asks again and again" };
    let order = if store.queue == Queue::InStore { "among all clients" } else { "within a client" };
    let told = if store.loss_push == LossPush::Prompt { "at once" } else { "at the next renewal" };
    format!("| {} | {ends} | {waits} | {order} | {told} | {:?} |", store.store, store.lease_min)
}

/// A store's row of a table of verdicts.
fn verdicts(store: &Capabilities, verdicts: &Verdicts) -> String {
    let words = verdicts.each().map(|(_, verdict)| verdict.to_string());
    format!("| {} | {} |", store.store, words.join(" | "))
}

/// The rows of the table below a heading, without those that head it.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let below = page.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    below.filter(|line| line.starts_with("| ")).skip(1).collect()
}

#[test]
fn the_tables_say_what_the_capabilities_say() {
    let page = page("choosing.md");
    for kind in leasehold::stores() {
        let store = &kind.capabilities;
        for (heading, row) in [
            ("## How they behave", behaviour(store)),
            ("## Do two ever hold at once?", verdicts(store, &store.exclusion)),
            ("## Do tokens keep their order?", verdicts(store, &store.token_order)),
        ] {
            let rows = rows(&page, heading);
            assert_eq!(rows.len(), 7, "{heading} has a row for each store");
            assert!(rows.contains(&row.as_str()), "below {heading} the row of {} should be\n{row}", store.store);
        }
    }
}

/// The names of the rules in a check's source, before its tests.
fn rules(source: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(source)).expect("a source");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for opening in ["RULE: &str =", "Finding::good(", "Finding::note(", "Finding::warning("] {
        let openings = code.split(opening).skip(1);
        let names = openings.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        found.extend(names.map(str::to_owned));
    }
    found
}

#[test]
fn the_settings_page_has_every_rule_of_every_check_and_no_other() {
    let page = page("settings.md");
    for (heading, sources) in [
        ("## Every store", ["lock-core/src/check.rs"].as_slice()),
        ("## SQLite", &["lock-sql/src/sqlite/check.rs"]),
        ("## Redis", &["lock-redis/src/check.rs"]),
        ("## PostgreSQL", &["lock-sql/src/postgres/check.rs", "lock-sql/src/postgres/pooler.rs"]),
        ("## MySQL and MariaDB", &["lock-sql/src/mysql/check.rs"]),
        ("## etcd", &["lock-etcd/src/check.rs"]),
        ("## ZooKeeper", &["lock-zk/src/check.rs"]),
    ] {
        let first = |row: &str| row.split('|').nth(1).unwrap_or_default().to_owned();
        let named = rows(&page, heading).into_iter().map(first);
        let named: Vec<_> = named.flat_map(|cell| cell.split('`').map(str::to_owned).collect::<Vec<_>>()).collect();
        let named = named.iter().map(|name| name.trim()).filter(|name| !matches!(*name, "" | ","));
        let rules: BTreeSet<_> = sources.iter().flat_map(|source| rules(&PathBuf::from(source))).collect();
        assert!(rules.len() >= 3, "{sources:?}: {rules:?}");
        assert_eq!(named.collect::<BTreeSet<_>>(), rules.iter().map(String::as_str).collect(), "{heading}");
    }
}
