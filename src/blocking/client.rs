//! The client whose calls block, and the thread behind it.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use lock_core::{
    Capabilities, ClientBuilder, Error, ErrorKind, FencingToken, Holder, LockClient, LockRecord, Report, Selector,
};
use tokio::runtime::Runtime;

use super::Lock;
use crate::Config;

/// How long the drop of the last handle waits for what is still to be released.
const LAST_LIMIT: Duration = Duration::from_secs(5);

/// Connects to the store of a URL; see [`leasehold::connect`](crate::connect).
///
/// # Errors
///
/// Those of [`leasehold::connect`](crate::connect), and `Unavailable` if no thread can be started.
pub fn connect(url: &str) -> Result<Client, Error> {
    connect_config(&Config::from_url(url)?)
}

/// Connects to the store that a configuration names.
///
/// # Errors
///
/// Those of [`connect`].
pub fn connect_config(config: &Config) -> Result<Client, Error> {
    let (runtime, config) = (runtime()?, config.clone());
    let client = wait(&runtime, async move { crate::connect_config(&config).await })??;
    Ok(Client { inner: Arc::new(Inner { runtime: Some(runtime), client }) })
}

/// A handle on one namespace of one store. Cheap to clone; clones share everything.
///
/// When the last handle and the last guard are gone, that drop waits until what is left to release is released, at most
/// five seconds, so that a program that ends leaves nothing behind.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
}

/// What handles and guards share.
pub(super) struct Inner {
    /// None only while this is being dropped.
    runtime: Option<Runtime>,
    pub(super) client: LockClient,
}

impl Client {
    /// A client of any backend. A backend that needs a runtime to connect is better had by [`connect`].
    ///
    /// # Errors
    ///
    /// Those of [`ClientBuilder::build`], and `Unavailable` if no thread can be started.
    pub fn new(builder: ClientBuilder) -> Result<Self, Error> {
        let runtime = runtime()?;
        let client = {
            let _entered = runtime.enter();
            builder.build()?
        };
        Ok(Client { inner: Arc::new(Inner { runtime: Some(runtime), client }) })
    }

    /// The lock of this name. Sends nothing; a bad name is an error when the lock is acquired.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(self.inner.client.lock(name), Arc::clone(&self.inner))
    }

    /// What the store promises.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        self.inner.client.capabilities()
    }

    /// The namespace that this client's names live in.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.inner.client.namespace()
    }

    /// Who holds and who waits; see [`LockClient::inspect`].
    ///
    /// # Errors
    ///
    /// Those of [`LockClient::inspect`].
    pub fn inspect(&self, selector: impl Into<Selector>) -> Result<Vec<LockRecord>, Error> {
        let (client, selector) = (self.inner.client.clone(), selector.into());
        self.inner.wait(async move { client.inspect(selector).await })?
    }

    /// Removes the claims that hold a lock, or the one with this token; see [`LockClient::break_lock`].
    ///
    /// # Errors
    ///
    /// Those of [`LockClient::break_lock`].
    pub fn break_lock(
        &self,
        name: impl AsRef<str>,
        token: impl Into<Option<FencingToken>>,
    ) -> Result<Vec<Holder>, Error> {
        let (client, name, token) = (self.inner.client.clone(), name.as_ref().to_owned(), token.into());
        self.inner.wait(async move { client.break_lock(name, token).await })?
    }

    /// Reaches the store, and tells which of its settings endanger locks; see [`LockClient::check`].
    ///
    /// # Errors
    ///
    /// Those of [`LockClient::check`].
    pub fn check(&self) -> Result<Report, Error> {
        let client = self.inner.client.clone();
        self.inner.wait(async move { client.check().await })?
    }

    /// Ends the client: waiting calls end as `Closed`, live guards are lost and then released; see
    /// [`LockClient::close`].
    ///
    /// # Errors
    ///
    /// Those of [`LockClient::close`].
    pub fn close(&self) -> Result<(), Error> {
        let client = self.inner.client.clone();
        self.inner.wait(async move { client.close().await })?
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.inner.client).finish()
    }
}

impl Inner {
    /// Runs a future on the client's thread, and blocks until it has ended.
    pub(super) fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
        wait(self.runtime.as_ref().expect("it is there until the last handle is dropped"), future)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (client, (done, ended)) = (self.client.clone(), mpsc::channel());
        runtime.spawn(async move {
            // What it does not reach ends with its lease.
            let _ = client.close().await;
            drop(done);
        });
        let _: Result<(), RecvTimeoutError> = ended.recv_timeout(LAST_LIMIT);
        // Unlike a drop of the runtime this does not panic where it happens in a task.
        runtime.shutdown_background();
    }
}

fn runtime() -> Result<Runtime, Error> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("leasehold").enable_all().build();
    runtime.map_err(|error| Error::new(ErrorKind::Unavailable, format!("no thread for the client: {error}")))
}

fn wait<T: Send + 'static>(runtime: &Runtime, future: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
    let (answer, answered) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        // The receiver waits below for as long as this takes.
        let _ = answer.send(future.await);
    });
    // It ends without an answer only if the future panics, which is a fault of ours.
    answered.recv().map_err(|_| Error::new(ErrorKind::Backend, "the client's thread ended without an answer"))
}
