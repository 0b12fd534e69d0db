//! The checker: what must be true of every history, whatever went wrong in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use crate::history::{Event, History, What};

/// What the checker must know of the run.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The lease of every claim.
    pub lease: Duration,
    /// Until when a waiter must be served once the last fault is over.
    pub served_within: Duration,
}

/// A promise that the history breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The clause.
    pub clause: &'static str,
    /// What was seen.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.clause, self.message)
    }
}

/// Everything that the history breaks; empty for a good one.
#[must_use]
pub fn check(history: &History, rules: Rules) -> Vec<Violation> {
    let attempts = attempts(history);
    let mut found = Vec::new();
    for attempt in attempts.values() {
        found.extend(attempt.held_when_it_could_not_be());
    }
    found.extend(frozen(history, &attempts, rules));
    let mut by_name: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts.values().filter(|attempt| attempt.hold.is_some()) {
        by_name.entry(&attempt.name).or_default().push(attempt);
    }
    for holders in by_name.values_mut() {
        holders.sort_by_key(|attempt| attempt.granted_at());
        found.extend(overlaps(holders));
        found.extend(tokens(holders));
        found.extend(stolen(holders));
    }
    found.extend(left(history));
    found.extend(unserved(history, &attempts, rules));
    found
}

/// One acquisition, with what became of it.
#[derive(Debug)]
struct Attempt {
    client: u64,
    number: u64,
    name: String,
    asked_at: Duration,
    /// When the acquire ended, with or without a guard, or the client died.
    answered_at: Option<Duration>,
    hold: Option<Hold>,
}

#[derive(Debug)]
struct Hold {
    granted_at: Duration,
    token: u64,
    ends: Option<Duration>,
    /// The furthest moment that the client was told it may rely on.
    until: Duration,
    held_at: Vec<Duration>,
    lost_at: Option<Duration>,
    releasing_at: Option<Duration>,
    released: bool,
    died_at: Option<Duration>,
}

impl Hold {
    /// When the hold surely was over for its client: what came first. Up to here it counted on being alone.
    fn end(&self) -> Duration {
        [self.lost_at, self.releasing_at, self.died_at].into_iter().flatten().fold(self.until, Duration::min)
    }
}

impl Attempt {
    fn granted_at(&self) -> Option<Duration> {
        self.hold.as_ref().map(|hold| hold.granted_at)
    }

    fn held_when_it_could_not_be(&self) -> Option<Violation> {
        let hold = self.hold.as_ref()?;
        for at in &hold.held_at {
            if hold.ends.is_some_and(|ends| *at > ends) {
                return Some(Violation {
                    clause: "L3.b",
                    message: format!("{self} is held at {at:?}, though without renewal it ended by {:?}", hold.ends),
                });
            }
            if hold.lost_at.is_some_and(|lost| *at > lost) {
                return Some(Violation {
                    clause: "L4.b",
                    message: format!("{self} is held at {at:?}, though it was lost at {:?}", hold.lost_at),
                });
            }
        }
        None
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "acquisition {} of client {} on {:?}", self.number, self.client, self.name)
    }
}

type Attempts = BTreeMap<(u64, u64), Attempt>;

fn attempts(history: &History) -> Attempts {
    let mut attempts = Attempts::new();
    for event in &history.events {
        let id = (event.client, event.attempt);
        match event.what {
            What::Asked => {
                attempts.insert(id, Attempt::asked(event));
            }
            What::Died => {
                for (_, attempt) in attempts.range_mut((event.client, 0)..=(event.client, u64::MAX)) {
                    attempt.answered_at.get_or_insert(event.at);
                    if let Some(hold) = &mut attempt.hold {
                        hold.died_at.get_or_insert(event.at);
                    }
                }
            }
            _ => {
                if let Some(attempt) = attempts.get_mut(&id) {
                    attempt.add(event);
                }
            }
        }
    }
    attempts
}

impl Attempt {
    fn asked(event: &Event) -> Self {
        Attempt {
            client: event.client,
            number: event.attempt,
            name: event.name.clone(),
            asked_at: event.at,
            answered_at: None,
            hold: None,
        }
    }

    fn add(&mut self, event: &Event) {
        if let What::Granted { token, until, ends } = event.what {
            self.answered_at = Some(event.at);
            self.hold = Some(Hold {
                granted_at: event.at,
                token,
                ends,
                until,
                held_at: Vec::new(),
                lost_at: None,
                releasing_at: None,
                released: false,
                died_at: None,
            });
        }
        if event.what == What::GaveUp {
            self.answered_at.get_or_insert(event.at);
        }
        let Some(hold) = &mut self.hold else { return };
        match event.what {
            What::Held { until } => {
                hold.until = hold.until.max(until);
                hold.held_at.push(event.at);
            }
            What::NotHeld | What::Lost => {
                hold.lost_at.get_or_insert(event.at);
            }
            What::Releasing => hold.releasing_at = Some(event.at),
            What::Released => hold.released = true,
            _ => {}
        }
    }
}

/// No two holds of a name overlap (L1). Each begins when its acquire had returned.
fn overlaps(holders: &[&Attempt]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut last: Option<(&Attempt, Duration)> = None;
    for attempt in holders {
        let Some(hold) = &attempt.hold else { continue };
        if let Some((before, end)) = last
            && hold.granted_at < end
        {
            let message = format!("{attempt} began at {:?}, while {before} lasted until {end:?}", hold.granted_at);
            found.push(Violation { clause: "L1.a", message });
        }
        if last.is_none_or(|(_, end)| hold.end() > end) {
            last = Some((attempt, hold.end()));
        }
    }
    found
}

/// A grant that was asked for after another had returned has the larger token (L13), and no token is given twice.
fn tokens(holders: &[&Attempt]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut given = BTreeSet::new();
    // By when they returned; the largest token so far among those that had returned before a given moment.
    let mut returned: Vec<(Duration, u64)> = Vec::new();
    for attempt in holders {
        let Some(hold) = &attempt.hold else { continue };
        if !given.insert(hold.token) {
            let message = format!("token {} was given twice, the second time to {attempt}", hold.token);
            found.push(Violation { clause: "L13.a", message });
        }
        let before = returned.iter().filter(|(at, _)| *at < attempt.asked_at).map(|(_, token)| *token).max();
        if before.is_some_and(|before| before > hold.token) {
            let message = format!("{attempt} got token {}, after {before:?} had been given", hold.token);
            found.push(Violation { clause: "L13.a", message });
        }
        returned.push((hold.granted_at, hold.token));
    }
    found
}

/// A release that returned Ok was by the store's owner: nobody had been granted the lock before it was called (L5).
fn stolen(holders: &[&Attempt]) -> Vec<Violation> {
    let mut found = Vec::new();
    for attempt in holders {
        let Some(hold) = attempt.hold.as_ref().filter(|hold| hold.released) else { continue };
        let Some(releasing_at) = hold.releasing_at else { continue };
        let successor = holders.iter().find(|other| {
            other.hold.as_ref().is_some_and(|next| next.token > hold.token && next.granted_at < releasing_at)
        });
        if let Some(successor) = successor {
            let message = format!("{attempt} was released with Ok, though {successor} had been granted before");
            found.push(Violation { clause: "L5.a", message });
        }
    }
    found
}

/// A process that was stopped for longer than a lease lost what it had held (L8).
fn frozen(history: &History, attempts: &Attempts, rules: Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut stopped: BTreeMap<u64, Duration> = BTreeMap::new();
    for event in &history.events {
        match event.what {
            What::Stopped => {
                stopped.insert(event.client, event.at);
            }
            What::Resumed => {
                let Some(since) = stopped.remove(&event.client) else { continue };
                if event.at.saturating_sub(since) <= rules.lease {
                    continue;
                }
                for (_, attempt) in attempts.range((event.client, 0)..=(event.client, u64::MAX)) {
                    let Some(hold) = &attempt.hold else { continue };
                    let revived = hold.held_at.iter().any(|at| *at > event.at);
                    if hold.granted_at < since && revived {
                        let message = format!("{attempt} is held after its process was stopped for a lease");
                        found.push(Violation { clause: "L8.a", message });
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// At the end nothing is left in the store (L10).
fn left(history: &History) -> Vec<Violation> {
    let claims = history.events.iter().filter_map(|event| match event.what {
        What::Left { claims } if claims > 0 => Some(claims),
        _ => None,
    });
    claims
        .map(|claims| Violation { clause: "L10.d", message: format!("{claims} claims were left at the end") })
        .collect()
}

/// Once the last fault is over, waiters are served (L9).
fn unserved(history: &History, attempts: &Attempts, rules: Rules) -> Vec<Violation> {
    let Some(healed) = history.events.iter().rev().find(|event| event.what == What::Healed) else { return Vec::new() };
    let end = history.events.last().map_or(healed.at, |event| event.at);
    let mut found = Vec::new();
    for attempt in attempts.values() {
        let from = attempt.asked_at.max(healed.at);
        let answered = attempt.answered_at.unwrap_or(end);
        if answered > from.saturating_add(rules.served_within) {
            let message = format!("{attempt} was not served within {:?} after the last fault", rules.served_within);
            found.push(Violation { clause: "L9.g", message });
        }
    }
    found
}

#[cfg(test)]
mod tests;
