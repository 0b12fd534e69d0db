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
    book::Standing,
    capabilities::guarantee,
    confirm::{self, Confirm},
    contact::Contact,
    error::told,
    line::Line,
};

/// How long a server may be silent until another is asked, at most: time enough to find one while a call may still take
/// its time, and before what the session guarantees has run out.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// One session with the ensemble.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// Tells this session from those before it: a node of an earlier one is no claim of ours any more.
    pub(crate) number: u64,
    /// Where confirmations are asked for. Its task ends with the runtime that also serves the connection.
    pub(crate) confirmations: mpsc::UnboundedSender<Confirm>,
    contact: Contact,
    /// The servers, for messages.
    hosts: String,
    acls: Acls<'static>,
}

impl Session {
    async fn open(config: &ZkConfig, number: u64) -> Result<Self, BackendError> {
        let cluster = config.connect_string()?;
        let mut connector = Client::connector()
            .with_session_timeout(config.session_timeout)
            .with_connection_timeout((config.session_timeout * 3 / 10).min(LONGEST_SILENCE))
            .with_fail_eagerly();
        let mut acls = Acls::anyone_all();
        if let Some((user, password)) = &config.credentials {
            connector = connector.with_auth("digest", format!("{user}:{password}").as_bytes());
            acls = Acls::creator_all();
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &config.tls {
            connector = connector.with_tls(tls.options()?);
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
        let contact = Contact::follow(client.state_watcher());
        Ok(Session { client, number, confirmations, contact, hosts: config.hosts.clone(), acls })
    }

    /// Whether the session may still be had: no server has said that it ended, and its runtime lives.
    pub(crate) fn is_alive(&self) -> bool {
        !self.client.state().is_terminated() && !self.confirmations.is_closed()
    }

    /// Whether there has been no connection for so long that another session is to be had instead.
    ///
    /// Servers that have lost their data turn a client away that has seen more than they know, in the hope that it finds
    /// another, and never tell it that its session has ended.
    fn is_given_up(&self, furthest: impl Fn(&Session) -> Option<Standing>) -> bool {
        let silence = self.contact.silent_for();
        if silence.is_zero() {
            return false;
        }
        let patience = match furthest(self) {
            // The hold goes on to its deadline; then it is released, and this is looked at again.
            Some(Standing::Granted) => Duration::MAX,
            // A place in a line is given up late, but it is no use while nobody can be asked.
            Some(Standing::Sought) => LONGEST_SILENCE,
            Some(Standing::Ended) | None => LONGEST_SILENCE / 10,
        };
        silence > patience
    }

    /// Resolves when there is a connection again, or the session has ended.
    async fn changes(&self) {
        let mut states = self.client.state_watcher();
        let mut state = states.peek_state();
        while state == SessionState::Disconnected {
            state = states.changed().await;
        }
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
    /// What the backend was told.
    pub(crate) fn config(&self) -> &ZkConfig {
        &self.config
    }

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
    ///
    /// One that is cut off is given up for another if nobody holds a lock by it: `furthest` tells how far a claim of it
    /// has come.
    pub(crate) async fn current(
        &self,
        furthest: impl Fn(&Session) -> Option<Standing>,
    ) -> Result<Arc<Session>, BackendError> {
        let closed = || BackendError::unavailable("the backend was closed");
        let serves = |session: &Session| session.is_alive() && !session.is_given_up(&furthest);
        let present = self.present().ok_or_else(closed)?;
        if serves(&present) {
            return Ok(present);
        }
        let _turn = self.beginning.lock().await;
        let present = self.present().ok_or_else(closed)?;
        if serves(&present) {
            return Ok(present);
        }
        let begun = Session::open(&self.config, present.number + 1);
        let session = tokio::select! {
            begun = begun => Arc::new(begun?),
            () = present.changes(), if present.is_alive() => return Ok(present),
        };
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
