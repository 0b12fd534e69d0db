//! The clauses of the contract: what a case can prove, one promise to a line.
//!
//! A number such as L5 holds several promises. Each has a letter here, so that a case says exactly which one it proves
//! and a broken backend is told by name which one it broke. A test fails when a clause has no case.

/// One promise of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Its number and letter, such as `L5.b`.
    pub id: &'static str,
    /// The promise in a few words.
    pub title: &'static str,
    /// Who proves it.
    pub proof: Proof,
}

/// Who proves a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A case of this suite, on every store.
    Suite,
    /// Tests of another crate, since the clause is about what this suite cannot reach.
    Elsewhere(&'static str),
}

/// How many numbers the contract has: L1 to L20.
pub const NUMBERS: u32 = 20;

const fn clause(id: &'static str, title: &'static str) -> Clause {
    Clause { id, title, proof: Proof::Suite }
}

const fn elsewhere(id: &'static str, title: &'static str, by: &'static str) -> Clause {
    Clause { id, title, proof: Proof::Elsewhere(by) }
}

/// Every clause, in the contract's order.
pub const CLAUSES: &[Clause] = &[
    clause("L1.a", "at most one claim of a name is validly held at any instant"),
    clause("L1.b", "tasks that share one client and one connection exclude each other"),
    clause("L1.c", "clients with connections of their own exclude each other"),
    clause("L1.d", "processes exclude each other"),
    clause("L1.e", "two names are two locks, and a refused attempt leaves the holder as it was"),
    clause("L2.a", "a claim is taken by one atomic operation: of many racers one wins"),
    clause("L2.b", "no claim is ever in the store without an end"),
    clause("L3.a", "validity counts from before the request left"),
    clause("L3.b", "without renewal the hold ends at the lease, and only an explicit extend moves that end"),
    clause("L3.c", "max_hold ends the hold, and an extend beyond it is refused"),
    clause("L3.d", "no hold is valid after the store's record of it has ended"),
    clause("L3.e", "suspended time counts"),
    clause("L3.f", "a grant that comes after its own deadline is released, not returned"),
    clause("L4.a", "every acquisition has a claim id of its own"),
    clause("L4.b", "a lost guard never becomes valid again"),
    clause("L4.c", "nothing a lost guard does touches a successor's record"),
    clause("L5.a", "release removes its own claim and no other"),
    clause("L5.b", "when release returns Ok the store has no record of the claim"),
    clause("L5.c", "a claim that is absent at the first send is Lost"),
    clause("L5.d", "a claim that is absent at a retry was released by the first send"),
    clause("L5.e", "release answers within the request timeout, and the clean-up goes on behind it"),
    clause("L6.a", "extend lengthens what is still held and never shortens"),
    clause("L6.b", "extend of what is gone is Lost and re-creates nothing"),
    clause("L6.c", "an extend that races the renewal is not shortened by it"),
    clause("L6.d", "extend at an unreachable store is Unavailable and the hold goes on to its deadline"),
    clause("L6.e", "an extend by zero is refused before the store sees it"),
    clause("L7.a", "renewal is on by default and starts before the guard is returned"),
    clause("L7.b", "no renewal is sent once release has returned"),
    clause("L7.c", "renewal ends on panic, abort and drop"),
    clause("L7.d", "max_hold ends the hold of a forgotten guard and of a hung holder"),
    clause("L7.e", "without renewal the hold ends at its lease on every store"),
    clause("L7.f", "after an outage longer than the lease the next acquisition renews normally"),
    clause("L8.a", "is_held and remaining are exact at every call"),
    clause("L8.b", "lost and protect resolve when the deadline passes"),
    clause("L8.c", "a suspend is noticed by the timers"),
    clause("L8.d", "a claim removed or overwritten by hand is told within the store's stated bound"),
    clause("L8.e", "a cut connection, or one failed renewal, is no loss"),
    clause("L8.f", "an unreachable store is told as a loss at the deadline, neither earlier nor later"),
    clause("L8.g", "a loss is told to who asks late, and a normal release tells none"),
    clause("L9.a", "try_acquire never waits and leaves no place in a queue"),
    clause("L9.b", "acquire ends by its limit"),
    clause("L9.c", "busy, timed out and unavailable are told apart"),
    clause("L9.d", "an attempt at an unreachable store is repeated for a while, then Unavailable"),
    clause("L9.e", "a waiter in line outlives an outage that its limit allows"),
    clause("L9.f", "a wait of zero is one attempt"),
    clause("L9.g", "a waiter is woken by the release"),
    clause("L9.h", "a waiter is woken by a holder's silent expiry"),
    clause("L9.i", "a waiter is woken although its notifications were cut"),
    clause("L9.j", "a client's waiters are served first come, first served, and none is starved"),
    clause("L10.a", "a future dropped at any await point leaves nothing"),
    clause("L10.b", "a forgotten future leaves nothing beyond a lease"),
    clause("L10.c", "a waiter that timed out leaves no place in a queue"),
    clause("L10.d", "a claim whose answer was lost is cleaned up after"),
    clause("L11.a", "dropping a guard releases in the background"),
    clause("L11.b", "a drop outside a runtime, or after it has ended, neither blocks nor panics"),
    clause("L11.c", "a closed client refuses new work and ends its waiters as Closed"),
    clause("L11.d", "close loses every live guard first and releases its claim then"),
    clause("L11.e", "close returns when confirmed or after the request timeout, and may be repeated"),
    clause("L11.f", "guards keep their client alive"),
    clause("L12.a", "an owner's inner acquire succeeds at once and shares the token"),
    clause("L12.b", "different owners exclude each other, and who names no owner never re-enters"),
    clause("L12.c", "an inner acquire makes one extend, by the longer lease"),
    clause("L12.d", "re-entry into what is gone is Lost and never a new claim"),
    clause("L12.e", "re-entry at an unreachable store succeeds on the present deadline"),
    clause("L12.f", "the record goes when the last guard goes, in any order"),
    clause("L12.g", "while the owner's first acquire is in flight, acquire awaits it and try_acquire gives None"),
    clause("L12.h", "while the owner's last release is in flight, acquire awaits it"),
    clause("L12.i", "the ambient owner reaches nested calls, and no spawned task"),
    clause("L12.j", "a lost hold is forgotten with its last guard"),
    clause("L13.a", "tokens of a name strictly increase from grant to grant"),
    clause("L13.b", "tokens increase across expiry, crash and breaking"),
    clause("L13.c", "tokens increase across the clean-up of idle records"),
    clause("L13.d", "tokens increase across a server's restart with its data"),
    clause("L13.e", "extend and re-entry leave the token alone"),
    clause("L13.f", "fence_base is added to every token that is shown or taken"),
    clause("L13.g", "a resource that compares tokens refuses a late holder"),
    clause("L14.a", "names of 1 to 512 bytes and namespaces of 0 to 64 are taken, others refused"),
    clause("L14.b", "names that differ in any byte are different locks"),
    clause("L14.c", "inspect shows names as they were given and takes a prefix literally"),
    clause("L15.a", "values out of range are refused before the store sees them, with value and range"),
    clause("L15.b", "a lease shorter than the store's shortest is rounded up, visibly"),
    elsewhere("L15.c", "unknown URL options are refused", "the facade, which alone reads URLs"),
    clause("L16.a", "a killed holder's lock is free within the lease plus the stated slack"),
    clause("L16.b", "a killed waiter does not block those behind it"),
    clause("L16.c", "a stopped holder is superseded, and knows it at its first look"),
    clause("L17.a", "namespaces do not meet"),
    clause("L17.b", "foreign data beside ours neither breaks nor blocks us"),
    clause("L18.a", "a client outlives cut connections"),
    clause("L18.b", "a client outlives its server's restart, and claims that the store kept stay held"),
    clause("L18.c", "a client works again after an outage, without a new client"),
    clause("L19.a", "one release costs a bounded number of commands, whatever the number of waiters"),
    clause("L19.b", "a queueing store serves its waiters in order"),
    clause("L20.a", "after many cycles the store is back at its baseline"),
    clause("L20.b", "after many cycles the client is back at its baseline"),
    clause("L20.c", "records kept for their token alone are not shown"),
];

/// The clause with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Clause> {
    CLAUSES.iter().find(|clause| clause.id == id)
}

/// The number that a clause's id belongs to: 5 for `L5.b`.
#[must_use]
pub fn number(id: &str) -> Option<u32> {
    id.strip_prefix('L')?.split_once('.')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cases;

    #[test]
    fn every_clause_has_one_id_and_every_number_has_clauses() {
        let ids: BTreeSet<_> = CLAUSES.iter().map(|clause| clause.id).collect();
        assert_eq!(ids.len(), CLAUSES.len(), "a clause id is given twice");
        let numbers: BTreeSet<_> = ids.iter().map(|id| number(id).expect("ids are L, number, dot, letter")).collect();
        assert_eq!(numbers, (1..=NUMBERS).collect());
    }

    #[test]
    fn every_clause_is_proved_by_a_case() {
        let cited: BTreeSet<_> = cases::all().iter().flat_map(|case| case.clauses().to_vec()).collect();
        let unproved: Vec<_> =
            CLAUSES.iter().filter(|clause| clause.proof == Proof::Suite && !cited.contains(clause.id)).collect();
        assert!(unproved.is_empty(), "clauses without a case: {unproved:#?}");
    }

    #[test]
    fn every_case_cites_clauses_that_exist() {
        for case in cases::all() {
            assert!(!case.clauses().is_empty(), "{} proves nothing", case.name());
            for id in case.clauses() {
                assert!(find(id).is_some(), "{} cites {id}, which is no clause", case.name());
            }
        }
    }

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let all = cases::all();
        let names: BTreeSet<_> = all.iter().map(crate::Case::name).collect();
        assert_eq!(names.len(), all.len());
    }
}
