//! `leasehold stores`: what each kind of store guarantees, from its capabilities.

use std::time::Duration;

use leasehold::{Capabilities, LeaseModel, LossPush, Queue, StoreKind, Verdict, Verdicts, Wakes};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    cli::StoresArgs,
    exit::{Exit, Failure},
    out,
    table::{self, table},
};

/// A kind of store as JSON. The shape is documented in `schemas/stores.json`, and stays.
#[derive(Debug, Serialize)]
struct StoreJson {
    store: String,
    schemes: Vec<&'static str>,
    lease_model: &'static str,
    lease_min_ms: u64,
    lease_max_ms: u64,
    lease_step_ms: u64,
    margin_ms: u64,
    crash_slack_ms: u64,
    queue: &'static str,
    wakes: &'static str,
    loss_push: &'static str,
    kinds: Vec<String>,
    token_source: String,
    exclusion: Map<String, Value>,
    token_order: Map<String, Value>,
}

/// Lists them.
pub(crate) fn stores(args: &StoresArgs) -> Result<Exit, Failure> {
    let kinds = leasehold::stores();
    if args.json {
        out::write_json(&kinds.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        out::write(&page(&kinds))?;
    }
    Ok(Exit::Done)
}

fn as_json(kind: &StoreKind) -> StoreJson {
    let promised = &kind.capabilities;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    StoreJson {
        store: promised.store.to_string(),
        schemes: kind.schemes.to_vec(),
        lease_model: match promised.lease_model {
            LeaseModel::PerSession => "per_session",
            _ => "per_claim",
        },
        lease_min_ms: millis(promised.lease_min),
        lease_max_ms: millis(promised.lease_max),
        lease_step_ms: millis(promised.lease_step),
        margin_ms: millis(promised.margin),
        crash_slack_ms: millis(promised.crash_slack),
        queue: if promised.queue == Queue::InStore { "in_store" } else { "in_client" },
        wakes: if promised.wakes == Wakes::Push { "push" } else { "poll" },
        loss_push: if promised.loss_push == LossPush::Prompt { "prompt" } else { "at_renewal" },
        kinds: promised.kinds.iter().map(ToString::to_string).collect(),
        token_source: promised.token_source.to_string(),
        exclusion: verdicts(&promised.exclusion),
        token_order: verdicts(&promised.token_order),
    }
}

fn verdicts(across: &Verdicts) -> Map<String, Value> {
    let told = |verdict: &Verdict| match verdict {
        Verdict::Yes => json!({ "verdict": "yes", "condition": null }),
        Verdict::If(condition) => json!({ "verdict": "if", "condition": condition }),
        _ => json!({ "verdict": "no", "condition": null }),
    };
    across.each().into_iter().map(|(event, verdict)| (event.to_owned(), told(verdict))).collect()
}

fn page(kinds: &[StoreKind]) -> String {
    let mut ways = table(["STORE", "URL", "A CLAIM ENDS WITH", "FIRST COME, FIRST SERVED", "WAITERS", "LOSS IS TOLD"]);
    for kind in kinds {
        let promised = &kind.capabilities;
        ways.add_row([
            promised.store.as_ref(),
            &kind.schemes.join(" "),
            if promised.lease_model == LeaseModel::PerSession { "lease or session" } else { "lease" },
            if promised.queue == Queue::InStore { "among all" } else { "in a client" },
            if promised.wakes == Wakes::Push { "are woken" } else { "poll" },
            if promised.loss_push == LossPush::Prompt { "at once" } else { "at renewal" },
        ]);
    }
    let mut notes = Vec::new();
    let exclusion = promises(kinds, &mut notes, |promised| &promised.exclusion);
    let tokens = promises(kinds, &mut notes, |promised| &promised.token_order);
    let notes: String = notes.iter().enumerate().map(|(i, note)| format!("[{}] if {note}\n", i + 1)).collect();
    format!(
        "{}\nNo two hold one lock, across:\n{exclusion}\nFencing tokens keep their order, across:\n{tokens}\n{notes}",
        table::text(&mut ways)
    )
}

/// One row for each store, one column for each event; conditions go into the notes.
fn promises(kinds: &[StoreKind], notes: &mut Vec<String>, of: impl Fn(&Capabilities) -> &Verdicts) -> String {
    let mut table = table(["STORE", "CLIENT PAUSE", "SERVER RESTART", "DATA LOSS", "ASYNC FAILOVER", "CLOCK STEP"]);
    for kind in kinds {
        let verdicts = of(&kind.capabilities);
        let mut row = vec![kind.capabilities.store.to_string()];
        for (_, verdict) in verdicts.each() {
            row.push(match verdict {
                Verdict::Yes => "yes".to_owned(),
                Verdict::If(condition) => {
                    let at = notes.iter().position(|note| note == condition).unwrap_or_else(|| {
                        notes.push(condition.to_string());
                        notes.len() - 1
                    });
                    format!("[{}]", at + 1)
                }
                _ => "no".to_owned(),
            });
        }
        table.add_row(row);
    }
    table::text(&mut table)
}
