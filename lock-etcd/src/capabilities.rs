//! What an etcd cluster promises.

use std::{borrow::Cow, time::Duration};

use lock_core::{Capabilities, LossPush, Queue, Verdict, Verdicts, Wakes};

/// The shortest lease of a server with etcd's default settings: one and a half times its election timeout of a second,
/// in whole seconds.
const DEFAULT_LEASE_MIN: Duration = Duration::from_secs(2);

/// What a cluster promises whose shortest lease is this; None before one was asked.
pub(crate) fn of_etcd(lease_min: Option<Duration>) -> Capabilities {
    let mut promised = Capabilities::new("etcd");
    promised.lease_min = lease_min.unwrap_or(DEFAULT_LEASE_MIN);
    promised.lease_step = Duration::from_secs(1);
    promised.queue = Queue::InStore;
    promised.wakes = Wakes::Push;
    promised.loss_push = LossPush::Prompt;
    // The leader looks for leases that have run out every half second, and then has their end written.
    promised.crash_slack = Duration::from_secs(1);
    promised.token_source = Cow::Borrowed("the revision that created the claim's key");
    promised.exclusion = exclusion();
    promised.token_order = token_order();
    promised
}

fn exclusion() -> Verdicts {
    let mut across = Verdicts::default();
    across.client_pause = Verdict::If(Cow::Borrowed("the resource checks the fencing token"));
    // A restarted server, as a new leader, gives every lease its whole length anew.
    across.server_restart = Verdict::Yes;
    across.data_loss = Verdict::No;
    // A majority has every write before it is answered: there is no failover that forgets one. But older servers let a
    // leader that was stalled for longer than a lease end it after another has taken over and kept it alive.
    across.async_failover =
        Verdict::If(Cow::Borrowed("all members run etcd 3.4.31, 3.5.13 or later (etcd-io/etcd#15247)"));
    // Leases are counted by the monotonic clock of the leader's process.
    across.clock_step = Verdict::Yes;
    across
}

fn token_order() -> Verdicts {
    let mut across = Verdicts::default();
    across.client_pause = Verdict::Yes;
    across.server_restart = Verdict::Yes;
    // An empty cluster counts its revisions from one again.
    across.data_loss = Verdict::No;
    across.async_failover = Verdict::Yes;
    across.clock_step = Verdict::Yes;
    across
}
