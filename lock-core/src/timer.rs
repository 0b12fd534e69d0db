//! Waiting until a moment of the client's clock, on whatever runtime polls.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Instant, Sleep},
};

use futures_util::future::BoxFuture;

use crate::shared::Shared;

/// The longest that a timer sleeps without reading the client's clock again, so that a suspend is noticed (L8).
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// A tokio timer on the polling runtime; on the client's where the poller is no tokio runtime.
pub(crate) fn sleep(shared: &Shared, nap: Duration) -> Sleep {
    let _entered = Handle::try_current().is_err().then(|| shared.runtime.enter());
    tokio::time::sleep(nap)
}

/// Resolves when the client's clock, or tokio's, has come to `until`.
pub(crate) async fn sleep_until(shared: &Shared, until: Duration) {
    let now = shared.clock.now();
    if until <= now {
        return;
    }
    // Where the client's clock stands still, as in tests, tokio's must end the wait.
    let end = Instant::now().checked_add(until.saturating_sub(now));
    loop {
        let nap = until.saturating_sub(shared.clock.now()).min(LONGEST_NAP);
        if nap.is_zero() || end.is_some_and(|end| Instant::now() >= end) {
            return;
        }
        sleep(shared, nap).await;
    }
}

/// A backend's future, polled and dropped with the client's runtime entered, as the trait promises.
pub(crate) struct Entered {
    runtime: Handle,
    future: Option<BoxFuture<'static, ()>>,
}

impl Entered {
    pub(crate) fn new(runtime: &Handle, future: BoxFuture<'static, ()>) -> Self {
        Entered { runtime: runtime.clone(), future: Some(future) }
    }
}

impl Future for Entered {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let _entered = this.runtime.enter();
        match &mut this.future {
            Some(future) => future.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        self.future.take();
    }
}
