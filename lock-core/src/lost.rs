//! The future that tells a loss (L8).

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{runtime::Handle, sync::futures::OwnedNotified, time::Sleep};

use crate::{Clock, LossReason, hold::Hold, shared::Shared};

/// Resolves at the first poll after the hold is lost. Reads the clock at every poll, so it is never behind.
pub(crate) struct Lost {
    hold: Arc<Hold>,
    clock: Arc<dyn Clock>,
    shared: Weak<Shared>,
    changed: Pin<Box<OwnedNotified>>,
    /// Watches the clock where the client's engine no longer does, because its runtime has ended.
    own_timer: Option<Pin<Box<Sleep>>>,
}

impl Lost {
    pub(crate) fn new(hold: Arc<Hold>, shared: &Arc<Shared>) -> Self {
        let changed = Box::pin(Arc::clone(&hold.changed).notified_owned());
        Lost { hold, clock: Arc::clone(&shared.clock), shared: Arc::downgrade(shared), changed, own_timer: None }
    }

    fn engine_runs(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| !shared.has_background_ended())
    }
}

impl Future for Lost {
    type Output = LossReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LossReason> {
        let this = &mut *self;
        loop {
            if let Some(reason) = this.hold.told_loss(this.clock.now()) {
                return Poll::Ready(reason);
            }
            if this.changed.as_mut().poll(cx).is_ready() {
                this.changed.set(Arc::clone(&this.hold.changed).notified_owned());
                continue;
            }
            if this.hold.is_done() || this.engine_runs() || Handle::try_current().is_err() {
                return Poll::Pending;
            }
            let left = this.hold.remaining(this.clock.now()).unwrap_or_default();
            let nap = left.min(this.hold.nap).max(Duration::from_millis(1));
            let timer = this.own_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(nap)));
            ready!(timer.as_mut().poll(cx));
            this.own_timer = None;
        }
    }
}
