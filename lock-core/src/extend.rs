//! Extensions: sent from a task, so that an answer counts whether or not the caller still waits (L6).

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::{BackendError, Extension, engine::apply_extension, hold::Hold, meter::Renewed, shared::Shared};

/// Sends one extension and applies its answer to the hold. `by` is what the user asked for; None is a renewal.
pub(crate) fn extend_hold(
    shared: &Arc<Shared>,
    hold: &Arc<Hold>,
    lease: Duration,
    by: Option<Duration>,
) -> oneshot::Receiver<Result<Extension, BackendError>> {
    let (tx, rx) = oneshot::channel();
    let task = (Arc::clone(shared), Arc::clone(hold));
    let call = async move {
        let (shared, hold) = task;
        let Some(answered) = shared.extension(&hold, lease).await else {
            let _ = tx.send(Ok(Extension::NotHeld));
            return;
        };
        if by.is_none() {
            shared.meter.renewed(Renewed::of(&answered.result));
        }
        apply_extension(&shared, &hold, &answered, by);
        // A caller that is gone has no use for the answer, and the hold has it already.
        let _ = tx.send(answered.result);
    };
    shared.runtime.spawn(call.instrument(hold.span()));
    rx
}
