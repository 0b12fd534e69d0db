//! The transactions, each in one function that says what it compares, writes and reads.
//!
//! # Why two terms must be equal
//!
//! A keep-alive is answered by the leader alone, without asking the others: one that was deposed and does not know it
//! yet still answers, while its successor counts on its own. So a keep-alive is believed only together with an answer
//! that a majority stood behind, sent in the same call and given in the same term. If the leader of that term was still
//! leader, the keep-alive counts. If it was deposed in between, its successor took over after this call had begun, and
//! gave every lease its whole length then. Either way the lease lasts its length from the start of the call.

use etcd_client::{
    Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};
use lock_core::{ClaimId, Holder, Intent};

use crate::keys::{LockKeys, holder_of};

/// A claim's key as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    /// None for a foreign key among ours.
    pub(crate) claim: Option<ClaimId>,
    pub(crate) revision: i64,
    pub(crate) lease: i64,
    value: Vec<u8>,
}

impl Entry {
    fn of(kv: &KeyValue, keys: &LockKeys) -> Self {
        Entry {
            key: kv.key().to_vec(),
            claim: keys.claim_of(kv.key()),
            revision: kv.create_revision(),
            lease: kv.lease(),
            value: kv.value().to_vec(),
        }
    }

    /// The holder that it stands for, if it is the first in line.
    pub(crate) fn holder(&self) -> Option<Holder> {
        self.claim.map(|claim| holder_of(claim, self.revision, &self.value))
    }
}

/// The store at one revision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) revision: i64,
    pub(crate) term: u64,
}

impl At {
    pub(crate) fn of(header: Option<&etcd_client::ResponseHeader>) -> Self {
        header
            .map_or(At { revision: 0, term: 0 }, |header| At { revision: header.revision(), term: header.raft_term() })
    }
}

/// What is read of a lock: the claim's own key, the nearest before it, and the first of all.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) at: At,
    pub(crate) own: Option<Entry>,
    pub(crate) ahead: Option<Entry>,
    pub(crate) first: Option<Entry>,
}

/// The answer to the first request of a claim.
#[derive(Clone, Debug)]
pub(crate) enum Entered {
    /// Nobody was there: the claim holds.
    Granted(At),
    /// Others are there, or the claim itself is already.
    Line(Box<Line>),
}

/// The first request of a claim: if the lock has no key, write the claim's.
///
/// Else a waiter's key is written behind the others, unless it is there; a try writes nothing (L9). `foreign` are keys
/// among ours that are nobody's claims: they do not count (L17).
pub(crate) fn enter(
    keys: &LockKeys,
    claim: ClaimId,
    value: &[u8],
    lease: i64,
    intent: Intent,
    foreign: &[Vec<u8>],
) -> Txn {
    let own = keys.claim(claim);
    let put = || TxnOp::put(own.as_str(), value, Some(PutOptions::new().with_lease(lease)));
    let mut otherwise = Vec::new();
    if intent == Intent::Wait {
        let absent = Compare::create_revision(own.as_str(), CompareOp::Equal, 0);
        otherwise.push(TxnOp::txn(Txn::new().when([absent]).and_then([put()])));
    }
    otherwise.push(TxnOp::get(own.as_str(), None));
    // A waiter that has just written is the last in line, and the one before it is the nearest ahead.
    otherwise.push(TxnOp::get(keys.start.as_str(), Some(created(keys, SortOrder::Descend).with_limit(2))));
    otherwise.push(TxnOp::get(keys.start.as_str(), Some(created(keys, SortOrder::Ascend).with_limit(1))));
    Txn::new().when(nothing_but(keys, foreign)).and_then([put()]).or_else(otherwise)
}

/// What the answer to [`enter`] says.
pub(crate) fn entered(keys: &LockKeys, answer: &TxnResponse) -> Entered {
    let at = At::of(answer.header());
    if answer.succeeded() {
        return Entered::Granted(at);
    }
    let mut reads = entries_of(keys, answer).into_iter();
    let own = reads.next().and_then(|found| found.into_iter().next());
    let last = reads.next().unwrap_or_default();
    let first = reads.next().and_then(|found| found.into_iter().next());
    let ahead = own.as_ref().and_then(|own| last.into_iter().find(|entry| entry.revision < own.revision));
    Entered::Line(Box::new(Line { at, own, ahead, first }))
}

/// Where a claim stands whose key was created at this revision. A linearizable read, so a majority stands behind it.
pub(crate) fn stand(keys: &LockKeys, claim: ClaimId, revision: i64) -> Txn {
    let before = created(keys, SortOrder::Descend).with_max_create_revision(revision - 1).with_limit(1);
    Txn::new().and_then([
        TxnOp::get(keys.claim(claim), None),
        TxnOp::get(keys.start.as_str(), Some(before)),
        TxnOp::get(keys.start.as_str(), Some(created(keys, SortOrder::Ascend).with_limit(1))),
    ])
}

/// What the answer to [`stand`] says.
pub(crate) fn stands(keys: &LockKeys, answer: &TxnResponse) -> Line {
    let mut reads = entries_of(keys, answer).into_iter().map(|found| found.into_iter().next());
    let mut next = || reads.next().flatten();
    Line { at: At::of(answer.header()), own: next(), ahead: next(), first: next() }
}

/// All keys of the lock, oldest first, without their values.
pub(crate) fn everyone(keys: &LockKeys) -> GetOptions {
    created(keys, SortOrder::Ascend).with_keys_only()
}

/// Binds a claim's key to another lease, if it is still the one that was created and bound as said.
pub(crate) fn rebind(key: &str, revision: i64, from: i64, to: i64) -> Txn {
    let same = Compare::create_revision(key, CompareOp::Equal, revision);
    let bound = Compare::lease(key, CompareOp::Equal, from);
    let options = PutOptions::new().with_lease(to).with_ignore_value();
    Txn::new().when([same, bound]).and_then([TxnOp::put(key, "", Some(options))]).or_else([TxnOp::get(key, None)])
}

/// The entries of a read.
pub(crate) fn entries(keys: &LockKeys, found: &GetResponse) -> Vec<Entry> {
    found.kvs().iter().map(|kv| Entry::of(kv, keys)).collect()
}

fn entries_of(keys: &LockKeys, answer: &TxnResponse) -> Vec<Vec<Entry>> {
    let reads = answer.op_responses().into_iter().filter_map(|op| match op {
        TxnOpResponse::Get(found) => Some(entries(keys, &found)),
        _ => None,
    });
    reads.collect()
}

fn created(keys: &LockKeys, order: SortOrder) -> GetOptions {
    GetOptions::new().with_range(keys.end.as_str()).with_sort(SortTarget::Create, order)
}

/// Comparisons that hold if the lock has no key but these: the ranges between them are empty.
fn nothing_but(keys: &LockKeys, foreign: &[Vec<u8>]) -> Vec<Compare> {
    let mut start = keys.start.clone().into_bytes();
    let mut empty = Vec::new();
    let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for key in foreign {
        // The key that follows directly is the same with a zero byte behind it.
        let after = [key.as_slice(), &[0]].concat();
        ranges.push((std::mem::replace(&mut start, after), key.clone()));
    }
    ranges.push((start, keys.end.clone().into_bytes()));
    for (from, to) in ranges.into_iter().filter(|(from, to)| from < to) {
        empty.push(Compare::create_revision(from, CompareOp::Equal, 0).with_range(to));
    }
    empty
}
