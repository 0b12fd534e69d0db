//! The cluster's members: one is used for everything until it fails, then the next.

use std::{
    fs,
    future::Future,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use lock_core::{BackendError, BackendErrorKind};
use tokio::sync::watch;

use crate::{
    config::{EtcdConfig, EtcdTls},
    error::{Failure, Fault},
    member::Member,
};

/// How long one member is waited for, at most, while there are others.
const TRY_LIMIT: Duration = Duration::from_secs(1);

/// The shortest time that a member is given: a disk may take that long to write.
const TRY_FLOOR: Duration = Duration::from_millis(100);

/// A connection on which nothing comes is asked whether it lives, and given up if it does not say so. Servers refuse
/// to be asked more often than every 5 s (`--grpc-keepalive-min-time`).
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// The members and which of them is used.
#[derive(Debug)]
pub(crate) struct Members {
    slots: Vec<Slot>,
    /// The one in use: all requests go to one, so that a member that is stopped delays few of them. Streams move
    /// with it.
    current: watch::Sender<usize>,
    options: Hidden<ConnectOptions>,
    request_timeout: Duration,
}

#[derive(Debug)]
struct Slot {
    url: String,
    /// What errors call it.
    address: String,
    member: Mutex<Option<Arc<Member>>>,
}

/// Keeps what has a password out of every `Debug`.
struct Hidden<T>(T);

impl<T> std::fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// An answer, and whether it came after a request without one: then what was asked for may have been done before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) repeated: bool,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Member>>> {
        self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection up, unless it has been replaced: the next request makes a new one.
    fn discard(&self, member: &Arc<Member>) {
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, member)) {
            *slot = None;
        }
    }
}

impl Members {
    /// The members of a configuration. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `Config` if there are none, and for TLS files that cannot be read.
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, BackendError> {
        let wrong = |message: String| BackendError::new(BackendErrorKind::Config, message);
        if config.endpoints.is_empty() {
            return Err(wrong("etcd has no endpoints; name at least one as HOST:PORT".to_owned()));
        }
        let mut options = ConnectOptions::new()
            .with_connect_timeout(config.connect_timeout)
            .with_keep_alive(PING.0, PING.1)
            // Servers take a ping on a connection without streams for an attack.
            .with_keep_alive_while_idle(false)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some((name, password)) = &config.user {
            options = options.with_user(name, password);
        }
        if let Some(tls) = &config.tls {
            options = options.with_tls(tls_options(tls)?);
        }
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let mut slots = Vec::new();
        for address in &config.endpoints {
            let host = address.rsplit_once(':').filter(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0) && !host.contains(['/', '@'])
            });
            if host.is_none() {
                // What is no address may be a misplaced password.
                return Err(wrong("an etcd endpoint is no HOST:PORT, such as 10.0.0.1:2379".to_owned()));
            }
            slots.push(Slot {
                url: format!("{scheme}://{address}"),
                address: address.clone(),
                member: Mutex::default(),
            });
        }
        // Clients spread over the members.
        let first = fastrand::usize(..slots.len());
        let request_timeout = config.request_timeout;
        Ok(Members { slots, current: watch::Sender::new(first), options: Hidden(options), request_timeout })
    }

    /// How long a request about a lock with this lease waits for one member.
    pub(crate) fn limit(&self, lease: Duration) -> Duration {
        if self.slots.len() == 1 {
            return self.request_timeout;
        }
        (lease / 6).clamp(TRY_FLOOR, TRY_LIMIT).min(self.request_timeout)
    }

    /// The members of the configuration, as errors call them.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.address.clone()).collect()
    }

    /// Tells which member is in use, and when that changes.
    pub(crate) fn current(&self) -> watch::Receiver<usize> {
        self.current.subscribe()
    }

    /// The connection to a member, made if there is none.
    pub(crate) async fn member(&self, index: usize) -> Result<Arc<Member>, Error> {
        let slot = &self.slots[index];
        if let Some(member) = slot.lock().clone() {
            return Ok(member);
        }
        // Without a user this sends nothing; with one, it authenticates.
        let client = Client::connect([&slot.url], Some(self.options.0.clone())).await?;
        let member = Arc::new(Member::new(client));
        // One that was made meanwhile is as good.
        Ok(Arc::clone(slot.lock().get_or_insert(member)))
    }

    /// Streams on this member have failed: the next one is used, unless someone has moved on already.
    pub(crate) fn leave(&self, index: usize) {
        self.current.send_if_modified(|current| {
            let moves = *current == index && self.slots.len() > 1;
            if moves {
                *current = (index + 1) % self.slots.len();
            }
            moves
        });
    }

    /// Sends a request to the member in use, and to each other one while there is no answer.
    ///
    /// So every request must be one that may be applied twice: all of ours name what they make by the claim's id.
    pub(crate) async fn ask<T, F>(&self, limit: Duration, send: impl Fn(Arc<Member>) -> F) -> Result<Answer<T>, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut repeated = false;
        let mut reauthenticated = false;
        let mut tries = self.slots.len();
        loop {
            let index = *self.current.borrow();
            let failure = match self.ask_one(index, limit, &send).await {
                Ok(value) => return Ok(Answer { value, repeated }),
                Err(failure) => failure.after(repeated),
            };
            tries -= 1;
            match failure.fault {
                Fault::NoAnswer => {
                    self.leave(index);
                    repeated = true;
                    if tries == 0 {
                        return Err(failure);
                    }
                    tracing::debug!(%failure, "asking another member");
                }
                Fault::StaleToken if !reauthenticated => {
                    reauthenticated = true;
                    tries += 1;
                    let refresh = async |member: Arc<Member>| member.refresh_token().await;
                    self.ask_one(index, limit, &refresh).await.map_err(|failure| failure.after(repeated))?;
                }
                _ => return Err(failure),
            }
        }
    }

    async fn ask_one<T, F>(&self, index: usize, limit: Duration, send: &impl Fn(Arc<Member>) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let slot = &self.slots[index];
        // A request that is given up, by us or by being dropped, takes its connection with it.
        let mut connection = Discarded { slot, member: None };
        let asked = tokio::time::timeout(limit, async {
            let member = self.member(index).await?;
            connection.member = Some(Arc::clone(&member));
            send(member).await
        })
        .await;
        match asked {
            Ok(answered) => {
                connection.member = None;
                answered.map_err(|error| Failure::new(&slot.address, error))
            }
            Err(_) => Err(Failure::silent(&slot.address, limit)),
        }
    }

    /// Lets all connections go.
    pub(crate) fn close(&self) {
        for slot in &self.slots {
            *slot.lock() = None;
        }
    }
}

/// Gives a connection up when dropped with one.
struct Discarded<'a> {
    slot: &'a Slot,
    member: Option<Arc<Member>>,
}

impl Drop for Discarded<'_> {
    fn drop(&mut self) {
        if let Some(member) = &self.member {
            self.slot.discard(member);
        }
    }
}

fn tls_options(tls: &EtcdTls) -> Result<TlsOptions, BackendError> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| {
            BackendError::new(
                BackendErrorKind::Config,
                format!("TLS file {} of etcd cannot be read ({error}); check its path and permissions", path.display()),
            )
        })
    };
    let mut options = TlsOptions::new();
    options = match &tls.ca {
        Some(ca) => options.ca_certificate(Certificate::from_pem(read(ca)?)),
        None => options.with_native_roots(),
    };
    if let Some((certificate, key)) = &tls.identity {
        options = options.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(options)
}
