//! The backend: core's four calls as scripts, and what their answers mean.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Busy, Capabilities, Claim, Extension, FencingToken, Finding, Grant, Intent,
    LockRecord, Release, Selector, Usage,
};
use redis::Value;

use crate::{
    RedisConfig, capabilities, check,
    connector::Connector,
    error::foreign,
    inspect,
    keys::Keys,
    link::{AfterCut, Link},
    record::{holder, who},
    scripts::{CLAIM, EXTEND, RELEASE},
    wakes::Wakes,
};

/// How long a lock's last token is kept after the end of its last lease.
///
/// It could go at once as far as the server's clock goes forward; a day covers clocks that are set back.
const FENCE_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Numbers from here on are not exact in the server's scripts.
const TOKEN_LIMIT: u64 = 1 << 53;

/// Locks on a single Redis server.
///
/// It has one connection for requests, and a second one for notifications once something was waited for.
#[derive(Debug)]
pub struct RedisBackend {
    link: Link,
    wakes: Wakes,
    capabilities: Capabilities,
    fence_kept_ms: String,
}

impl RedisBackend {
    /// Connects to the server of `config`, and makes sure that it serves.
    ///
    /// # Errors
    ///
    /// `Config` for a refused login, a database that is missing, a certificate that is not trusted, and for roots of TLS
    /// that cannot be read. `Unavailable` if the server does not answer within the time to connect, or is loading.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, nothing stays open.
    pub async fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        let connector = Connector::new(config)?;
        let backend = RedisBackend {
            link: Link::new(connector.clone()),
            wakes: Wakes::new(connector),
            capabilities: Self::redis_capabilities(),
            fence_kept_ms: FENCE_KEPT.as_millis().to_string(),
        };
        // From here on dropping closes what was opened.
        backend.link.open().await?;
        Ok(backend)
    }

    /// What a single server promises, known before one is reached.
    #[must_use]
    pub fn redis_capabilities() -> Capabilities {
        capabilities::redis()
    }

    /// Asks the server once.
    async fn claim(&self, claim: &Claim, keys: &Keys) -> Result<Attempt, BackendError> {
        let id = claim.id.to_string();
        let lease_ms = self.lease_ms(claim.lease)?.to_string();
        let min_token = claim.min_token.get();
        if min_token >= TOKEN_LIMIT {
            let message =
                format!("fencing token {min_token} is above {}, the largest of a Redis script", TOKEN_LIMIT - 1);
            return Err(BackendError::refused(message));
        }
        let (min_token, who) = (min_token.to_string(), who(&claim.holder));
        let arguments = [id.as_str(), &lease_ms, &min_token, &who, &self.fence_kept_ms];
        let answer = CLAIM.run(&self.link, &[&keys.claim, &keys.fence], &arguments, AfterCut::Repeat).await?;
        self.read(answer, keys)
    }

    fn read(&self, answer: Value, keys: &Keys) -> Result<Attempt, BackendError> {
        let connector = self.link.connector();
        let Value::Array(parts) = answer else { return Err(connector.unread()) };
        match parts.as_slice() {
            [Value::Int(1), Value::BulkString(token), Value::Int(lease_ms)] => {
                let token = std::str::from_utf8(token).ok().and_then(|token| token.parse().ok());
                let token = FencingToken::new(token.ok_or_else(|| connector.unread())?);
                let lease_ms = u64::try_from(*lease_ms).map_err(|_| connector.unread())?;
                Ok(Attempt::Granted(Grant::new(token, Duration::from_millis(lease_ms))))
            }
            [Value::Int(0), Value::BulkString(value), Value::Int(remaining_ms)] => {
                // A text that is no claim is not waited for: nobody would know for how long.
                let holder = holder(value, *remaining_ms).ok_or_else(|| foreign(connector.place(), &keys.claim))?;
                Ok(Attempt::Busy(Busy::new(holder.remaining, vec![holder])))
            }
            _ => Err(connector.unread()),
        }
    }

    /// A lease in whole milliseconds, at least the shortest that the store gives (L15).
    fn lease_ms(&self, lease: Duration) -> Result<u64, BackendError> {
        let limits = &self.capabilities;
        if lease > limits.lease_max {
            let (store, most) = (&limits.store, limits.lease_max);
            let message = format!("lease of {lease:?} is above the longest that {store} gives, {most:?}");
            return Err(BackendError::refused(message));
        }
        let lease_ms = lease.max(limits.lease_min).as_nanos().div_ceil(1_000_000);
        // The longest lease is far below what 64 bits hold.
        Ok(u64::try_from(lease_ms).unwrap_or(u64::MAX))
    }
}

#[async_trait]
impl Backend for RedisBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        let keys = Keys::of(claim);
        if claim.intent == Intent::Try {
            return self.claim(claim, &keys).await;
        }
        let channel = keys.channel(self.link.connector().database());
        // Who is subscribed before it asks misses no release that comes after the answer. Most attempts meet a free lock,
        // and so only one that found it taken subscribes: it is woken when the server has confirmed that, and then asks
        // again. It does not ask twice in one call, since whoever made the call may have left meanwhile.
        let interest = self.wakes.heard(&channel);
        let mut answer = self.claim(claim, &keys).await?;
        if let Attempt::Busy(busy) = &mut answer {
            let interest = interest.unwrap_or_else(|| self.wakes.interest(channel));
            busy.changed = interest.changed();
        }
        Ok(answer)
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        let (keys, id) = (Keys::of(claim), claim.id.to_string());
        let lease_ms = self.lease_ms(lease)?.to_string();
        let arguments = [id.as_str(), &lease_ms, &self.fence_kept_ms];
        match EXTEND.run(&self.link, &[&keys.claim, &keys.fence], &arguments, AfterCut::Repeat).await? {
            Value::Int(-1) => Ok(Extension::NotHeld),
            Value::Int(remaining_ms) => {
                let remaining_ms = u64::try_from(remaining_ms).map_err(|_| self.link.connector().unread())?;
                Ok(Extension::Extended(Duration::from_millis(remaining_ms)))
            }
            _ => Err(self.link.connector().unread()),
        }
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        let (keys, id) = (Keys::of(claim), claim.id.to_string());
        let channel = keys.channel(self.link.connector().database());
        let arguments = [id.as_str(), &channel, &self.fence_kept_ms];
        // Repeated here, a release that had been applied would find nothing, and the hold would be told as lost.
        match RELEASE.run(&self.link, &[&keys.claim, &keys.fence], &arguments, AfterCut::Tell).await? {
            Value::Int(1) => Ok(Release::Removed),
            Value::Int(0) => Ok(Release::Absent),
            _ => Err(self.link.connector().unread()),
        }
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        inspect::records(&self.link, selector, self.capabilities.kinds).await
    }

    async fn check(&self, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        check::check(&self.link, usage, self.capabilities.kinds).await
    }

    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        check::wall_clock(&self.link).await
    }

    async fn close(&self) {
        self.wakes.close();
        self.link.close();
    }
}
