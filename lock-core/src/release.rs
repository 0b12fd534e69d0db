//! Giving a hold up: by `release`, which waits for the store's word, or by drop, which does not (L5, L11).

use std::{sync::Arc, time::Duration};

use tracing::{Instrument as _, info_span};

use crate::{
    BackendError, Error, ErrorKind, LeaseModel, LossReason, Release,
    backoff::Backoff,
    call::Polled,
    carry::RIDE,
    fate::Duty,
    guard::lost_error,
    hold::{Announced, Hold},
    janitor::Janitor,
    meter::Ended,
    observe,
    shared::{Alive, Shared},
    timer::sleep_until,
};

/// The pauses between releases that found the store unreachable.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How a release went.
type Outcome = Result<(), Failure>;

enum Failure {
    /// The first request found nothing: someone had removed the claim.
    Gone,
    /// No confirmation within the request timeout.
    Unconfirmed(Option<BackendError>),
}

/// One guard goes, and waits for the store's word if it was the last.
pub(crate) async fn release(alive: Arc<Alive>, hold: Arc<Hold>, announced: Announced) -> Result<(), Error> {
    let shared = &alive.shared;
    let name = hold.fate.claim.name.clone();
    let now = shared.clock.now();
    if !leave(shared, &hold, announced, now) {
        return hold.remaining(now).map(drop).map_err(|reason| lost_error(name.as_str(), reason));
    }
    shared.engine.dismiss(&hold);
    if let Err(reason) = hold.finish(now) {
        observe::hold_ends(shared, &hold, Ended::lost(reason));
        shared.end(&hold.fate);
        shared.owners.vacate(&hold.fate);
        return Err(lost_error(name.as_str(), reason));
    }
    let request_timeout = hold.request_timeout;
    let parts = (Janitor::call_goes_abroad(shared), Arc::clone(shared));
    let call = async move {
        let (_abroad, shared) = parts;
        carry_out(&shared, &hold, now).await
    };
    let span = info_span!("lock.release", lock.name = name.as_str(), lock.store = &*shared.capabilities.store);
    // Carried: the release goes on wherever the caller stops (L10).
    let mut carried = shared.carrier.carry(call.instrument(span));
    let ridden = if request_timeout > RIDE * 2 { carried.ride().await } else { None };
    let outcome = match ridden {
        Some(outcome) => outcome,
        None => tokio::select! {
            biased;
            outcome = carried => outcome,
            () = sleep_until(shared, now.saturating_add(request_timeout)) => None,
        },
    };
    match outcome.unwrap_or(Err(Failure::Unconfirmed(None))) {
        Ok(()) => Ok(()),
        Err(Failure::Gone) => Err(lost_error(name.as_str(), LossReason::Gone)),
        Err(Failure::Unconfirmed(error)) => {
            let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let message = format!(
                "the release of lock {name:?} was not confirmed within {request_timeout:?}{why}; it goes on in the \
                 background, and the lease ends the claim"
            );
            let told = Error::new(ErrorKind::Unavailable, message);
            Err(match error {
                Some(error) => told.with_source(error),
                None => told,
            })
        }
    }
}

/// Sends the release until it is confirmed or the request timeout is over, then leaves the rest to the janitor.
async fn carry_out(shared: &Arc<Shared>, hold: &Hold, started_at: Duration) -> Outcome {
    let fate = &hold.fate;
    let handover = Handover { shared, hold };
    let until = started_at.saturating_add(hold.request_timeout);
    let mut retry = Backoff::new(RETRY.0, RETRY.1);
    let mut first = true;
    let outcome = loop {
        let answered = shared.release(fate, Polled::ByCaller, hold.request_timeout).await;
        let now = shared.clock.now();
        match answered.result {
            Ok(answer) => {
                if let Duty::Release { until } = fate.released(now) {
                    Janitor::oblige_again(shared, fate, now, until);
                }
                // Absent on a retry is what a first request leaves whose answer was lost (L5).
                break if answer == Release::Absent && first { Err(Failure::Gone) } else { Ok(()) };
            }
            Err(error) => {
                let pause_until = now.saturating_add(retry.next());
                if pause_until >= until {
                    break Err(Failure::Unconfirmed(Some(error)));
                }
                // A refusal did nothing, so it does not explain an absent claim.
                first &= !error.is_unknown();
                sleep_until(shared, pause_until).await;
            }
        }
    };
    // A renewal that was under way may still be on its way to the store; none begins any more (L7). One that hangs must
    // not make the caller's time run out, since the store's word is there.
    let now = shared.clock.now();
    tokio::select! {
        biased;
        () = hold.extensions_ended() => {}
        () = sleep_until(shared, now.saturating_add(until.saturating_sub(now) / 2)) => {}
    }
    tracing::debug!(name = %fate.claim.name, token = %hold.token, confirmed = outcome.is_ok(), "lock released");
    observe::hold_ends(shared, hold, ended(&outcome));
    // Before the caller is told: whoever acquires next in this process must find the seat free.
    drop(handover);
    outcome
}

/// Leaves what is not confirmed to the janitor, also when the task panics or its runtime ends.
struct Handover<'a> {
    shared: &'a Arc<Shared>,
    hold: &'a Hold,
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        // Nothing to tell where the outcome has been told.
        observe::hold_ends(self.shared, self.hold, Ended::Unconfirmed);
        self.shared.end(&self.hold.fate);
        self.shared.owners.vacate(&self.hold.fate);
    }
}

/// One guard goes without waiting; the janitor releases if it was the last.
pub(crate) fn abandon(shared: &Arc<Shared>, hold: &Arc<Hold>, announced: Announced) {
    let now = shared.clock.now();
    if !leave(shared, hold, announced, now) {
        return;
    }
    shared.engine.dismiss(hold);
    let finished = hold.finish(now);
    observe::hold_ends(shared, hold, finished.map_or_else(Ended::lost, |()| Ended::Dropped));
    let valid = finished.is_ok();
    tracing::debug!(name = %hold.fate.claim.name, token = %hold.token, valid, "guard dropped");
    let duty = hold.fate.duty(now, shared.capabilities.lease_model == LeaseModel::PerClaim);
    shared.end(&hold.fate);
    if !valid || duty == Duty::Done {
        // No clean-up will tell of an outcome.
        shared.owners.vacate(&hold.fate);
    }
}

fn ended(outcome: &Outcome) -> Ended {
    match outcome {
        Ok(()) => Ended::Released,
        Err(Failure::Gone) => Ended::Gone,
        Err(Failure::Unconfirmed(_)) => Ended::Unconfirmed,
    }
}

fn leave(shared: &Shared, hold: &Hold, announced: Announced, now: Duration) -> bool {
    shared.meter.guard_closes();
    match &hold.fate.owner {
        Some(owner) => shared.owners.leave(owner, hold, announced, now),
        None => hold.leave(announced),
    }
}
