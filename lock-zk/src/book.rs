//! What this client has written for each of its claims: the node, or that a node may be there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use lock_core::{ClaimId, FencingToken};
use tokio::time::Instant;

/// A claim's node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The number of the session that created it.
    pub(crate) session: u64,
    /// The directory, with the node's own name behind it.
    pub(crate) path: String,
    pub(crate) number: i32,
    pub(crate) token: FencingToken,
    /// Set once the node that it waited for has gone: it may be its turn.
    pub(crate) turn: Arc<AtomicBool>,
}

impl Node {
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// How far a claim has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It is being released: nobody wants it any more.
    Ended,
    /// It is sought, and may have a place in the line.
    Sought,
    /// The lock was granted to it, and its holder may trust the grant still.
    Granted,
}

/// One claim's entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// None while the outcome of a creation is not known.
    pub(crate) node: Option<Node>,
    pub(crate) standing: Standing,
    /// Until when a holder trusts its last confirmation.
    trusted_until: Option<Instant>,
    /// Whether there can be another node of this claim, from a creation that was never answered.
    pub(crate) stray: bool,
}

impl Entry {
    /// How far the claim has come by now: a hold whose deadline has passed is one no more.
    fn presently(&self) -> Standing {
        let over = self.trusted_until.is_none_or(|until| until <= Instant::now());
        if self.standing == Standing::Granted && over { Standing::Ended } else { self.standing }
    }
}

/// The entries of all claims that core has not yet released. Core releases every claim that it was not told is gone.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<HashMap<ClaimId, Entry>>);

impl Book {
    pub(crate) fn get(&self, id: ClaimId) -> Option<Entry> {
        self.lock().get(&id).cloned()
    }

    /// A node is to be created now. Written before the request leaves, so that one without an answer is never forgotten,
    /// also where its future is dropped.
    pub(crate) fn creates(&self, id: ClaimId) {
        self.lock()
            .entry(id)
            .or_insert(Entry { node: None, standing: Standing::Sought, trusted_until: None, stray: false })
            .node = None;
    }

    /// An earlier creation of this claim was not answered, or was another session's: there may be more than one node.
    pub(crate) fn strays(&self, id: ClaimId) {
        if let Some(entry) = self.lock().get_mut(&id) {
            *entry = Entry { node: None, standing: Standing::Sought, trusted_until: None, stray: true };
        }
    }

    /// The claim has this node.
    pub(crate) fn has(&self, id: ClaimId, node: Node) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.node = Some(node);
        }
    }

    /// The lock was granted to the claim, for this long from a call that began then.
    pub(crate) fn grants(&self, id: ClaimId, begun: Instant, lease: Duration) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.standing = Standing::Granted;
        }
        self.extends(id, begun, lease);
    }

    /// The claim was confirmed for this long from a call that began then.
    pub(crate) fn extends(&self, id: ClaimId, begun: Instant, lease: Duration) {
        // The least that core leaves unused (L3), so that this is over when the holder's trust is.
        let trusted = lease.saturating_sub(lease / 100 + Duration::from_millis(2));
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.trusted_until = entry.trusted_until.max(begun.checked_add(trusted));
        }
    }

    /// The claim is to be released: nobody holds by it any more.
    pub(crate) fn ends(&self, id: ClaimId) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.standing = Standing::Ended;
        }
    }

    /// The furthest that a claim with a node of this session has come.
    pub(crate) fn furthest(&self, session: u64) -> Option<Standing> {
        let entries = self.lock();
        let by_it = |entry: &&Entry| entry.node.as_ref().is_some_and(|node| node.session == session);
        entries.values().filter(by_it).map(Entry::presently).max()
    }

    /// The node that was to be created, or was there, is not: nothing is left but what may be astray.
    pub(crate) fn gone(&self, id: ClaimId) {
        let mut entries = self.lock();
        if entries.get(&id).is_some_and(|entry| !entry.stray) {
            entries.remove(&id);
        } else if let Some(entry) = entries.get_mut(&id) {
            (entry.node, entry.standing) = (None, Standing::Sought);
        }
    }

    /// Every node of the claim has been removed.
    pub(crate) fn forgets(&self, id: ClaimId) {
        self.lock().remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClaimId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_held_by_for_as_long_as_a_holder_trusts_it() {
        let (book, id) = (Book::default(), ClaimId::random());
        let node =
            Node { session: 3, path: "/x/y".to_owned(), number: 1, token: FencingToken::ZERO, turn: Arc::default() };
        book.creates(id);
        book.has(id, node);
        assert_eq!(book.furthest(3), Some(Standing::Sought));
        book.grants(id, Instant::now(), Duration::from_secs(2));
        assert_eq!((book.furthest(3), book.furthest(4)), (Some(Standing::Granted), None));
        tokio::time::advance(Duration::from_millis(1_979)).await;
        assert_eq!(book.furthest(3), Some(Standing::Ended));
        book.extends(id, Instant::now(), Duration::from_secs(1));
        assert_eq!(book.furthest(3), Some(Standing::Granted));
        book.ends(id);
        assert_eq!(book.furthest(3), Some(Standing::Ended));
    }

    #[test]
    fn what_may_be_astray_is_remembered_until_the_release() {
        let (book, id) = (Book::default(), ClaimId::random());
        book.creates(id);
        book.gone(id);
        assert!(book.get(id).is_none(), "a creation that did nothing leaves nothing");
        book.creates(id);
        book.strays(id);
        book.creates(id);
        book.gone(id);
        assert!(book.get(id).is_some_and(|entry| entry.stray && entry.node.is_none()));
        book.forgets(id);
        assert!(book.get(id).is_none());
    }
}
