//! The steps of a play, and how they are drawn.

use proptest::{collection::vec, prelude::*};

/// How many clients, names and owners a play has. Few, so that they meet.
pub(super) const CLIENTS: usize = 3;
pub(super) const NAMES: usize = 2;
pub(super) const OWNERS: usize = 2;

/// One call, or a pause. Indices are taken modulo what there is.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Try(Wanted),
    /// Waits in the background, this long at most.
    Acquire(Wanted, u64),
    /// Acquires and gives the future up after this many polls.
    GiveUp(Wanted, usize),
    Release(usize),
    Drop(usize),
    Extend(usize, u64),
    /// Releases and gives the future up after this many polls.
    ReleaseHalfway(usize, usize),
    Break(usize, usize),
    Inspect(usize),
    Pause(u64),
    /// Closes a client; its place is taken by a new one.
    Close(usize),
}

/// Whose lock, and how.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) client: usize,
    pub(super) name: usize,
    pub(super) owner: Option<usize>,
    pub(super) renewed: bool,
    pub(super) max_hold_ms: Option<u64>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let owner = prop::option::weighted(0.4, 0..OWNERS);
    let max_hold_ms = prop::option::weighted(0.2, 30_u64..400);
    (0..CLIENTS, 0..NAMES, owner, any::<bool>(), max_hold_ms)
        .prop_map(|(client, name, owner, renewed, max_hold_ms)| Wanted { client, name, owner, renewed, max_hold_ms })
}

fn step() -> impl Strategy<Value = Step> {
    let guard = 0_usize..8;
    prop_oneof![
        5 => wanted().prop_map(Step::Try),
        5 => (wanted(), 1_u64..300).prop_map(|(wanted, wait_ms)| Step::Acquire(wanted, wait_ms)),
        3 => (wanted(), 0_usize..6).prop_map(|(wanted, polls)| Step::GiveUp(wanted, polls)),
        5 => guard.clone().prop_map(Step::Release),
        3 => guard.clone().prop_map(Step::Drop),
        3 => (guard.clone(), 1_u64..500).prop_map(|(guard, by_ms)| Step::Extend(guard, by_ms)),
        2 => (guard, 0_usize..4).prop_map(|(guard, polls)| Step::ReleaseHalfway(guard, polls)),
        1 => (0..CLIENTS, 0..NAMES).prop_map(|(client, name)| Step::Break(client, name)),
        1 => (0..CLIENTS).prop_map(Step::Inspect),
        3 => (1_u64..80).prop_map(Step::Pause),
        1 => (0..CLIENTS).prop_map(Step::Close),
    ]
}

/// A whole play.
pub(super) fn play() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..40)
}
