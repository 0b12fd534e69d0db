//! The workload of the fault cases: one client that takes, uses and gives back locks as a seed has it, and records it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use fastrand::Rng;
use lock_core::{LockClient, LockGuard, Renew};

use crate::{
    Fate,
    history::{Recorder, What},
    polls::poll_n_then,
};

/// What a client is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Decides everything that is left to chance.
    pub(crate) seed: u64,
    /// The client's lease.
    pub(crate) lease: Duration,
    /// For how long.
    pub(crate) time: Duration,
}

/// The locks that all clients contend for: few, so that they meet.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Numbers acquisitions; unique within a process, and a client's events name the client too.
static ATTEMPTS: AtomicU64 = AtomicU64::new(1);

/// Works until the time is over. Errors are part of the workload: the checker judges what was recorded.
pub(crate) async fn work(client: &LockClient, recorder: &Recorder, plan: Plan) {
    let mut rng = Rng::with_seed(plan.seed);
    let end = Recorder::now() + plan.time;
    while Recorder::now() < end {
        let name = NAMES[rng.usize(..NAMES.len())];
        let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        if let Some(guard) = acquire(client, recorder, &mut rng, name, attempt, plan.lease).await {
            hold(guard, recorder, &mut rng, attempt).await;
        }
    }
}

async fn acquire(
    client: &LockClient,
    recorder: &Recorder,
    rng: &mut Rng,
    name: &str,
    attempt: u64,
    lease: Duration,
) -> Option<LockGuard> {
    let renew = if rng.u8(..3) == 0 { Renew::Off } else { Renew::Auto };
    let wait = lease.mul_f64(rng.f64() * 2.0);
    let lock = client.lock(name).renew(renew).wait(wait);
    recorder.note(Recorder::now(), attempt, name, What::Asked);
    let guard = match rng.u8(..10) {
        0..6 => lock.acquire().await.ok(),
        6..8 => lock.try_acquire().await.ok().flatten(),
        // A caller that loses interest, at any of the places where it can.
        _ => poll_n_then(rng.usize(..6), Fate::Dropped, wait, lock.acquire()).await.ended().and_then(Result::ok),
    };
    let at = Recorder::now();
    match &guard {
        Some(guard) => {
            let until = at.saturating_add(guard.remaining());
            let ends = (renew == Renew::Off).then(|| at.saturating_add(lease));
            let token = guard.fencing_token().get();
            recorder.note(Recorder::now(), attempt, name, What::Granted { token, until, ends });
        }
        None => recorder.note(at, attempt, name, What::GaveUp),
    }
    guard
}

async fn hold(guard: LockGuard, recorder: &Recorder, rng: &mut Rng, attempt: u64) {
    for _ in 0..rng.u8(..8) {
        if !recorder.look(attempt, &guard) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(..40))).await;
    }
    let name = guard.name().to_owned();
    recorder.note(Recorder::now(), attempt, &name, What::Releasing);
    if rng.u8(..4) == 0 {
        drop(guard);
    } else if guard.release().await.is_ok() {
        recorder.note(Recorder::now(), attempt, &name, What::Released);
    }
}
