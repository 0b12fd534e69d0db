//! Wake-ups: who is interested in a lock's release, and whether its channel is heard (L9).
//!
//! All waiters of a client share one connection, which a task of its own minds (`subscriber`). It is made when something
//! is first waited for, and made anew after a cut.

mod channels;
mod interest;
mod subscriber;

use std::{fmt, sync::Arc};

use tokio::{sync::Notify, task::JoinHandle};

use self::channels::Channels;
pub(crate) use self::interest::Interest;
use crate::{connector::Connector, sync::Guarded};

/// The wake-ups of one backend.
pub(crate) struct Wakes {
    hub: Arc<Hub>,
}

/// What interests and the subscriber share.
pub(crate) struct Hub {
    connector: Connector,
    state: Guarded<State>,
    /// Tells the subscriber of a channel that it is to subscribe.
    work: Notify,
}

#[derive(Default)]
struct State {
    channels: Channels,
    subscriber: Option<JoinHandle<()>>,
    closed: bool,
}

impl Wakes {
    /// Nothing is connected yet.
    pub(crate) fn new(connector: Connector) -> Self {
        Wakes { hub: Arc::new(Hub { connector, state: Guarded::default(), work: Notify::new() }) }
    }

    /// An interest in a channel that is subscribed already, if it is, for who is about to ask the store.
    pub(crate) fn heard(&self, channel: &str) -> Option<Interest> {
        let mut state = self.hub.state.lock();
        let (name, heard) = state.channels.join_heard(channel)?;
        Some(Interest::before_asking(&self.hub, name, heard))
    }

    /// An interest in a channel, for who has the store's answer. The subscriber subscribes it soon, unless it has.
    pub(crate) fn interest(&self, channel: String) -> Interest {
        let mut state = self.hub.state.lock();
        let (name, heard) = state.channels.join(channel);
        if !state.closed && state.subscriber.as_ref().is_none_or(JoinHandle::is_finished) {
            // The first one, or one whose runtime has ended and which no longer hears what it had subscribed.
            state.channels.cut();
            state.subscriber = Some(tokio::spawn(subscriber::run(Arc::clone(&self.hub))));
        }
        drop(state);
        self.hub.work.notify_one();
        Interest::after_answer(&self.hub, name, heard)
    }

    /// Ends the subscriber and its connection.
    pub(crate) fn close(&self) {
        let mut state = self.hub.state.lock();
        state.closed = true;
        if let Some(subscriber) = state.subscriber.take() {
            subscriber.abort();
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").field("place", &self.hub.connector.place()).finish_non_exhaustive()
    }
}
