//! The oracle: a second way to look into a store and to change it by hand, so that no proof rests on return values.

use std::{fmt, fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, Claim, ClaimId, FencingToken, Holder, HolderInfo, Intent, LockKind, LockName, Namespace, Selector,
};

/// One lock, as a store tells locks apart.
#[derive(Clone, Debug)]
pub struct Key {
    /// Where the name lives.
    pub namespace: Namespace,
    /// The lock's name.
    pub name: LockName,
    /// What sort of lock.
    pub kind: LockKind,
}

/// What an oracle answers.
pub type Seen<T> = Result<T, Blind>;

/// Why an oracle saw nothing.
#[derive(Clone, Debug)]
pub enum Blind {
    /// This oracle cannot do this at all: the case is ignored, because the oracle "cannot ...".
    Unsupported(&'static str),
    /// It could not be done this time: the case fails.
    Failed(String),
}

impl Blind {
    /// A look that failed.
    pub fn failed(error: impl fmt::Display) -> Self {
        Blind::Failed(error.to_string())
    }
}

/// A second way into a store. Every method has its own words for "this oracle cannot", so that a fixture starts small.
#[async_trait]
pub trait Oracle: Debug + Send + Sync + 'static {
    /// Who holds the lock at this moment, by the store's clock; several only if the store is broken.
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>>;

    /// How many claims wait for the lock in the store; zero where the store keeps no queue.
    async fn waiting(&self, key: &Key) -> Seen<u64>;

    /// How many claims, in force or waiting, the store has in this namespace.
    async fn claims(&self, namespace: &Namespace) -> Seen<u64>;

    /// How many records of any sort the store has in this namespace, those kept for their token alone included.
    async fn records(&self, _namespace: &Namespace) -> Seen<u64> {
        Err(Blind::Unsupported("count records"))
    }

    /// Removes the holder's record, as an operator would by hand.
    async fn remove(&self, key: &Key) -> Seen<()>;

    /// Puts another claim's record in the holder's place, as an operator would by hand.
    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()>;

    /// Descriptions of the claims in this namespace that would stay for ever if nobody touched them; must be none.
    async fn endless(&self, _namespace: &Namespace) -> Seen<Vec<String>> {
        Err(Blind::Unsupported("tell which claims have no end"))
    }

    /// Puts data that is not ours as near to this lock's records as the store allows.
    async fn plant_foreign(&self, _key: &Key) -> Seen<()> {
        Err(Blind::Unsupported("put foreign data beside ours"))
    }

    /// Makes every record in this namespace that is kept for its token alone look older than its retention.
    async fn age_idle(&self, _namespace: &Namespace) -> Seen<()> {
        Err(Blind::Unsupported("age records"))
    }

    /// How many connections the server counts, this oracle's own included.
    async fn connections(&self) -> Seen<u64> {
        Err(Blind::Unsupported("count connections"))
    }
}

/// The oracle of a fixture that has none: it looks through another connection of the backend itself.
///
/// Weaker than a raw look, since a backend that forgets what it wrote forgets it here too.
#[derive(Debug)]
pub struct ThroughBackend {
    backend: Arc<dyn Backend>,
}

impl ThroughBackend {
    /// An oracle that looks through this connection.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        ThroughBackend { backend }
    }

    async fn record(&self, key: &Key) -> Seen<Option<lock_core::LockRecord>> {
        let selector = Selector::name(key.name.as_str()).in_namespace(key.namespace.clone());
        let records = self.backend.inspect(&selector).await.map_err(Blind::failed)?;
        Ok(records.into_iter().find(|record| record.kind == key.kind))
    }
}

#[async_trait]
impl Oracle for ThroughBackend {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        Ok(self.record(key).await?.map(|record| record.holders).unwrap_or_default())
    }

    async fn waiting(&self, key: &Key) -> Seen<u64> {
        Ok(self.record(key).await?.and_then(|record| record.waiters).unwrap_or_default())
    }

    async fn claims(&self, namespace: &Namespace) -> Seen<u64> {
        let selector = Selector::prefix("").in_namespace(namespace.clone());
        let records = self.backend.inspect(&selector).await.map_err(Blind::failed)?;
        Ok(records.iter().map(|record| record.holders.len() as u64 + record.waiters.unwrap_or_default()).sum())
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        let selector = Selector::prefix("").in_namespace(namespace.clone());
        let records = self.backend.inspect(&selector).await.map_err(Blind::failed)?;
        let holders = records.iter().flat_map(|record| &record.holders);
        // A claim whose end is not shown may have one: only a store that shows ends can be judged.
        if holders.clone().any(|holder| holder.remaining.is_none()) {
            return Err(Blind::Unsupported("tell which claims have no end"));
        }
        let longest = self.backend.capabilities().lease_max;
        let endless = holders.filter(|holder| holder.remaining.is_some_and(|remaining| remaining > longest));
        Ok(endless.map(|holder| format!("{holder:?}")).collect())
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        for holder in self.holders(key).await? {
            let claim = made_up(key, holder.claim, Duration::from_secs(1));
            self.backend.release(&claim).await.map_err(Blind::failed)?;
        }
        Ok(())
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()> {
        // Another waiter may step in between; then it is the one that overwrote.
        self.remove(key).await?;
        match self.backend.attempt(&made_up(key, claim, lease)).await.map_err(Blind::failed)? {
            Attempt::Granted(_) => Ok(()),
            Attempt::Busy(busy) => Err(Blind::Failed(format!("{:?} came first", busy.holders))),
        }
    }
}

/// A claim that stands for nobody, for calls in which only its id and its key decide.
#[must_use]
pub fn made_up(key: &Key, id: ClaimId, lease: Duration) -> Claim {
    Claim {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        kind: key.kind,
        id,
        intent: Intent::Try,
        lease,
        holder: Arc::new(HolderInfo { host: "oracle".to_owned(), pid: std::process::id(), label: None }),
        min_token: FencingToken::ZERO,
    }
}
