//! The client: a handle on one namespace of one store.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    Backend, Capabilities, Claim, ClientBuilder, Error, ErrorKind, FencingToken, Holder, HolderInfo, Intent, Lock,
    LockKind, LockName, LockRecord, Release, Selector,
    call::{Polled, no_answer},
    fate::Fate,
    janitor::End,
    shared::{Alive, Shared},
    timer::sleep_until,
};

/// A handle on one namespace of one store. Cheap to clone; clones share everything.
///
/// The client's background work (renewal, watching deadlines, clean-up) runs on the tokio runtime that it was built
/// in. When the last handle and the last guard are gone, what is left to clean up is cleaned up and the store's
/// connections are closed.
///
/// ```
/// use lock_core::{LockClient, MemoryBackend};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_core::Error> {
/// let client = LockClient::builder(MemoryBackend::new()).namespace("shop").build()?;
/// let guard = client.lock("order:1001").acquire().await?;
/// assert!(guard.is_held());
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LockClient {
    alive: Arc<Alive>,
}

impl LockClient {
    pub(crate) fn new(alive: Arc<Alive>) -> Self {
        LockClient { alive }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.alive.shared
    }

    #[cfg(test)]
    pub(crate) fn alive(&self) -> &Alive {
        &self.alive
    }

    /// A client of this backend, to be configured.
    pub fn builder(backend: impl Backend) -> ClientBuilder {
        ClientBuilder::new(Arc::new(backend))
    }

    /// The lock of this name. Sends nothing; a bad name is an error when the lock is acquired.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(Arc::clone(&self.alive), LockName::new(name.as_ref()))
    }

    /// What the store promises.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.alive.shared.capabilities
    }

    /// The namespace that this client's names live in.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.alive.shared.options.namespace.as_str()
    }

    /// The lease of locks that are not given one of their own.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.alive.shared.options.lease
    }

    /// Who holds and who waits, in this client's namespace: a text selects the names that begin with it.
    ///
    /// # Errors
    ///
    /// `Closed`; `Unavailable` when the store does not answer within the request timeout; `Backend` when it refuses.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing, so it may be dropped at any time.
    pub async fn inspect(&self, selector: impl Into<Selector>) -> Result<Vec<LockRecord>, Error> {
        let mut records = self.records(selector.into()).await?;
        for record in &mut records {
            for holder in &mut record.holders {
                holder.token = self.alive.shared.user_token(holder.token);
            }
            let place = record.queue.iter().position(|claim| self.alive.shared.janitor.is_sought(*claim));
            record.place = place.map(|place| place as u64 + 1);
        }
        records.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(records)
    }

    /// The records as the store has them, with its own tokens.
    async fn records(&self, selector: Selector) -> Result<Vec<LockRecord>, Error> {
        let shared = &self.alive.shared;
        shared.check_open()?;
        let until = shared.clock.now().saturating_add(shared.request_timeout());
        let answer = shared.records(selector.in_namespace(shared.options.namespace.clone()));
        let result = tokio::select! {
            biased;
            answered = answer => answered.map_err(|_| no_answer()).and_then(|answered| answered.result),
            () = sleep_until(shared, until) => {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!("{} did not answer within {:?}", shared.capabilities.store, shared.request_timeout()),
                ));
            }
        };
        result.map_err(|error| Error::from_backend(&shared.capabilities.store, error))
    }

    /// Removes the claims that hold a lock, or the one with this token; answers whom it removed.
    ///
    /// The holders learn of it as of any loss: at once where the store tells, else at their next renewal. Until then
    /// they believe that they hold, so use it for holders that are known to be dead or beyond control.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a bad name; `Closed`; `Unavailable` when the store does not answer within the request
    /// timeout, in which case the claim may or may not be gone; `Backend` when it refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway, some of the holders may have been removed.
    pub async fn break_lock(
        &self,
        name: impl AsRef<str>,
        token: impl Into<Option<FencingToken>>,
    ) -> Result<Vec<Holder>, Error> {
        let shared = &self.alive.shared;
        let name = LockName::new(name.as_ref())?;
        let token = token.into();
        let mut broken = Vec::new();
        for record in self.records(Selector::name(name.as_str())).await? {
            for mut holder in record.holders {
                holder.token = shared.user_token(holder.token);
                if token.is_some_and(|token| token != holder.token) {
                    continue;
                }
                if self.release_claim_of(&name, record.kind, &holder).await? == Release::Removed {
                    tracing::warn!(%name, token = %holder.token, host = %holder.host, pid = holder.pid, "lock broken");
                    broken.push(holder);
                }
            }
        }
        Ok(broken)
    }

    async fn release_claim_of(&self, name: &LockName, kind: LockKind, holder: &Holder) -> Result<Release, Error> {
        let shared = Arc::clone(&self.alive.shared);
        let claim = Claim {
            namespace: shared.options.namespace.clone(),
            name: name.clone(),
            kind,
            id: holder.claim,
            intent: Intent::Try,
            lease: shared.options.lease,
            holder: Arc::new(HolderInfo::default()),
            min_token: FencingToken::ZERO,
        };
        let fate = Fate::new(claim, None, shared.clock.now());
        let request_timeout = shared.request_timeout();
        let call = shared.runtime.spawn({
            let shared = Arc::clone(&shared);
            async move { shared.release(&fate, Polled::ByTask, request_timeout).await }
        });
        let until = shared.clock.now().saturating_add(request_timeout);
        let result = tokio::select! {
            biased;
            answered = call => answered.map_err(|_| no_answer()).and_then(|answered| answered.result),
            () = sleep_until(&shared, until) => Err(no_answer()),
        };
        result.map_err(|error| Error::from_backend(&format_args!("breaking lock {name:?}"), error))
    }

    /// Ends the client: new work is refused, waiting acquisitions end as `Closed`, every live guard is lost with
    /// `Closed` and its claim is released after that (L11). Calling it again waits for the same end.
    ///
    /// # Errors
    ///
    /// `Unavailable` if not every release was confirmed within the request timeout. The clean-up then goes on in the
    /// background, and what it cannot reach ends with its lease. The same at once if the client's runtime has ended and
    /// something was left to release.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the client is closed; dropping the future stops only the waiting.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = &self.alive.shared;
        let mut end = shared.janitor.end();
        shared.close();
        let until = shared.clock.now().saturating_add(shared.request_timeout());
        let end = tokio::select! {
            biased;
            end = end.wait_for(|end| *end != End::NotYet) => end.map_or(End::CutShort, |end| *end),
            () = sleep_until(shared, until) => End::NotYet,
        };
        let pending = shared.janitor.pending();
        match end {
            End::Closed => return Ok(()),
            End::CutShort if pending == 0 && !shared.left_holds() => return Ok(()),
            End::CutShort => {
                let told = "the tokio runtime that this client was made on ended before all of its locks were released; \
                            their leases end them";
                return Err(Error::new(ErrorKind::Unavailable, told));
            }
            End::NotYet => {}
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{} did not confirm {pending} releases within {:?}; they go on in the background, and what they do not \
                 reach ends with its lease",
                shared.capabilities.store,
                shared.request_timeout()
            ),
        ))
    }
}

impl fmt::Debug for LockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = &self.alive.shared;
        f.debug_struct("LockClient")
            .field("store", &shared.capabilities.store)
            .field("namespace", &shared.options.namespace)
            .finish_non_exhaustive()
    }
}
