//! What is really in an etcd server, read and changed by plain requests that know nothing of the backend.

use std::{fmt, net::SocketAddr, time::Duration};

use async_trait::async_trait;
use conformance_tests::{Blind, Key, Oracle, Seen};
use etcd_client::{Client, Compare, CompareOp, GetOptions, KeyValue, PutOptions, SortOrder, SortTarget, Txn, TxnOp};
use lock_core::{ClaimId, FencingToken, Holder, HolderInfo, Namespace};

/// A connection of its own to a server.
pub(crate) struct Raw {
    client: Client,
    address: SocketAddr,
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where the keys of a lock's claims begin.
pub(crate) fn prefix(key: &Key) -> String {
    format!("leasehold/{}/{}/{}/", key.namespace.encoded(), key.kind.family(), key.name.encoded())
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, etcd_client::Error> {
        Ok(Raw { client: Client::connect([address.to_string()], None).await?, address })
    }

    /// The client, for what the suite does not ask for.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// All keys that begin so, oldest first.
    pub(crate) async fn keys(&self, prefix: String) -> Seen<Vec<KeyValue>> {
        let options = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend);
        let mut found = self.client().get(prefix, Some(options)).await.map_err(Blind::failed)?;
        Ok(found.take_kvs())
    }

    /// The claims of a lock, oldest first.
    pub(crate) async fn line(&self, key: &Key) -> Seen<Vec<KeyValue>> {
        let prefix = prefix(key);
        let mut keys = self.keys(prefix.clone()).await?;
        keys.retain(|kv| claim_of(kv, &prefix).is_some());
        Ok(keys)
    }

    /// The first of a lock's claims.
    pub(crate) async fn first(&self, key: &Key) -> Seen<Option<KeyValue>> {
        Ok(self.line(key).await?.into_iter().next())
    }

    async fn claims_of(&self, namespace: &Namespace) -> Seen<Vec<KeyValue>> {
        let mut keys = self.keys(format!("leasehold/{}/lock/", namespace.encoded())).await?;
        keys.retain(|kv| {
            kv.key_str().is_ok_and(|key| key.rsplit('/').next().is_some_and(|id| id.parse::<ClaimId>().is_ok()))
        });
        Ok(keys)
    }
}

fn claim_of(kv: &KeyValue, prefix: &str) -> Option<ClaimId> {
    kv.key_str().ok()?.strip_prefix(prefix)?.parse().ok()
}

#[async_trait]
impl Oracle for Raw {
    async fn holders(&self, key: &Key) -> Seen<Vec<Holder>> {
        let Some(first) = self.first(key).await? else { return Ok(Vec::new()) };
        let claim = claim_of(&first, &prefix(key)).ok_or(Blind::Failed("the first key is no claim".to_owned()))?;
        let value: serde_json::Value = serde_json::from_slice(first.value()).map_err(Blind::failed)?;
        let pid = value["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
        let info = HolderInfo {
            host: value["host"].as_str().unwrap_or_default().to_owned(),
            pid,
            label: value["label"].as_str().map(str::to_owned),
        };
        let mut holder = Holder::new(claim, FencingToken::new(first.create_revision().unsigned_abs()), &info);
        let left = self.client.lease_client().time_to_live(first.lease(), None).await.map_err(Blind::failed)?;
        holder.remaining = u64::try_from(left.ttl()).ok().map(Duration::from_secs);
        Ok(vec![holder])
    }

    async fn waiting(&self, key: &Key) -> Seen<u64> {
        Ok((self.line(key).await?.len() as u64).saturating_sub(1))
    }

    async fn claims(&self, namespace: &Namespace) -> Seen<u64> {
        Ok(self.claims_of(namespace).await?.len() as u64)
    }

    async fn records(&self, namespace: &Namespace) -> Seen<u64> {
        // No key is kept for its token: revisions do that.
        self.claims(namespace).await
    }

    async fn remove(&self, key: &Key) -> Seen<()> {
        if let Some(first) = self.first(key).await? {
            self.client.kv_client().delete(first.key(), None).await.map_err(Blind::failed)?;
        }
        Ok(())
    }

    async fn overwrite(&self, key: &Key, claim: ClaimId, lease: Duration) -> Seen<()> {
        let first = self.first(key).await?.ok_or(Blind::Failed("there is no claim to overwrite".to_owned()))?;
        let ttl_s = i64::try_from(lease.as_secs().max(1)).map_err(Blind::failed)?;
        let made = self.client.lease_client().grant(ttl_s, None).await.map_err(Blind::failed)?;
        let there = Compare::create_revision(first.key(), CompareOp::Equal, first.create_revision());
        let options = PutOptions::new().with_lease(made.id());
        let put = TxnOp::put(format!("{}{claim}", prefix(key)), r#"{"host":"oracle","pid":1}"#, Some(options));
        let txn = Txn::new().when([there]).and_then([TxnOp::delete(first.key(), None), put]);
        let done = self.client.kv_client().txn(txn).await.map_err(Blind::failed)?;
        if done.succeeded() {
            Ok(())
        } else {
            Err(Blind::Failed("the claim went before it was overwritten".to_owned()))
        }
    }

    async fn endless(&self, namespace: &Namespace) -> Seen<Vec<String>> {
        let claims = self.claims_of(namespace).await?;
        let endless = claims.iter().filter(|kv| kv.lease() == 0);
        Ok(endless.map(|kv| String::from_utf8_lossy(kv.key()).into_owned()).collect())
    }

    async fn plant_foreign(&self, key: &Key) -> Seen<()> {
        let ours = prefix(key);
        let id = ClaimId::from_u128(1);
        let foreign = [
            ours.trim_end_matches('/').to_owned(),
            format!("{ours}notes"),
            format!("{ours}{id}/below"),
            format!("{ours}00"),
            format!("leasehold/{}/ofanotherkind/{}/{id}", key.namespace.encoded(), key.name.encoded()),
            format!("leasehold/{}/lock", key.namespace.encoded()),
        ];
        for key in foreign {
            self.client.kv_client().put(key, "foreign", None).await.map_err(Blind::failed)?;
        }
        Ok(())
    }

    async fn age_idle(&self, _namespace: &Namespace) -> Seen<()> {
        // There are none: revisions keep the tokens' order without a record.
        Ok(())
    }

    async fn connections(&self) -> Seen<u64> {
        // The kernel counts: 01 is "established" in the fourth column, the local address is in the second.
        let table = std::fs::read_to_string("/proc/net/tcp").map_err(Blind::failed)?;
        let port = format!(":{:04X}", self.address.port());
        let rows = table.lines().filter(|line| {
            let mut columns = line.split_whitespace().skip(1);
            columns.next().is_some_and(|local| local.ends_with(&port)) && columns.nth(1) == Some("01")
        });
        Ok(rows.count() as u64)
    }
}
