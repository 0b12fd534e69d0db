//! The channels that someone is interested in, and which of them are subscribed.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// How long a channel stays subscribed after the last interest in it has gone: a waiter that asks again, and the next
/// one in its line, find it subscribed.
pub(super) const LINGER: Duration = Duration::from_millis(500);

/// Whether the server tells us of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Not yet, or not any more until the connection is made anew.
    NotYet,
    /// What is published from now on arrives.
    Yes,
    /// The server's ACL forbids it. Waiters then ask again now and then.
    Refused,
}

/// The channels by name.
#[derive(Default)]
pub(super) struct Channels {
    by_name: HashMap<Arc<str>, Channel>,
    /// Those that are to be subscribed.
    fresh: Vec<Arc<str>>,
}

struct Channel {
    interested: usize,
    idle_since: Instant,
    /// Every message, and every change of what is heard, is a new version of this.
    heard: watch::Sender<Heard>,
}

impl Channels {
    /// One more is interested in a channel, which is subscribed or soon will be.
    pub(super) fn join(&mut self, name: String) -> (Arc<str>, watch::Receiver<Heard>) {
        let name: Arc<str> = match self.by_name.get_key_value(name.as_str()) {
            Some((known, _)) => Arc::clone(known),
            None => name.into(),
        };
        let channel = self.by_name.entry(Arc::clone(&name)).or_insert_with(|| {
            self.fresh.push(Arc::clone(&name));
            Channel { interested: 0, idle_since: Instant::now(), heard: watch::Sender::new(Heard::NotYet) }
        });
        channel.interested += 1;
        (name, channel.heard.subscribe())
    }

    /// One more is interested in a channel, if it is subscribed.
    pub(super) fn join_heard(&mut self, name: &str) -> Option<(Arc<str>, watch::Receiver<Heard>)> {
        let name = Arc::clone(self.by_name.get_key_value(name)?.0);
        let channel = self.by_name.get_mut(&name)?;
        if *channel.heard.borrow() != Heard::Yes {
            return None;
        }
        channel.interested += 1;
        Some((name, channel.heard.subscribe()))
    }

    /// One less is interested.
    pub(super) fn leave(&mut self, name: &str) {
        if let Some(channel) = self.by_name.get_mut(name) {
            channel.interested -= 1;
            channel.idle_since = Instant::now();
        }
    }

    /// The channels that are to be subscribed, once.
    pub(super) fn take_fresh(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.fresh)
    }

    /// The server's word on a subscription.
    pub(super) fn answered(&mut self, names: &[Arc<str>], heard: Heard) {
        for name in names {
            if let Some(channel) = self.by_name.get(name) {
                channel.heard.send_replace(heard);
            }
        }
    }

    /// A message on a channel.
    pub(super) fn message(&self, name: &str) {
        if let Some(channel) = self.by_name.get(name) {
            channel.heard.send_modify(|_| {});
        }
    }

    /// Forgets the channels that nobody has been interested in for a while; they are to be unsubscribed.
    pub(super) fn take_idle(&mut self) -> Vec<Arc<str>> {
        let now = Instant::now();
        let idle = |channel: &Channel| channel.interested == 0 && channel.idle_since + LINGER <= now;
        self.by_name.extract_if(|_, channel| idle(channel)).map(|(name, _)| name).collect()
    }

    /// The connection has gone: nothing is heard, whoever relied on it is woken, and all is to be subscribed anew.
    pub(super) fn cut(&mut self) {
        self.by_name.retain(|_, channel| channel.interested > 0);
        for channel in self.by_name.values() {
            // Those who have not been heard yet are not woken again by each attempt to connect that fails.
            channel.heard.send_if_modified(|heard| std::mem::replace(heard, Heard::NotYet) != Heard::NotYet);
        }
        self.fresh = self.by_name.keys().cloned().collect();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(name: &str) -> (Channels, watch::Receiver<Heard>) {
        let mut channels = Channels::default();
        let (_, heard) = channels.join(name.to_owned());
        (channels, heard)
    }

    #[test]
    fn a_channel_is_subscribed_once_however_many_are_interested() {
        let (mut channels, _heard) = channels("a");
        channels.join("a".to_owned());
        assert_eq!(channels.take_fresh().len(), 1);
        channels.join("a".to_owned());
        assert!(channels.take_fresh().is_empty());
    }

    #[test]
    fn a_message_and_a_cut_are_told_to_who_was_there() {
        let (mut channels, mut heard) = channels("a");
        assert!(channels.join_heard("a").is_none(), "nothing is heard yet");
        channels.answered(&channels.by_name.keys().cloned().collect::<Vec<_>>(), Heard::Yes);
        assert!(channels.join_heard("a").is_some());
        heard.mark_unchanged();
        channels.message("b");
        assert!(!heard.has_changed().expect("the channel is there"));
        channels.message("a");
        assert!(heard.has_changed().expect("the channel is there"));
        heard.mark_unchanged();
        channels.cut();
        assert!(heard.has_changed().expect("the channel is there"));
        assert_eq!(channels.take_fresh().len(), 1, "it is to be subscribed again");
    }

    #[test]
    fn a_channel_lingers_and_then_goes() {
        let (mut channels, _heard) = channels("a");
        channels.leave("a");
        assert!(channels.take_idle().is_empty(), "so soon");
        for channel in channels.by_name.values_mut() {
            channel.idle_since -= LINGER;
        }
        assert_eq!(channels.take_idle().len(), 1);
        assert!(channels.is_empty());
    }

    #[test]
    fn a_channel_that_nobody_wants_does_not_outlive_a_cut() {
        let (mut channels, _heard) = channels("a");
        channels.leave("a");
        channels.cut();
        assert!(channels.is_empty() && channels.take_fresh().is_empty());
    }
}
