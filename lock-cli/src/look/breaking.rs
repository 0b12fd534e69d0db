//! `leasehold break`: takes a lock away, after showing from whom.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, SystemTime},
};

use leasehold::{Holder, LockClient, LockName, Selector};

use super::{holder_sentence, who};
use crate::{
    cli::{BreakArgs, StoreArgs},
    exit::{Exit, Failure},
    out, session,
};

/// Breaks it.
pub(crate) fn break_lock(store: &StoreArgs, args: &BreakArgs) -> Result<Exit, Failure> {
    LockName::new(&args.name)?;
    if !args.yes && !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "break would ask first, and stdin is no terminal; use --yes to break without asking",
        ));
    }
    let broken = session::ask(store, async |client| {
        let holders = matching(client, args).await?;
        if holders.is_empty() {
            return Err(nothing(args, "held"));
        }
        if !args.yes && !is_confirmed(&args.name, &holders) {
            return Err(Failure::new(Exit::Nothing, "nothing was broken"));
        }
        let mut broken = Vec::new();
        // Those who were shown, and nobody who came while the question stood.
        for holder in holders {
            broken.extend(client.break_lock(&args.name, holder.token).await?);
        }
        Ok(broken)
    })?;
    if broken.is_empty() {
        return Err(nothing(args, "held any more"));
    }
    let told =
        |holder: &Holder| format!("broke lock {:?}, held by {}, token {}\n", args.name, who(holder), holder.token);
    out::write(&broken.iter().map(told).collect::<String>())?;
    Ok(Exit::Done)
}

async fn matching(client: &LockClient, args: &BreakArgs) -> Result<Vec<Holder>, Failure> {
    let records = client.inspect(Selector::name(&args.name)).await?;
    let wanted = |holder: &Holder| args.token.is_none_or(|token| token == holder.token.get());
    Ok(records.into_iter().flat_map(|record| record.holders).filter(wanted).collect())
}

fn nothing(args: &BreakArgs, how: &str) -> Failure {
    let name = &args.name;
    let told = match args.token {
        Some(token) => format!("lock {name:?} is not {how} with token {token}; see `leasehold show`"),
        None => format!("lock {name:?} is not {how}"),
    };
    Failure::new(Exit::Nothing, told)
}

/// Asks on the terminal. Everything but a yes is a no.
fn is_confirmed(name: &str, holders: &[Holder]) -> bool {
    let now = SystemTime::now();
    let mut question = String::new();
    for holder in holders {
        question.push_str(&format!(
            "lock {name:?} is {} (token {})\n",
            holder_sentence(holder, Duration::ZERO, now),
            holder.token
        ));
    }
    question
        .push_str("If it lives, it learns of this at its next renewal and works on until then. Break the lock? [y/N] ");
    // A question that cannot be seen is not answered with a yes.
    if io::stderr().lock().write_all(question.as_bytes()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
