//! One waiter's interest in a lock's release. Dropping it ends the interest, and in time the subscription (L10).

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::watch;

use super::{Hub, channels::Heard};

/// An interest in a channel.
pub(crate) struct Interest {
    hub: Arc<Hub>,
    channel: Arc<str>,
    heard: watch::Receiver<Heard>,
}

impl Interest {
    /// One that began before the store is asked: what is told from here on is newer than the answer.
    pub(super) fn before_asking(hub: &Arc<Hub>, channel: Arc<str>, mut heard: watch::Receiver<Heard>) -> Self {
        heard.mark_unchanged();
        Interest { hub: Arc::clone(hub), channel, heard }
    }

    /// One that began after the store's answer: a release may have come in between, so that it is worth asking again
    /// once the channel is heard, and at once if it is heard already.
    pub(super) fn after_answer(hub: &Arc<Hub>, channel: Arc<str>, mut heard: watch::Receiver<Heard>) -> Self {
        let already = *heard.borrow_and_update() == Heard::Yes;
        if already {
            heard.mark_changed();
        }
        Interest { hub: Arc::clone(hub), channel, heard }
    }

    /// Resolves at the first message, confirmation or cut since the interest began.
    pub(crate) fn changed(mut self) -> BoxFuture<'static, ()> {
        async move {
            if self.heard.changed().await.is_err() {
                // The backend was closed: nothing is heard any more, and core ends those who wait.
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.hub.state.lock().channels.leave(&self.channel);
    }
}
