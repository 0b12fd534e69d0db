//! One waiter's interest in a lock's release. Dropping it ends the interest, and in time the subscription (L10).

use std::{sync::Arc, time::Duration};

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
    pub(super) fn new(hub: &Arc<Hub>, channel: Arc<str>, mut heard: watch::Receiver<Heard>) -> Self {
        heard.mark_unchanged();
        Interest { hub: Arc::clone(hub), channel, heard }
    }

    /// From here on `changed` resolves for whatever happens. True if the channel is heard: then no release that comes
    /// later is missed.
    pub(crate) fn arm(&mut self) -> bool {
        *self.heard.borrow_and_update() == Heard::Yes
    }

    /// Waits, but not for long, until the server has said whether the channel is heard. True if it is.
    pub(crate) async fn settled(&mut self, limit: Duration) -> bool {
        // Without a change of what was seen: a confirmation that comes after the limit must still wake.
        let mut heard = self.heard.clone();
        let said = tokio::time::timeout(limit, heard.wait_for(|heard| *heard != Heard::NotYet)).await;
        matches!(said, Ok(Ok(heard)) if *heard == Heard::Yes)
    }

    /// Resolves at the first message, confirmation or cut since the interest was armed or made.
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
