//! While CMD runs: signals go to it, and the lock's remaining time is watched. The main thread does nothing else.
//!
//! The store's client runs on threads of its own, so a store that does not answer, or that blocks its thread, cannot
//! keep the KILL at the deadline from being sent. The guard answers from memory and from the clock.

use std::{
    io,
    process::ExitStatus,
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, getpid, kill_process};

use super::{
    Event,
    child::{Child, Reach},
    signals::Arrived,
    watch::{self, Act, Hold, Stage},
};
use crate::voice::Voice;

/// How long to wait for what CMD left in its group before looking again: no signal tells of grandchildren.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(50);

/// The lock, as far as CMD's life depends on it.
pub(super) trait Watched {
    /// Whether it is held, read at this moment.
    fn look(&mut self) -> Hold;
}

/// The rules that CMD's life is kept by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// What CMD gets between TERM and KILL.
    pub(super) grace: Duration,
    /// The longest pause between two looks.
    pub(super) tick: Duration,
}

/// How CMD's run ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// CMD's status.
    pub(super) status: ExitStatus,
    /// What leasehold had sent it for the lock's sake.
    pub(super) sent: Sent,
    /// The lock, right after CMD had ended.
    pub(super) hold: Hold,
}

/// What CMD was sent for the lock's sake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Nothing: it ended by itself, or by a signal from elsewhere.
    Nothing,
    /// TERM.
    Term,
    /// KILL.
    Kill,
}

/// One CMD with the lock that it runs under.
#[derive(Debug)]
pub(super) struct Held<'a, L> {
    child: Child,
    lock: L,
    rules: Rules,
    events: &'a Receiver<Event>,
    voice: &'a Voice,
    asked_at: Option<Instant>,
    killed: bool,
}

impl<'a, L: Watched> Held<'a, L> {
    /// A CMD that has just been started.
    pub(super) fn new(child: Child, lock: L, rules: Rules, events: &'a Receiver<Event>, voice: &'a Voice) -> Self {
        Held { child, lock, rules, events, voice, asked_at: None, killed: false }
    }

    /// Keeps CMD until it has ended. The lock is given back with the answer.
    pub(super) fn keep(mut self) -> io::Result<(L, Ended)> {
        let status = loop {
            // First, so that a CMD which ended while we were stopped is not said to have been killed.
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            let pause = self.act();
            self.pause(pause);
        };
        let hold = self.lock.look();
        let sent = match self.stage() {
            Stage::Running => Sent::Nothing,
            Stage::Asked(_) => Sent::Term,
            Stage::Killed => Sent::Kill,
        };
        if sent == Sent::Term {
            self.clear_away_the_rest();
        }
        Ok((self.lock, Ended { status, sent, hold }))
    }

    /// Does what is due, and says how long nothing else will be.
    fn act(&mut self) -> Duration {
        let hold = self.lock.look();
        match self.decide(hold) {
            Act::LookIn(pause) => return pause,
            Act::Ask => {
                self.child.signal(Signal::TERM);
                // One that has been stopped hears nothing until it goes on.
                self.child.signal(Signal::CONT);
                self.asked_at = Some(Instant::now());
                self.voice.say(asking(hold));
            }
            Act::Kill => {
                self.child.signal(Signal::KILL);
                self.killed = true;
                self.voice.say("the lock's time is up: sent KILL to the command");
            }
        }
        Duration::ZERO
    }

    /// CMD has obeyed TERM, but what it had started may not have: it must not outlive the lock either.
    fn clear_away_the_rest(&mut self) {
        while self.child.left_others() {
            let hold = self.lock.look();
            // A hold that has recovered has a deadline that may never come.
            let out_of_grace = self.asked_at.is_some_and(|at| at.elapsed() >= self.rules.grace);
            match self.decide(hold) {
                Act::LookIn(pause) if !out_of_grace => self.pause(pause.min(LOOK_FOR_OTHERS)),
                _ => {
                    self.voice.say("the lock's time is up: sent KILL to what the command had left running");
                    return self.child.kill_others();
                }
            }
        }
    }

    fn decide(&self, hold: Hold) -> Act {
        watch::decide(hold, self.stage(), self.rules.grace, self.rules.tick)
    }

    fn stage(&self) -> Stage {
        match self.asked_at {
            _ if self.killed => Stage::Killed,
            Some(at) => Stage::Asked(at.elapsed()),
            None => Stage::Running,
        }
    }

    /// Waits for the next event, and passes it on if it is a signal for CMD.
    fn pause(&mut self, pause: Duration) {
        match self.events.recv_timeout(pause) {
            Ok(Event::Signal(arrived)) => self.pass_on(arrived),
            Ok(Event::Wake | Event::Records(_)) | Err(RecvTimeoutError::Timeout) => {}
            // The senders live as long as the process; if they did not, the looks must still be paced.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(pause),
        }
    }

    fn pass_on(&mut self, arrived: Arrived) {
        // In our group, CMD has had from the terminal what we had.
        let has_it = self.child.reach() == Reach::Process && arrived.reached_our_group();
        if arrived.is_passed_on() && !has_it {
            self.child.signal(arrived.signal);
        }
        if arrived.signal == Signal::TSTP {
            // Only heard where CMD has a group of its own, so that ^Z reached us alone. Nobody renews the lock while we are
            // stopped, so CMD is to stop as well. One that refuses TSTP is killed when we go on, if the lease has run out.
            self.child.signal(Signal::TSTP);
            stop_ourselves();
            if !matches!(self.lock.look(), Hold::Expired) {
                self.child.signal(Signal::CONT);
            }
        }
    }
}

/// Stops this process as ^Z does, until someone continues it.
pub(super) fn stop_ourselves() {
    // A process may always signal itself.
    let _ = kill_process(getpid(), Signal::STOP);
}

fn asking(hold: Hold) -> String {
    match hold {
        Hold::Held(left) => format!(
            "the lock could not be renewed and is lost in {}; sent TERM to the command, KILL follows then",
            humantime::format_duration(Duration::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))
        ),
        _ => "the store says that the lock was taken away; sent TERM to the command".to_owned(),
    }
}
