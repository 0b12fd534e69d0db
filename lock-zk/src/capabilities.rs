//! What ZooKeeper promises.

use std::{borrow::Cow, time::Duration};

use lock_core::{Capabilities, LeaseModel, LossPush, Queue, Verdict, Verdicts, Wakes};

/// What an ensemble promises to a client whose sessions last this long.
pub(crate) fn zookeeper(session_timeout: Duration) -> Capabilities {
    let mut promised = Capabilities::new("zookeeper");
    promised.lease_model = LeaseModel::PerSession;
    // A call may take a third of the lease, and the first one of a lock makes its directories, each on a quorum's disks.
    promised.lease_min = Duration::from_millis(300);
    promised.queue = Queue::InStore;
    promised.wakes = Wakes::Push;
    promised.loss_push = LossPush::Prompt;
    // A killed holder's node goes with its session, however short the lease was. The server looks once a tick, and gives
    // no session below two of them.
    promised.crash_slack = session_timeout + session_timeout / 2;
    promised.token_source = Cow::Borrowed("the transaction that created the claim's node (czxid)");
    promised.exclusion = exclusion();
    promised.token_order = token_order();
    promised
}

/// How long a session is sure to live after the server has heard of it, by the client's clock.
///
/// The rest is the margin: what clocks may differ in rate, and what a follower may take to tell the leader. It is taken
/// off here and not by core (`Capabilities::margin`), which would take it off leases that are shorter than a session as
/// well, although the session outlives those by far.
pub(crate) fn guarantee(session_timeout: Duration) -> Duration {
    session_timeout - session_timeout / 3
}

fn exclusion() -> Verdicts {
    let mut across = Verdicts::default();
    across.client_pause =
        Verdict::If(Cow::Borrowed("the work asks its guard, or the resource checks the fencing token"));
    // What was answered is on the disks of a quorum, sessions included.
    across.server_restart = Verdict::Yes;
    across.data_loss = Verdict::No;
    across.async_failover = Verdict::Yes;
    // Sessions are timed by clocks that only go forward.
    across.clock_step = Verdict::Yes;
    across
}

fn token_order() -> Verdicts {
    let mut across = Verdicts::default();
    across.client_pause = Verdict::Yes;
    across.server_restart = Verdict::Yes;
    // Transactions are then counted from the beginning again.
    across.data_loss = Verdict::No;
    across.async_failover = Verdict::Yes;
    across.clock_step = Verdict::Yes;
    across
}
