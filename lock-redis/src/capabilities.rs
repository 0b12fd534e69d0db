//! What a single Redis server promises.

use std::{borrow::Cow, time::Duration};

use lock_core::{Capabilities, Verdict, Verdicts, Wakes};

/// The promises of one server. What an operator's settings take away is in the conditions.
pub(crate) fn redis() -> Capabilities {
    let mut promised = Capabilities::new("redis");
    promised.wakes = Wakes::Push;
    // Redis counts whole milliseconds: a key may end up to one before its lease, and be seen until one after.
    promised.margin = Duration::from_millis(2);
    promised.crash_slack = Duration::from_millis(2);
    promised.token_source = Cow::Borrowed("the last one + 1, or the server's clock in microseconds; kept for a day");
    promised.exclusion = exclusion();
    promised.token_order = token_order();
    promised
}

fn exclusion() -> Verdicts {
    let mut across = Verdicts::default();
    // The guard ends by itself; what the program does without asking it, only a token stops.
    across.client_pause = condition("the work asks its guard, or the resource checks the fencing token");
    across.server_restart = condition("the server had written every claim to disk (appendfsync always)");
    // An eviction policy other than noeviction loses data as well.
    across.data_loss = Verdict::No;
    // What a replica had not received before it took over, it grants again.
    across.async_failover = Verdict::No;
    // Keys end by the server's wall clock: put forward by more than a lease, it ends them all.
    across.clock_step = Verdict::No;
    across
}

fn token_order() -> Verdicts {
    let mut across = Verdicts::default();
    across.client_pause = Verdict::Yes;
    across.server_restart = condition("its data was kept, or its clock did not go back");
    across.data_loss = condition("the server's clock did not go back");
    across.async_failover = condition("the new primary's clock is not behind the old one's");
    across.clock_step = condition("the server evicts no keys (maxmemory-policy noeviction)");
    across
}

fn condition(text: &'static str) -> Verdict {
    Verdict::If(Cow::Borrowed(text))
}
