//! Inspection: who holds and who waits, read page by page.

use std::{collections::BTreeMap, time::Duration};

use etcd_client::{GetOptions, SortOrder, SortTarget};
use futures_util::{StreamExt as _, stream};
use lock_core::{BackendError, BackendErrorKind, ClaimId, Holder, LockKind, LockName, LockRecord, Selector};

use crate::{
    error::Failure,
    keys::{SelectedKeys, holder_of},
    leases::seconds,
    store::Store,
};

/// How many keys are read at once: answers stay far below what gRPC takes.
const PAGE: i64 = 1_000;

/// How many leases are asked about at once.
const AT_ONCE: usize = 16;

/// One lock as its keys show it: the oldest key and how many there are.
struct Seen {
    revision: i64,
    holder: Holder,
    lease: i64,
    /// All of them, by the revisions that created them.
    keys: BTreeMap<i64, ClaimId>,
}

impl Store {
    /// The locks that a selector shows, in the order of their names.
    pub(crate) async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        let mut records = Vec::new();
        for &kind in self.capabilities.kinds {
            let selected = SelectedKeys::of(selector, kind).ok_or_else(|| {
                let message = format!("etcd cannot select names by {:?}", selector.pattern());
                BackendError::new(BackendErrorKind::Unsupported, message)
            })?;
            let seen = self.read(&selected).await?;
            let asked = stream::iter(seen).map(async |(name, seen)| self.record(selector, kind, &name, seen).await);
            records.extend(asked.buffered(AT_ONCE).collect::<Vec<_>>().await.into_iter().flatten());
        }
        records.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        Ok(records)
    }

    /// All keys at one revision, by name.
    async fn read(&self, selected: &SelectedKeys) -> Result<BTreeMap<LockName, Seen>, Failure> {
        let limit = self.members.limit(Duration::MAX);
        let mut locks = BTreeMap::new();
        let mut from = selected.start.clone().into_bytes();
        let mut revision = 0;
        loop {
            let options = GetOptions::new()
                .with_range(selected.end.clone())
                .with_sort(SortTarget::Key, SortOrder::Ascend)
                .with_limit(PAGE)
                .with_revision(revision);
            let (options, start) = (&options, &from);
            let asked =
                self.members.ask(limit, async |member| member.kv().get(start.clone(), Some(options.clone())).await);
            let page = asked.await?.value;
            for kv in page.kvs() {
                if let Some((name, claim)) = selected.parse(kv.key()) {
                    let (created, lease) = (kv.create_revision(), kv.lease());
                    let seen = locks.entry(name).or_insert_with(|| Seen {
                        revision: i64::MAX,
                        holder: holder_of(claim, created, b""),
                        lease,
                        keys: BTreeMap::new(),
                    });
                    seen.keys.insert(created, claim);
                    if created < seen.revision {
                        (seen.revision, seen.lease) = (created, lease);
                        seen.holder = holder_of(claim, created, kv.value());
                    }
                }
            }
            // Later pages show the same moment as the first.
            revision = page.header().map_or(0, etcd_client::ResponseHeader::revision).max(revision);
            match page.kvs().last() {
                Some(last) if page.more() => from = [last.key(), &[0]].concat(),
                _ => return Ok(locks),
            }
        }
    }

    /// One lock's record; None if its holder's lease has ended meanwhile.
    async fn record(&self, selector: &Selector, kind: LockKind, name: &LockName, seen: Seen) -> Option<LockRecord> {
        let limit = self.members.limit(Duration::MAX);
        let asked = self.members.ask(limit, async |member| member.lease().time_to_live(seen.lease, None).await);
        let mut holder = seen.holder;
        // What is left is for people: without an answer it is not shown.
        holder.remaining = match asked.await {
            Ok(left) if left.value.ttl() < 0 => return None,
            Ok(left) => Some(seconds(left.value.ttl())),
            Err(_) => None,
        };
        let queue = seen.keys.into_values().skip(1).collect();
        Some(LockRecord::new(selector.namespace(), name, kind, vec![holder]).with_queue(queue))
    }
}
