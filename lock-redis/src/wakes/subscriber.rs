//! The task that minds the connection for notifications: subscribes, wakes, and makes the connection anew after a cut.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use redis::{
    RedisError,
    aio::{PubSubSink, PubSubStream},
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tracing::{debug, warn};

use super::{
    Hub,
    channels::{Heard, LINGER},
};
use crate::error::Fault;

/// The pauses between attempts to connect.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How long the server may take to confirm.
const CONFIRM: Duration = Duration::from_secs(5);

/// After so much silence the server is asked whether it is still there: a cut may leave no sign.
const PROBE: Duration = Duration::from_secs(15);

/// How many channels are named in one command.
const PAGE: usize = 1_000;

/// The connection has gone, or is closed.
struct Ended;

/// Runs until nobody is interested in anything any more: neither a connection nor a task is kept for nothing (L20).
pub(super) async fn run(hub: Arc<Hub>) {
    let mut pause = RETRY.0;
    while !hub.retire() {
        match hub.connector.listen().await {
            Ok((sink, stream)) => {
                let connected_at = Instant::now();
                let mut session = Session { hub: &hub, sink, stream, last_heard: connected_at };
                let Ended = session.serve().await;
                // A server that only takes connections and ends them is not asked all the time.
                if session.last_heard > connected_at {
                    pause = RETRY.0;
                }
                debug!(place = hub.connector.place(), "the connection for notifications has ended");
            }
            Err(error) => debug!(%error, "no connection for notifications"),
        }
        // Before the pause: whoever waits asks again meanwhile.
        hub.state.lock().channels.cut();
        if hub.retire() {
            return;
        }
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

impl Hub {
    /// True if nobody is interested in anything: then the subscriber ends, and whoever comes next starts another.
    fn retire(&self) -> bool {
        let mut state = self.state.lock();
        let retired = state.channels.is_empty();
        if retired {
            state.subscriber = None;
        }
        retired
    }
}

/// One connection's time.
struct Session<'a> {
    hub: &'a Hub,
    sink: PubSubSink,
    stream: PubSubStream,
    last_heard: Instant,
}

impl Session<'_> {
    async fn serve(&mut self) -> Ended {
        let mut tick = interval(LINGER);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let fresh = self.hub.state.lock().channels.take_fresh();
            if !fresh.is_empty() && self.subscribe(&fresh).await.is_err() {
                return Ended;
            }
            tokio::select! {
                message = self.stream.next() => {
                    let Some(message) = message else { return Ended };
                    self.last_heard = Instant::now();
                    self.hub.state.lock().channels.message(message.get_channel_name());
                }
                () = self.hub.work.notified() => {}
                _ = tick.tick() => {
                    if self.unsubscribe_idle().await.is_err() {
                        return Ended;
                    }
                }
                () = sleep_until(self.last_heard + PROBE) => {
                    if self.probe().await.is_err() {
                        return Ended;
                    }
                }
            }
        }
    }

    async fn subscribe(&mut self, channels: &[Arc<str>]) -> Result<(), Ended> {
        for page in channels.chunks(PAGE) {
            let names: Vec<&str> = page.iter().map(AsRef::as_ref).collect();
            let heard = match timeout(CONFIRM, self.sink.subscribe(names)).await {
                Ok(Ok(())) => Heard::Yes,
                Ok(Err(error)) if Fault::of(&error) == Fault::Forbidden => {
                    let place = self.hub.connector.place();
                    warn!(place, %error, "the ACL forbids the channels of locks (&leasehold/*): waiters ask now and then instead");
                    Heard::Refused
                }
                Ok(Err(error)) => return Err(self.ended(&error)),
                Err(_) => return Err(Ended),
            };
            self.last_heard = Instant::now();
            self.hub.state.lock().channels.answered(page, heard);
        }
        Ok(())
    }

    async fn unsubscribe_idle(&mut self) -> Result<(), Ended> {
        // Forgotten before they are unsubscribed: whoever comes in between makes the channel fresh again, and is
        // subscribed after this.
        let (idle, last) = {
            let mut state = self.hub.state.lock();
            (state.channels.take_idle(), state.channels.is_empty())
        };
        if last {
            // The end of the connection is the end of all its subscriptions.
            return Err(Ended);
        }
        for page in idle.chunks(PAGE) {
            let names: Vec<&str> = page.iter().map(AsRef::as_ref).collect();
            match timeout(CONFIRM, self.sink.unsubscribe(names)).await {
                Ok(Ok(())) => self.last_heard = Instant::now(),
                Ok(Err(error)) => return Err(self.ended(&error)),
                Err(_) => return Err(Ended),
            }
        }
        Ok(())
    }

    async fn probe(&mut self) -> Result<(), Ended> {
        match timeout(CONFIRM, self.sink.ping::<redis::Value>()).await {
            Ok(Ok(_)) => {
                self.last_heard = Instant::now();
                Ok(())
            }
            Ok(Err(error)) => Err(self.ended(&error)),
            Err(_) => Err(Ended),
        }
    }

    fn ended(&self, error: &RedisError) -> Ended {
        debug!(place = self.hub.connector.place(), %error, "the connection for notifications failed");
        Ended
    }
}
