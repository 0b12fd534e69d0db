//! What each database promises.

use std::{borrow::Cow, time::Duration};

use lock_core::{Capabilities, Verdict, Verdicts};

/// What an SQLite file promises to the processes of its host.
pub(crate) fn of_sqlite() -> Capabilities {
    let mut promised = Capabilities::new("sqlite");
    // SQLite's clock has milliseconds: a grant may be counted from up to one before it was written, and be found to
    // have run out up to one later.
    promised.margin = Duration::from_millis(2);
    promised.crash_slack = Duration::from_millis(2);
    promised.token_source = Cow::Borrowed("the last one + 1, or the host's clock in microseconds, kept in the row");
    promised.exclusion = exclusion();
    promised.token_order = token_order();
    promised
}

fn exclusion() -> Verdicts {
    let mut across = Verdicts::default();
    // The guard ends by itself; what a paused program had begun, only a token stops.
    across.client_pause = condition("the resource checks the fencing token");
    // The processes of one host are all there are, so that whoever held a lock died with the host: a power cut may
    // forget their last claims, and no claim of the living.
    across.server_restart = Verdict::Yes;
    across.data_loss = Verdict::No;
    across.async_failover = condition("nothing replicates the file");
    // Leases end by the host's wall clock: put forward by more than a lease, it ends them all.
    across.clock_step = Verdict::No;
    across
}

fn token_order() -> Verdicts {
    let mut across = Verdicts::default();
    across.client_pause = Verdict::Yes;
    // `synchronous=NORMAL` may lose the last rows in a power cut, never in a crash of the process.
    across.server_restart = condition("the clock did not go back across a power cut");
    across.data_loss = condition("the clock did not go back");
    across.async_failover = condition("nothing replicates the file");
    across.clock_step = Verdict::Yes;
    across
}

fn condition(text: &'static str) -> Verdict {
    Verdict::If(Cow::Borrowed(text))
}
