//! What a store promises, and what it does not: flat facts that core obeys and users compare.

use std::{borrow::Cow, fmt, time::Duration};

use crate::LockKind;

/// What a store promises and how it behaves. Core obeys it, the suite takes its bounds from it, users compare it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// The store's name, such as `sqlite`.
    pub store: Cow<'static, str>,
    /// Whether each claim ends by itself or with its session.
    pub lease_model: LeaseModel,
    /// The shortest lease the store gives; shorter ones are rounded up (L15).
    pub lease_min: Duration,
    /// The longest lease the store takes; longer ones are refused (L15).
    pub lease_max: Duration,
    /// Leases are multiples of this, rounded up.
    pub lease_step: Duration,
    /// What the store's clock may be off, taken from every lease where it exceeds core's own margin (L3).
    pub margin: Duration,
    /// Who keeps the order of waiters.
    pub queue: Queue,
    /// How a waiter learns of a release.
    pub wakes: Wakes,
    /// How a holder learns that its claim is gone.
    pub loss_push: LossPush,
    /// The kinds of lock the store can keep.
    pub kinds: &'static [LockKind],
    /// Where fencing tokens come from, for people.
    pub token_source: Cow<'static, str>,
    /// How much later than the lease a killed holder's lock may become free (L16).
    pub crash_slack: Duration,
    /// Whether two holders are excluded across each event (L1).
    pub exclusion: Verdicts,
    /// Whether tokens keep their order across each event (L13).
    pub token_order: Verdicts,
}

impl Capabilities {
    /// A store that promises nothing yet: every verdict is No until the backend says more.
    #[must_use]
    pub fn new(store: impl Into<Cow<'static, str>>) -> Self {
        Capabilities {
            store: store.into(),
            lease_model: LeaseModel::PerClaim,
            lease_min: Duration::from_millis(50),
            lease_max: Duration::from_secs(365 * 24 * 3600),
            lease_step: Duration::from_millis(1),
            margin: Duration::ZERO,
            queue: Queue::InClient,
            wakes: Wakes::Poll,
            loss_push: LossPush::AtRenewal,
            kinds: &[LockKind::Exclusive],
            token_source: Cow::Borrowed("unknown"),
            crash_slack: Duration::ZERO,
            exclusion: Verdicts::default(),
            token_order: Verdicts::default(),
        }
    }
}

/// Whether a claim ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseModel {
    /// Each claim has its own lease in the store.
    PerClaim,
    /// Claims live as long as the client's session; core ends them at their lease (L7).
    PerSession,
}

/// Who keeps the order of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Queue {
    /// The store: first come, first served among all clients.
    InStore,
    /// The client: first come, first served within one client, a race between clients.
    InClient,
}

/// How a waiter learns of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wakes {
    /// The store tells.
    Push,
    /// The client asks again and again.
    Poll,
}

/// How a holder learns that its claim was removed by someone else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossPush {
    /// The store tells at once.
    Prompt,
    /// The next renewal finds out.
    AtRenewal,
}

/// One promise, across each event that could break it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Verdicts {
    /// The holding client is stopped or suspended past its lease.
    pub client_pause: Verdict,
    /// The server restarts with its data.
    pub server_restart: Verdict,
    /// The server comes back without its data.
    pub data_loss: Verdict,
    /// A replica that had not received the last writes takes over.
    pub async_failover: Verdict,
    /// The server's wall clock is set.
    pub clock_step: Verdict,
}

impl Verdicts {
    /// The events with their verdicts, in a fixed order, for tables.
    #[must_use]
    pub fn each(&self) -> [(&'static str, &Verdict); 5] {
        [
            ("client_pause", &self.client_pause),
            ("server_restart", &self.server_restart),
            ("data_loss", &self.data_loss),
            ("async_failover", &self.async_failover),
            ("clock_step", &self.clock_step),
        ]
    }
}

/// Whether a promise holds across an event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Verdict {
    /// It holds.
    Yes,
    /// It does not.
    #[default]
    No,
    /// It holds under this condition.
    If(Cow<'static, str>),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Yes => f.write_str("yes"),
            Verdict::No => f.write_str("no"),
            Verdict::If(condition) => write!(f, "if {condition}"),
        }
    }
}
