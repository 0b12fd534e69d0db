//! The raw look into a server: plain commands on a connection that the backend knows nothing of.

use std::{fmt, net::SocketAddr, time::Duration};

use async_trait::async_trait;
use conformance_tests::{Blind, Key, Oracle, Seen};
use lock_core::{ClaimId, FencingToken, Holder, HolderInfo, Namespace};
use redis::{AsyncConnectionConfig, FromRedisValue, aio::MultiplexedConnection};
use tokio::sync::Mutex;

/// A second connection to a server, which is made anew when the server was restarted.
pub(crate) struct Raw {
    client: redis::Client,
    connection: Mutex<MultiplexedConnection>,
}

impl Raw {
    /// Connects to a server that needs no login.
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, redis::RedisError> {
        Raw::by_url(&format!("redis://{address}")).await
    }

    /// Connects as a URL says.
    pub(crate) async fn by_url(url: &str) -> Result<Self, redis::RedisError> {
        let client = redis::Client::open(url)?;
        let connection = Mutex::new(open(&client).await?);
        Ok(Raw { client, connection })
    }

    /// Sends the words of a command.
    pub(crate) async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> Result<T, redis::RedisError> {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let mut connection = self.connection.lock().await;
        match command.query_async(&mut *connection).await {
            Err(error) if error.is_connection_dropped() => {
                *connection = open(&self.client).await?;
                command.query_async(&mut *connection).await
            }
            answer => answer,
        }
    }

    /// All keys that match a pattern.
    pub(crate) async fn keys(&self, pattern: &str) -> Result<Vec<String>, redis::RedisError> {
        self.ask(&["KEYS", pattern]).await
    }

    /// One field of a section of INFO.
    pub(crate) async fn info(&self, section: &str, field: &str) -> Result<String, redis::RedisError> {
        let text: String = self.ask(&["INFO", section]).await?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(line.unwrap_or_default().to_owned())
    }

    async fn held(&self, key: &str) -> Seen<Option<Holder>> {
        let kind: String = self.ask(&["TYPE", key]).await.map_err(Blind::failed)?;
        if kind != "string" {
            return Ok(None);
        }
        let value: Option<Vec<u8>> = self.ask(&["GET", key]).await.map_err(Blind::failed)?;
        let remaining_ms: i64 = self.ask(&["PTTL", key]).await.map_err(Blind::failed)?;
        Ok(value.and_then(|value| record(&String::from_utf8_lossy(&value), remaining_ms)))
    }

    async fn claim_keys(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        let keys = self.keys(&format!("leasehold/{{{}/*", namespace.encoded())).await.map_err(Blind::failed)?;
        Ok(keys.into_iter().filter(|key| key.ends_with('}')).collect())
    }

    async fn fence_keys(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        self.keys(&format!("leasehold/{{{}/*}}/fence", namespace.encoded())).await.map_err(Blind::failed)
    }
}

async fn open(client: &redis::Client) -> Result<MultiplexedConnection, redis::RedisError> {
    // The library's own limits are half a second and a second, which a busy machine needs for nothing at all.
    let patience = Some(Duration::from_secs(20));
    let config = AsyncConnectionConfig::new().set_connection_timeout(patience).set_response_timeout(patience);
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// The key of a lock's claim, as the documentation says it is.
pub(crate) fn claim_key(key: &Key) -> String {
    format!("leasehold/{{{}/{}/{}}}", key.namespace.encoded(), key.kind.family(), key.name.encoded())
}

fn record(value: &str, remaining_ms: i64) -> Option<Holder> {
    let (claim, rest) = value.split_at_checked(32)?;
    let mut words = rest.strip_prefix(' ')?.split(' ');
    let token = FencingToken::new(words.next()?.parse().ok()?);
    let mut holder = Holder::new(claim.parse().ok()?, token, &HolderInfo::default());
    holder.remaining = u64::try_from(remaining_ms).ok().map(Duration::from_millis);
    Some(holder)
}

#[async_trait]
impl Oracle for Raw {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        Ok(self.held(&claim_key(key)).await?.into_iter().collect())
    }

    async fn waiting(&self, _: &Key) -> Seen<u64> {
        Ok(0)
    }

    async fn claims(&self, namespace: &Namespace) -> Seen<u64> {
        let mut count = 0;
        for key in self.claim_keys(namespace).await? {
            count += u64::from(self.held(&key).await?.is_some());
        }
        Ok(count)
    }

    async fn records(&self, namespace: &Namespace) -> Seen<u64> {
        let (claims, fences) = (self.claim_keys(namespace).await?, self.fence_keys(namespace).await?);
        Ok((claims.len() + fences.len()) as u64)
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        self.ask(&["DEL", &claim_key(key)]).await.map_err(Blind::failed)
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()> {
        let (value, lease_ms) = (format!("{claim} 1 1 {{}}"), lease.as_millis().to_string());
        self.ask(&["SET", &claim_key(key), &value, "PX", &lease_ms]).await.map_err(Blind::failed)
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        let mut endless = Vec::new();
        for key in [self.claim_keys(namespace).await?, self.fence_keys(namespace).await?].concat() {
            let ttl: i64 = self.ask(&["PTTL", &key]).await.map_err(Blind::failed)?;
            if ttl == -1 {
                endless.push(key);
            }
        }
        Ok(endless)
    }

    async fn plant_foreign(&self, key: &Key) -> Seen<()> {
        let (claim, lock) = (claim_key(key), format!("leasehold/{{{}/lock/", key.namespace.encoded()));
        let name = key.name.encoded();
        let texts = [
            format!("{lock}{name}"),
            format!("{claim}x"),
            format!("{claim}/fences"),
            format!("{claim}/"),
            format!("{lock}}}"),
            format!("{lock}%61}}"),
            format!("{lock}{name}/{name}}}"),
            name.to_owned(),
            "leasehold".to_owned(),
        ];
        for text in &texts {
            self.ask::<()>(&["SET", text, "someone else's"]).await.map_err(Blind::failed)?;
        }
        let list = format!("{lock}a-list}}");
        self.ask::<()>(&["RPUSH", &list, "someone else's"]).await.map_err(Blind::failed)?;
        let other_kind = format!("leasehold/{{{}/other/{name}}}", key.namespace.encoded());
        self.ask(&["HSET", &other_kind, "someone", "else's"]).await.map_err(Blind::failed)
    }

    async fn age_idle(&self, namespace: &Namespace) -> Seen<()> {
        for fence in self.fence_keys(namespace).await? {
            let claim = fence.strip_suffix("/fence").unwrap_or_default();
            if self.held(claim).await?.is_none() {
                // What is past its time is gone: keys end by themselves.
                self.ask::<()>(&["PEXPIRE", &fence, "1"]).await.map_err(Blind::failed)?;
            }
        }
        while !self.fence_keys(namespace).await?.is_empty() {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn connections(&self) -> Seen<u64> {
        self.info("clients", "connected_clients").await.map_err(Blind::failed)?.parse().map_err(Blind::failed)
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}
