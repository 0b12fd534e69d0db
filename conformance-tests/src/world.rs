//! What a case is given: a namespace of its own on the store under test, clients, bounds, and the oracle.

use std::{
    fmt::Display,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use lock_core::{Backend, Capabilities, ClientBuilder, Holder, LockClient, LockKind, LockName, Namespace};

use crate::{Bounds, Fixture, Key, Oracle, Outcome, Server, Stop, log};

/// What one call may take that is not what a case is about: as long as for a long lease.
pub(crate) const CALL: Duration = Duration::from_secs(5);

/// One case's view of the store. Clones are the same view.
#[derive(Clone, Debug)]
pub struct World {
    fixture: Arc<dyn Fixture>,
    oracle: Arc<dyn Oracle>,
    capabilities: Arc<Capabilities>,
    namespace: Namespace,
}

impl World {
    /// A view of this fixture's store, with a namespace that no other case and no earlier run has used.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn of(fixture: Arc<dyn Fixture>) -> Outcome<Self> {
        let oracle = fixture.oracle().await?;
        let backend = fixture.connect().await?;
        let capabilities = Arc::new(backend.capabilities().clone());
        backend.close().await;
        let namespace = Namespace::new(&format!("case-{:012x}", fastrand::u64(..1 << 48)))?;
        Ok(World { fixture, oracle, capabilities, namespace })
    }

    /// The same case on a store of its own.
    ///
    /// # Errors
    ///
    /// Skipped where the fixture has none to give.
    pub async fn private(&self) -> Outcome<Self> {
        World::of(self.fixture.private().await?).await
    }

    /// The fixture itself.
    #[must_use]
    pub fn fixture(&self) -> &Arc<dyn Fixture> {
        &self.fixture
    }

    /// The oracle itself.
    #[must_use]
    pub fn oracle(&self) -> &dyn Oracle {
        &*self.oracle
    }

    /// What the store promises.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The time bounds that follow from it.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds::of(&self.capabilities)
    }

    /// A lease whose end a case waits for.
    #[must_use]
    pub fn short(&self) -> Duration {
        self.bounds().short()
    }

    /// A lease that a case has renewed.
    #[must_use]
    pub fn renewed(&self) -> Duration {
        self.bounds().renewed()
    }

    /// This case's namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What the libraries have logged in this case so far.
    #[must_use]
    pub fn log(&self) -> String {
        log::so_far()
    }

    /// A new connection to the store.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn backend(&self) -> Outcome<Arc<dyn Backend>> {
        self.fixture.connect().await
    }

    /// A client with a connection of its own, in this case's namespace.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn client(&self) -> Outcome<LockClient> {
        // A third of a short lease is less than a busy machine may take for one call. Cases about the time of a call set
        // their own.
        Ok(self.builder().await?.request_timeout(CALL).build()?)
    }

    /// A client to be, with a connection of its own, in this case's namespace.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn builder(&self) -> Outcome<ClientBuilder> {
        Ok(self.over(self.backend().await?))
    }

    /// A client to be over this backend, in this case's namespace. Its lease outlives the case unless it is set.
    pub fn over(&self, backend: impl Backend) -> ClientBuilder {
        let builder = LockClient::builder(backend).namespace(self.namespace.as_str()).lease(self.bounds().long());
        match self.fixture.clock() {
            Some(clock) => builder.clock(clock),
            None => builder,
        }
    }

    /// The server behind a private store.
    ///
    /// # Errors
    ///
    /// Skipped where there is none.
    pub fn server(&self) -> Outcome<Arc<dyn Server>> {
        self.fixture.server().ok_or_else(|| Stop::skipped("the store has no server that the fixture controls"))
    }

    /// The lock of this name in this case's namespace, as the oracle wants it.
    ///
    /// # Errors
    ///
    /// When the name is none.
    pub fn key(&self, name: &str) -> Outcome<Key> {
        Ok(Key { namespace: self.namespace.clone(), name: LockName::new(name)?, kind: LockKind::Exclusive })
    }

    /// Who holds this lock, by the oracle; an error if several do.
    ///
    /// # Errors
    ///
    /// A failure of L1 if the store shows two holders at once.
    pub async fn holder(&self, name: &str) -> Outcome<Option<Holder>> {
        let mut holders = self.oracle.holders(&self.key(name)?).await?;
        let last = holders.pop();
        crate::ensure!("L1.a", holders.is_empty(), "{name:?} has several holders: {last:?} and {holders:?}");
        Ok(last)
    }

    /// Who waits for this lock in the store, by the oracle.
    ///
    /// # Errors
    ///
    /// When the oracle cannot tell.
    pub async fn waiting(&self, name: &str) -> Outcome<u64> {
        Ok(self.oracle.waiting(&self.key(name)?).await?)
    }

    /// Proves, within `limit`, that the store has no claim of this lock, in force or waiting.
    ///
    /// # Errors
    ///
    /// A failure of `clause` when something is left.
    pub async fn gone(&self, clause: &'static str, name: &str, limit: Duration) -> Outcome {
        eventually(clause, limit, format_args!("the store has no trace of {name:?}"), async || {
            Ok(self.holder(name).await?.is_none() && self.waiting(name).await? == 0)
        })
        .await
    }

    /// Proves that the lock can be had now by someone else, and gives it back.
    ///
    /// # Errors
    ///
    /// A failure of `clause` when it cannot.
    pub async fn free(&self, clause: &'static str, name: &str, limit: Duration) -> Outcome {
        let other = self.client().await?;
        match other.lock(name).wait(limit).acquire().await {
            Ok(guard) => guard.release().await?,
            Err(error) => {
                let holder = self.holder(name).await?;
                return Err(Stop::failed(clause, format!("{name:?} cannot be had: {error}; held by {holder:?}")));
            }
        }
        self.gone(clause, name, self.bounds().prompt()).await
    }
}

/// Proves that a state is reached within a limit. Looks again and again: no sleep is a proof.
///
/// # Errors
///
/// A failure of `clause` when the limit passes first, or what the look itself met.
#[track_caller]
pub fn eventually(
    clause: &'static str,
    limit: Duration,
    what: impl Display,
    mut look: impl AsyncFnMut() -> Outcome<bool>,
) -> impl Future<Output = Outcome> {
    let failed = Stop::failed(clause, format!("not within {limit:?}: {what}"));
    async move {
        let start = Instant::now();
        loop {
            // The state is looked at once more after the limit, since a busy machine may have slept over it.
            let last = start.elapsed() >= limit;
            if look().await? {
                return Ok(());
            }
            if last {
                return Err(failed);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Proves that a future ends within a limit.
///
/// # Errors
///
/// A failure of `clause` when the limit passes first.
#[track_caller]
pub fn within<T>(
    clause: &'static str,
    limit: Duration,
    what: impl Display,
    future: impl Future<Output = T>,
) -> impl Future<Output = Outcome<T>> {
    let failed = Stop::failed(clause, format!("not within {limit:?}: {what}"));
    async move { tokio::time::timeout(limit, future).await.map_err(|_| failed) }
}
