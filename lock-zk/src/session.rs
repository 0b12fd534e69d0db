//! The session: one at a time, and another once it has ended, with no need for a new client (L18).

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join;
use lock_core::{BackendError, BackendErrorKind};
use tokio::sync::mpsc;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, SessionState};

use crate::{
    ZkConfig,
    capabilities::guarantee,
    confirm::{self, Confirm},
    error::told,
    line::Line,
};

/// One session with the ensemble.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// Tells this session from those before it: a node of an earlier one is no claim of ours any more.
    pub(crate) number: u64,
    /// Where confirmations are asked for. Its task ends with the runtime that also serves the connection.
    pub(crate) confirmations: mpsc::UnboundedSender<Confirm>,
    /// The servers, for messages.
    hosts: String,
    acls: Acls<'static>,
}

impl Session {
    async fn open(config: &ZkConfig, number: u64) -> Result<Self, BackendError> {
        let cluster = config.connect_string()?;
        let mut connector = Client::connector()
            .with_session_timeout(config.session_timeout)
            // A server that has gone silent is left in time to find another before the guarantee runs out.
            .with_connection_timeout(config.session_timeout / 4)
            .with_fail_eagerly();
        let mut acls = Acls::anyone_all();
        if let Some((user, password)) = &config.credentials {
            connector = connector.with_auth("digest", format!("{user}:{password}").as_bytes());
            acls = Acls::creator_all();
        }
        let client = match tokio::time::timeout(config.connect_timeout, connector.connect(&cluster)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(told(&config.hosts, "connecting", error)),
            Err(_) => {
                let limit = config.connect_timeout;
                return Err(BackendError::unavailable(format!(
                    "ZooKeeper {}: no server answered within {limit:?}",
                    config.hosts
                )));
            }
        };
        let (confirmations, asked) = mpsc::unbounded_channel();
        tokio::spawn(confirm::run(client.clone(), asked));
        tracing::debug!(hosts = %config.hosts, session = %client.session_id(), timeout = ?client.session_timeout(), "session begun");
        Ok(Session { client, number, confirmations, hosts: config.hosts.clone(), acls })
    }

    /// Whether the session may still be had: no server has said that it ended, and its runtime lives.
    pub(crate) fn is_alive(&self) -> bool {
        !self.client.state().is_terminated() && !self.confirmations.is_closed()
    }

    /// How long the server is sure to keep the session after it has heard of it.
    pub(crate) fn guarantee(&self) -> Duration {
        guarantee(self.client.session_timeout())
    }

    /// How nodes of this sort are created.
    pub(crate) fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.acls)
    }

    pub(crate) fn told(&self, what: &str, error: Error) -> BackendError {
        told(&self.hosts, what, error)
    }

    /// Makes the directory of a lock, which the server reaps some time after the last claim has left it.
    pub(crate) async fn make_directory(&self, directory: &str) -> Result<(), BackendError> {
        match self.client.mkdir(directory, &self.options(CreateMode::Container)).await {
            Ok(()) => Ok(()),
            Err(Error::NoNode) => Err(self.no_chroot()),
            Err(error) => Err(self.told("making a directory", error)),
        }
    }

    /// The line before a lock; empty where there is no directory.
    pub(crate) async fn line(&self, directory: &str) -> Result<Line, BackendError> {
        match self.client.list_children(directory).await {
            Ok(names) => Ok(Line::of(names)),
            Err(Error::NoNode) => Ok(Line::default()),
            Err(error) => Err(self.told("listing claims", error)),
        }
    }

    /// The names in a directory as of now: a follower may be behind, and is made to catch up first.
    pub(crate) async fn list_synced(&self, directory: &str) -> Result<Vec<String>, BackendError> {
        // Both leave at once: a session's requests are served in the order of their sending.
        let (synced, names) = join(self.client.sync(directory), self.client.list_children(directory)).await;
        match (synced, names) {
            (_, Err(Error::NoNode)) => Ok(Vec::new()),
            (Ok(()) | Err(Error::NoNode), Ok(names)) => Ok(names),
            (Err(error), _) | (_, Err(error)) => Err(self.told("listing claims", error)),
        }
    }

    async fn check_chroot(&self) -> Result<(), BackendError> {
        match self.client.check_stat("/").await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(self.no_chroot()),
            Err(error) => Err(self.told("looking for the chroot", error)),
        }
    }

    fn no_chroot(&self) -> BackendError {
        let (hosts, chroot) = (&self.hosts, self.client.path());
        let message = format!("ZooKeeper {hosts}: the chroot {chroot} does not exist; create it, or name another");
        BackendError::new(BackendErrorKind::Config, message)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client's own Debug is left out: it knows the password.
        f.debug_struct("Session")
            .field("id", &self.client.session_id())
            .field("state", &self.client.state())
            .finish_non_exhaustive()
    }
}

/// The session of a backend, whichever it is at the moment.
#[derive(Debug)]
pub(crate) struct Sessions {
    config: ZkConfig,
    slot: Mutex<Slot>,
    /// Held while a session is begun, so that one is enough for all who want it.
    beginning: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Slot {
    Open(Arc<Session>),
    Closed,
}

impl Sessions {
    pub(crate) async fn open(config: ZkConfig) -> Result<Self, BackendError> {
        let session = Session::open(&config, 0).await?;
        // Only here: whoever removes it later is told when a directory is made.
        session.check_chroot().await?;
        let slot = Mutex::new(Slot::Open(Arc::new(session)));
        Ok(Sessions { config, slot, beginning: tokio::sync::Mutex::new(()) })
    }

    /// The session as it is, alive or not; None once closed.
    pub(crate) fn present(&self) -> Option<Arc<Session>> {
        match &*self.lock() {
            Slot::Open(session) => Some(Arc::clone(session)),
            Slot::Closed => None,
        }
    }

    /// A session that lives, begun now if the last one has ended.
    pub(crate) async fn current(&self) -> Result<Arc<Session>, BackendError> {
        let closed = || BackendError::unavailable("the backend was closed");
        let present = self.present().ok_or_else(closed)?;
        if present.is_alive() {
            return Ok(present);
        }
        let _turn = self.beginning.lock().await;
        let present = self.present().ok_or_else(closed)?;
        if present.is_alive() {
            return Ok(present);
        }
        let session = Arc::new(Session::open(&self.config, present.number + 1).await?);
        let mut slot = self.lock();
        if matches!(*slot, Slot::Closed) {
            return Err(closed());
        }
        *slot = Slot::Open(Arc::clone(&session));
        Ok(session)
    }

    /// Ends the session; answers when the server has confirmed it, or it cannot be reached any more.
    pub(crate) async fn close(&self) {
        let last = std::mem::replace(&mut *self.lock(), Slot::Closed);
        let Slot::Open(session) = last else { return };
        let mut states = session.client.state_watcher();
        // The client ends its session when its last handle goes.
        drop(session);
        let mut state: SessionState = states.peek_state();
        while !state.is_terminated() {
            state = states.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
