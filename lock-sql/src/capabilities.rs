//! What each database promises.

use std::borrow::Cow;

use lock_core::{Capabilities, Verdict, Verdicts};

/// What a PostgreSQL server promises.
#[cfg(feature = "postgres")]
pub(crate) fn of_postgres(listens: bool) -> Capabilities {
    let mut promised = of_server("postgres", "synchronous_commit is not off");
    if listens {
        promised.wakes = lock_core::Wakes::Push;
    }
    promised
}

/// What a MySQL or MariaDB server promises.
#[cfg(feature = "mysql")]
pub(crate) fn of_mysql() -> Capabilities {
    of_server("mysql", "innodb_flush_log_at_trx_commit is 1")
}

/// What a database server promises that keeps what it confirmed under this condition.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn of_server(store: &'static str, durable: &'static str) -> Capabilities {
    let mut promised = Capabilities::new(store);
    promised.token_source = Cow::Borrowed("the last one + 1, or the server's clock in microseconds, kept in the row");
    let mut exclusion = Verdicts::default();
    // The guard ends by itself; what a paused program had begun, only a token stops.
    exclusion.client_pause = condition("the resource checks the fencing token");
    exclusion.server_restart = condition(durable);
    // A replica that lacks the last claims grants them again.
    exclusion.async_failover = Verdict::No;
    exclusion.data_loss = Verdict::No;
    // Leases end by the server's wall clock: put forward by more than a lease, it ends them all.
    exclusion.clock_step = Verdict::No;
    promised.exclusion = exclusion;
    let mut order = Verdicts::default();
    order.client_pause = Verdict::Yes;
    // A token is never below the clock: what was forgotten lies in the past of a clock that went on.
    order.server_restart = condition("the clock did not go back, or nothing confirmed was lost");
    order.data_loss = condition("the clock did not go back");
    order.async_failover = condition("the new primary's clock is not behind");
    order.clock_step = Verdict::Yes;
    promised.token_order = order;
    promised
}

/// What an SQLite file promises to the processes of its host.
#[cfg(feature = "sqlite")]
pub(crate) fn of_sqlite() -> Capabilities {
    let mut promised = Capabilities::new("sqlite");
    // SQLite's clock has milliseconds: a grant may be counted from up to one before it was written, and be found to
    // have run out up to one later.
    promised.margin = std::time::Duration::from_millis(2);
    promised.crash_slack = std::time::Duration::from_millis(2);
    promised.token_source = Cow::Borrowed("the last one + 1, or the host's clock in microseconds, kept in the row");
    promised.exclusion = exclusion();
    promised.token_order = token_order();
    promised
}

#[cfg(feature = "sqlite")]
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

#[cfg(feature = "sqlite")]
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
