//! Waking waiters by LISTEN: one connection per backend, there while somebody waits and for a moment after.
//!
//! It only ever saves time: who waits asks again at the holder's end and every few seconds, notified or not.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

/// How long a channel is kept that nobody waits for: between two waits a waiter makes an attempt.
const LINGER: Duration = Duration::from_secs(1);

/// How often the connection is asked whether it lives. A cut that nobody tells of is noticed after twice this.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// How long an attempt waits for its channel on a connection that is there. One that is not served by then is told when
/// it is, as if it had been notified, and asks again.
const ARM_LIMIT: Duration = Duration::from_millis(10);

/// The pauses between attempts to connect.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The channels that this backend listens on.
pub(crate) struct Listener {
    shared: Arc<Shared>,
}

struct Shared {
    options: PgConnectOptions,
    connect_timeout: Duration,
    state: Mutex<State>,
    /// There is a new channel, or the end.
    wake: Notify,
}

#[derive(Default)]
struct State {
    channels: HashMap<String, Channel>,
    task: Option<JoinHandle<()>>,
    connected: bool,
    closed: bool,
}

struct Channel {
    heard: watch::Sender<Heard>,
    users: usize,
    unused_since: Instant,
}

/// What a waiter watches: each change is a reason to ask again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Heard {
    phase: Phase,
    notifications: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The server has not been asked yet.
    #[default]
    Asking,
    /// The server notifies from here on.
    Listening,
    /// There is no connection. When there is, the channel is listened on again, and its waiters ask again.
    Down,
}

impl Listener {
    pub(crate) fn new(options: &PgConnectOptions, connect_timeout: Duration) -> Self {
        let state = Mutex::new(State::default());
        let shared = Shared { options: options.clone(), connect_timeout, state, wake: Notify::new() };
        Listener { shared: Arc::new(shared) }
    }

    /// Listens on a channel. What is released after this returns is told, or else that the channel is served from now on.
    ///
    /// An attempt is not held up until there is a connection: it has its own limits, which may be short.
    pub(crate) async fn subscribe(&self, channel: &str) -> Subscription {
        let mut subscription = Shared::enter(&self.shared, channel);
        if self.shared.state().connected {
            let served = subscription.heard.wait_for(|heard| heard.phase != Phase::Asking);
            let _ = tokio::time::timeout(ARM_LIMIT, served).await;
        }
        subscription.heard.mark_unchanged();
        subscription
    }

    /// Ends the connection.
    pub(crate) async fn close(&self) {
        if let Some(task) = self.shared.end() {
            self.shared.wake.notify_one();
            // A server that does not answer learns of it by the closed socket.
            let _ = tokio::time::timeout(Duration::from_secs(1), task).await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = self.shared.end() {
            task.abort();
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options have the password.
        f.debug_struct("Listener").field("channels", &self.shared.state().channels.len()).finish_non_exhaustive()
    }
}

/// One waiter's ear. Dropping it lets go of the channel.
pub(crate) struct Subscription {
    shared: Arc<Shared>,
    channel: String,
    heard: watch::Receiver<Heard>,
}

impl Subscription {
    /// Resolves at the next notification, and when the connection is lost or found again. For ever pending after the
    /// backend was closed.
    pub(crate) async fn changed(mut self) {
        if self.heard.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(channel) = self.shared.state().channels.get_mut(&self.channel) {
            channel.users -= 1;
            channel.unused_since = Instant::now();
        }
        // So that the task looks when the channel has been unused for long enough.
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user of the channel, and sees that a task serves it.
    fn enter(shared: &Arc<Self>, name: &str) -> Subscription {
        let mut state = shared.state();
        let new = || Channel { heard: watch::Sender::default(), users: 0, unused_since: Instant::now() };
        let channel = state.channels.entry(name.to_owned()).or_insert_with(new);
        channel.users += 1;
        let heard = channel.heard.subscribe();
        // A task whose runtime has ended is finished, too.
        if !state.closed && state.task.as_ref().is_none_or(JoinHandle::is_finished) {
            state.task = Some(tokio::spawn(run(Arc::clone(shared))));
        }
        drop(state);
        shared.wake.notify_one();
        Subscription { shared: Arc::clone(shared), channel: name.to_owned(), heard }
    }

    fn end(&self) -> Option<JoinHandle<()>> {
        let mut state = self.state();
        state.closed = true;
        state.task.take()
    }

    /// Tells every channel that there is no connection.
    fn lost(&self) {
        let mut state = self.state();
        state.connected = false;
        for channel in state.channels.values() {
            channel.heard.send_modify(|heard| heard.phase = Phase::Down);
        }
    }

    fn told(&self, name: &str) {
        if let Some(channel) = self.state().channels.get(name) {
            channel.heard.send_modify(|heard| heard.notifications += 1);
        }
    }

    /// The channels that the server has yet to be asked for.
    fn unserved(&self) -> Vec<String> {
        let state = self.state();
        let unserved = state.channels.iter().filter(|(_, channel)| channel.heard.borrow().phase != Phase::Listening);
        unserved.map(|(name, _)| name.clone()).collect()
    }

    fn serves(&self, names: &[String]) {
        let state = self.state();
        for channel in names.iter().filter_map(|name| state.channels.get(name)) {
            channel.heard.send_modify(|heard| heard.phase = Phase::Listening);
        }
    }

    /// Forgets the channels that nobody has used for a while.
    fn take_unused(&self) -> Vec<String> {
        let mut state = self.state();
        let unused = |channel: &Channel| channel.users == 0 && channel.unused_since.elapsed() >= LINGER;
        let names: Vec<String> =
            state.channels.iter().filter(|(_, channel)| unused(channel)).map(|(name, _)| name.clone()).collect();
        for name in &names {
            state.channels.remove(name);
        }
        names
    }

    fn has_unused(&self) -> bool {
        self.state().channels.values().any(|channel| channel.users == 0)
    }

    /// Whether the task is done: the backend was closed, or nobody waits.
    fn is_done(&self) -> bool {
        let mut state = self.state();
        let done = state.closed || state.channels.is_empty();
        if done {
            // Under the same lock as the look, so that whoever comes next starts another task.
            state.task = None;
            state.connected = false;
        }
        done
    }
}

/// Connects, listens, and connects again, until nobody waits any more.
async fn run(shared: Arc<Shared>) {
    let mut pause = RETRY.0;
    while !shared.is_done() {
        // The driver's listener takes its connection from a pool, which here has that one.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(shared.connect_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(shared.options.clone());
        let error = match PgListener::connect_with(&pool).await {
            Ok(mut listener) => {
                pause = RETRY.0;
                let ended = serve(&shared, &mut listener).await;
                drop(listener);
                let _ = tokio::time::timeout(Duration::from_secs(1), pool.close()).await;
                match ended {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        tracing::debug!(%error, "no connection for notifications; waiters ask every few seconds until there is one");
        shared.lost();
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
        shared.take_unused();
    }
}

/// Serves the channels until nobody waits any more.
async fn serve(shared: &Shared, listener: &mut PgListener) -> Result<(), sqlx::Error> {
    listener.eager_reconnect(false);
    shared.state().connected = true;
    loop {
        let unserved = shared.unserved();
        if !unserved.is_empty() {
            in_time(listener.listen_all(unserved.iter().map(String::as_str))).await?;
            shared.serves(&unserved);
        }
        for name in shared.take_unused() {
            in_time(listener.unlisten(&name)).await?;
        }
        if shared.is_done() {
            return Ok(());
        }
        let nap = if shared.has_unused() { LINGER } else { ASK_EVERY };
        tokio::select! {
            () = shared.wake.notified() => {}
            heard = listener.try_recv() => match heard? {
                Some(heard) => shared.told(heard.channel()),
                None => return Err(cut()),
            },
            () = tokio::time::sleep(nap) => {
                in_time(sqlx::query("SELECT 1").execute(&mut *listener)).await?;
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    tokio::time::timeout(ASK_EVERY, work).await.unwrap_or_else(|_| Err(cut()))
}

fn cut() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::ConnectionAborted.into())
}
