//! What is to be done about CMD as its lock runs out: the whole decision as one pure function.

use std::time::Duration;

/// What the guard says of the lock at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Held for this much longer unless renewed; never zero.
    Held(Duration),
    /// The deadline has passed: from now on anyone may hold the lock.
    Expired,
    /// The store says that the claim is gone: someone else may have held the lock for a while already.
    Gone,
}

/// What was done about CMD so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing.
    Running,
    /// It was asked to end, this long ago.
    Asked(Duration),
    /// It was killed.
    Killed,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing, and look again after at most this long.
    LookIn(Duration),
    /// Send TERM, then look again.
    Ask,
    /// Send KILL.
    Kill,
}

/// What to do about CMD.
///
/// TERM goes out when only `grace` is left of the lease, KILL at the deadline: both before anyone else can hold the
/// lock. A claim that is gone has no deadline left, so TERM goes out at once and `grace` is all that CMD has. `tick`
/// bounds every pause, because a timer sleeps through a suspend of the machine and the lease does not.
pub(super) fn decide(hold: Hold, stage: Stage, grace: Duration, tick: Duration) -> Act {
    match (hold, stage) {
        (_, Stage::Killed) => Act::LookIn(tick),
        (Hold::Expired, _) => Act::Kill,
        (Hold::Held(left), Stage::Running) if left > grace => Act::LookIn(tick.min(left - grace)),
        (Hold::Held(_) | Hold::Gone, Stage::Running) => Act::Ask,
        // The hold may have recovered since: it is the deadline as it is now that counts.
        (Hold::Held(left), Stage::Asked(_)) => Act::LookIn(tick.min(left)),
        (Hold::Gone, Stage::Asked(ago)) if ago < grace => Act::LookIn(tick.min(grace - ago)),
        (Hold::Gone, Stage::Asked(_)) => Act::Kill,
    }
}

/// The longest pause between two looks at a lock of this lease.
pub(super) fn tick(lease: Duration) -> Duration {
    (lease / 10).clamp(Duration::from_millis(5), Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decision_follows_the_lease() {
        let s = Duration::from_secs;
        let (grace, tick) = (s(5), s(1));
        #[rustfmt::skip]
        let table = [
            (Hold::Held(s(30)), Stage::Running,     Act::LookIn(tick)),
            (Hold::Held(Duration::from_millis(5_400)), Stage::Running, Act::LookIn(Duration::from_millis(400))),
            (Hold::Held(s(5)),  Stage::Running,     Act::Ask),
            (Hold::Held(s(1)),  Stage::Running,     Act::Ask),
            (Hold::Held(s(4)),  Stage::Asked(s(1)), Act::LookIn(tick)),
            (Hold::Held(Duration::from_millis(3)), Stage::Asked(s(4)), Act::LookIn(Duration::from_millis(3))),
            (Hold::Held(s(30)), Stage::Asked(s(9)), Act::LookIn(tick)),
            (Hold::Held(s(30)), Stage::Killed,      Act::LookIn(tick)),
            (Hold::Expired,     Stage::Running,     Act::Kill),
            (Hold::Expired,     Stage::Asked(s(1)), Act::Kill),
            (Hold::Expired,     Stage::Killed,      Act::LookIn(tick)),
            (Hold::Gone,        Stage::Running,     Act::Ask),
            (Hold::Gone,        Stage::Asked(s(0)), Act::LookIn(tick)),
            (Hold::Gone,        Stage::Asked(Duration::from_millis(4_800)), Act::LookIn(Duration::from_millis(200))),
            (Hold::Gone,        Stage::Asked(s(5)), Act::Kill),
            (Hold::Gone,        Stage::Killed,      Act::LookIn(tick)),
        ];
        for (hold, stage, act) in table {
            assert_eq!(decide(hold, stage, grace, tick), act, "{hold:?} {stage:?}");
        }
    }

    #[test]
    fn without_grace_the_command_runs_to_the_deadline() {
        let tick = Duration::from_secs(1);
        let left = Duration::from_millis(1);
        assert_eq!(decide(Hold::Held(left), Stage::Running, Duration::ZERO, tick), Act::LookIn(left));
        assert_eq!(decide(Hold::Gone, Stage::Running, Duration::ZERO, tick), Act::Ask);
        assert_eq!(decide(Hold::Gone, Stage::Asked(Duration::ZERO), Duration::ZERO, tick), Act::Kill);
    }

    #[test]
    fn no_pause_outlasts_a_tenth_of_the_lease_or_a_second() {
        assert_eq!(tick(Duration::from_secs(30)), Duration::from_secs(1));
        assert_eq!(tick(Duration::from_secs(2)), Duration::from_millis(200));
        assert_eq!(tick(Duration::from_millis(50)), Duration::from_millis(5));
    }
}
