//! What `inspect` shows: the record of a lock, and the selector that says which.

use crate::{ClaimId, Holder, LockKind, LockName, Namespace};

/// A lock that is held or waited for, as the store shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockRecord {
    /// The lock's name, as its users write it.
    pub name: String,
    /// The namespace it lives in.
    pub namespace: String,
    /// What sort of lock.
    pub kind: LockKind,
    /// Who holds it; empty between two holders.
    pub holders: Vec<Holder>,
    /// How many claims wait in the store's queue; None where the store keeps no queue.
    pub waiters: Option<u64>,
    /// The claims that wait in the store's queue, the next one first; empty where the store keeps no queue.
    pub queue: Vec<ClaimId>,
    /// Where the first waiter of the client that asked stands in that queue, 1 being the next; None if it has none
    /// there. A backend leaves it to the client.
    pub place: Option<u64>,
}

impl LockRecord {
    /// The same record with the store's queue, the next one first.
    #[must_use]
    pub fn with_queue(mut self, queue: Vec<ClaimId>) -> Self {
        self.waiters = Some(queue.len() as u64);
        self.queue = queue;
        self
    }

    /// A record of `name` with these holders, and no word about waiters.
    #[must_use]
    pub fn new(namespace: &Namespace, name: &LockName, kind: LockKind, holders: Vec<Holder>) -> Self {
        LockRecord {
            name: name.as_str().to_owned(),
            namespace: namespace.as_str().to_owned(),
            kind,
            holders,
            waiters: None,
            queue: Vec::new(),
            place: None,
        }
    }
}

/// Which locks of a namespace `inspect` shows. A text converts to the locks whose names begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    namespace: Namespace,
    pattern: Pattern,
}

/// How a selector compares names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// The lock of this very name.
    Name(String),
    /// All locks whose names begin with this, literally; the empty text means all.
    Prefix(String),
}

impl Selector {
    /// The lock of this very name.
    pub fn name(name: impl Into<String>) -> Self {
        Selector { namespace: Namespace::default(), pattern: Pattern::Name(name.into()) }
    }

    /// All locks whose names begin with `prefix`, taken literally.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Selector { namespace: Namespace::default(), pattern: Pattern::Prefix(prefix.into()) }
    }

    /// The same selection in another namespace. A client sets its own before a backend sees the selector.
    #[must_use]
    pub fn in_namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Where to look.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What to compare names with.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Whether this selector shows a lock of that name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match &self.pattern {
            Pattern::Name(wanted) => wanted == name,
            Pattern::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

impl From<&str> for Selector {
    fn from(prefix: &str) -> Self {
        Selector::prefix(prefix)
    }
}

impl From<String> for Selector {
    fn from(prefix: String) -> Self {
        Selector::prefix(prefix)
    }
}

impl From<&String> for Selector {
    fn from(prefix: &String) -> Self {
        Selector::prefix(prefix.as_str())
    }
}
