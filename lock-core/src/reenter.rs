//! Re-entry: one more guard on an owner's own hold (L12).

use std::time::Duration;

use crate::{Error, Extension, LockGuard, extend::extend_hold, timer::sleep_until};

/// Makes one extend for a guard that has just joined its owner's hold.
///
/// The guard counts already: however this ends, dropping it counts it out.
pub(crate) async fn reenter(guard: LockGuard, lease: Duration, limit: Option<Duration>) -> Result<LockGuard, Error> {
    let shared = guard.shared();
    let hold = guard.hold();
    let lease = hold.lengthen(lease);
    let until = shared.clock.now().saturating_add(hold.request_timeout).min(limit.unwrap_or(Duration::MAX));
    let answer = extend_hold(shared, hold, lease, Some(lease));
    let answered = tokio::select! {
        biased;
        answered = answer => answered.ok(),
        () = sleep_until(shared, until) => None,
    };
    let kept = matches!(answered, Some(Ok(Extension::Extended(_))));
    match guard.hold().remaining(shared.clock.now()) {
        Ok(left) => {
            if !kept {
                // The store did not answer: the hold goes on to its deadline, and so may the caller.
                tracing::debug!(name = %hold.fate.claim.name, ?left, "re-entered on the present deadline");
            }
            Ok(guard)
        }
        Err(reason) => Err(guard.lost_error(reason)),
    }
}
