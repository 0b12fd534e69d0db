//! `leasehold check`: whether the store can be trusted with locks as it is set up.

use anstyle::{AnsiColor, Style};
use leasehold::{Finding, Level, Report};
use serde::Serialize;

use crate::{
    cli::{CheckArgs, StoreArgs},
    exit::{Exit, Failure},
    out, session, table,
};

/// Every level that a finding can have today.
const LEVELS: [Level; 3] = [Level::Good, Level::Note, Level::Warning];

/// The report as JSON. The shape is documented in `schemas/check.json`, and stays.
#[derive(Debug, Serialize)]
struct CheckJson<'a> {
    store: &'a str,
    namespace: &'a str,
    round_trip_ms: f64,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Debug, Serialize)]
struct FindingJson<'a> {
    rule: &'a str,
    level: String,
    evidence: &'a str,
    remedy: Option<&'a str>,
}

/// Checks it.
pub(crate) fn check(store: &StoreArgs, args: &CheckArgs) -> Result<Exit, Failure> {
    let (report, name, namespace) = session::ask(store, async |client| {
        let mut report = client.check().await?;
        if client.capabilities().store == "memory" {
            let evidence = "a memory: store is this process's own, so the command's locks exclude nobody";
            report.findings.push(Finding::warning("memory", evidence, "name a store that several processes share"));
        }
        Ok((report, client.capabilities().store.clone(), client.namespace().to_owned()))
    })?;
    if args.json {
        out::write_json(&as_json(&report, &name, &namespace))?;
    } else {
        out::write(&page(&report, &name, &namespace))?;
    }
    let worst = report.findings.iter().map(|finding| finding.level).max();
    Ok(if worst >= Some(Level::Warning) { Exit::Warnings } else { Exit::Done })
}

fn as_json<'a>(report: &'a Report, store: &'a str, namespace: &'a str) -> CheckJson<'a> {
    let finding = |finding: &'a Finding| FindingJson {
        rule: &finding.rule,
        level: finding.level.to_string(),
        evidence: &finding.evidence,
        remedy: finding.remedy.as_deref(),
    };
    let round_trip_ms = report.round_trip.as_secs_f64() * 1e3;
    CheckJson { store, namespace, round_trip_ms, findings: report.findings.iter().map(finding).collect() }
}

fn page(report: &Report, store: &str, namespace: &str) -> String {
    let mut rows = table::bare();
    for finding in &report.findings {
        let told = match &finding.remedy {
            Some(remedy) => format!("{}\n-> {remedy}", finding.evidence),
            None => finding.evidence.clone(),
        };
        rows.add_row([finding.level.to_string(), finding.rule.to_string(), told]);
    }
    let mut text = format!("{store}, namespace {namespace:?}\n");
    for line in table::text(&mut rows).lines() {
        // Coloured afterwards, so that the table counts what is seen.
        let level = LEVELS.into_iter().find(|level| line.starts_with(&level.to_string()));
        text.push_str(&match level {
            Some(level) => {
                let (style, word) = (style(level), level.to_string());
                format!("{style}{word}{style:#}{}\n", &line[word.len()..])
            }
            None => format!("{line}\n"),
        });
    }
    let warnings = report.findings.iter().filter(|finding| finding.level == Level::Warning).count();
    text.push_str(&match warnings {
        0 => "no warnings\n".to_owned(),
        1 => "1 warning\n".to_owned(),
        more => format!("{more} warnings\n"),
    });
    text
}

fn style(level: Level) -> Style {
    match level {
        Level::Good => AnsiColor::Green.on_default(),
        Level::Warning => AnsiColor::Red.on_default().bold(),
        _ => AnsiColor::Yellow.on_default(),
    }
}
