//! One attempt of a claim: its node, its place in the line, and the grant or whom to wait for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join;
use lock_core::{Attempt, BackendError, BackendErrorKind, Busy, Claim, Grant, Holder, Intent};
use tokio::time::Instant;
use zookeeper_client::{CreateMode, Error};

use crate::{
    book::{Book, Node},
    error::did_nothing,
    find, holder,
    line::{Before, Line},
    path,
    session::Session,
    watch,
};

/// How often one attempt begins again because something vanished while it looked.
const ROUNDS: usize = 5;

/// An attempt under way.
pub(crate) struct Attempting<'a> {
    session: &'a Arc<Session>,
    book: &'a Book,
    claim: &'a Claim,
    directory: String,
    begun: Instant,
}

/// What a look at the line showed.
enum Look {
    /// The claim has this place.
    Placed { node: Node, line: Line, confirmed: Confirmed },
    /// Others are in the line, and the claim only tries.
    Taken(Line),
    /// Something vanished meanwhile.
    Again,
}

/// Whether a write has shown, within this attempt, that the claim's node is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confirmed {
    Yes,
    No,
}

impl<'a> Attempting<'a> {
    pub(crate) fn new(session: &'a Arc<Session>, book: &'a Book, claim: &'a Claim) -> Self {
        Attempting { session, book, claim, directory: path::of_claim(claim), begun: Instant::now() }
    }

    pub(crate) async fn run(self) -> Result<Attempt, BackendError> {
        let mut own = self.recall().await?;
        for _ in 0..ROUNDS {
            let (node, line, confirmed) = match self.look(own.take()).await? {
                Look::Placed { node, line, confirmed } => (node, line, confirmed),
                Look::Taken(line) => return self.busy(&line).await,
                Look::Again => continue,
            };
            let Some(before) = line.before(self.claim.id, node.number) else {
                if confirmed == Confirmed::Yes || self.confirm(&node).await? {
                    return self.grant(node).await;
                }
                continue;
            };
            if self.claim.intent == Intent::Try {
                self.leave(&node).await?;
                return self.busy(&line).await;
            }
            match self.wait_behind(&node, before).await? {
                Some(busy) => return Ok(Attempt::Busy(busy)),
                None => own = Some(node),
            }
        }
        if own.is_some() {
            // Those before it leave one after another: it asks again at once.
            return Ok(Attempt::Busy(Busy { changed: Box::pin(async {}), ..Busy::new(None, Vec::new()) }));
        }
        Err(BackendError::unavailable(format!(
            "the directory of lock {:?} is removed again and again",
            self.claim.name
        )))
    }

    /// The node that this claim has already: an earlier attempt's, by its answer or found by the claim's id.
    async fn recall(&self) -> Result<Option<Node>, BackendError> {
        match self.book.get(self.claim.id) {
            None => Ok(None),
            Some(entry) => {
                if let Some(node) = entry.node.filter(|node| node.session == self.session.number) {
                    return Ok(Some(node));
                }
                self.book.strays(self.claim.id);
                let found = find::adopt(self.session, &self.directory, self.claim.id).await?;
                if let Some(node) = &found {
                    self.book.has(self.claim.id, node.clone());
                }
                Ok(found)
            }
        }
    }

    async fn look(&self, own: Option<Node>) -> Result<Look, BackendError> {
        if let Some(node) = own {
            return self.look_again(node).await;
        }
        if self.claim.intent == Intent::Try {
            let line = Line::of(self.session.list_synced(&self.directory).await?);
            if line.first().is_some() {
                return Ok(Look::Taken(line));
            }
        }
        self.take_place().await
    }

    /// Creates the claim's node and lists the line.
    async fn take_place(&self) -> Result<Look, BackendError> {
        let (session, id) = (self.session, self.claim.id);
        let prefix = path::prefix(&self.directory, id);
        let (data, options) = (holder::data(self.claim), session.options(CreateMode::EphemeralSequential));
        self.book.creates(id);
        // Both leave at once: a session's requests are served in the order of their sending, so that the list is newer
        // than the node, and whoever is not in it comes behind.
        let created = session.client.create(&prefix, &data, &options);
        let (created, listed) = join(created, session.client.list_children(&self.directory)).await;
        let (stat, number) = match created {
            Ok(created) => created,
            Err(error) => {
                if did_nothing(&error) {
                    self.book.gone(id);
                }
                if error == Error::NoNode {
                    // The first claim ever, or the first since the directory was reaped.
                    session.make_directory(&self.directory).await?;
                    return Ok(Look::Again);
                }
                return Err(session.told("creating a claim", error));
            }
        };
        let node = Node {
            session: session.number,
            path: format!("{prefix}{number}"),
            number: path::wrapped(number.into_i64()),
            token: holder::token(&stat),
            turn: Arc::new(AtomicBool::new(false)),
        };
        self.book.has(id, node.clone());
        self.placed(node, listed, Confirmed::Yes)
    }

    /// Lists the line again, for a claim that has a node.
    async fn look_again(&self, node: Node) -> Result<Look, BackendError> {
        let client = &self.session.client;
        let listing = client.list_children(&self.directory);
        if !node.turn.swap(false, Ordering::AcqRel) {
            return self.placed(node, listing.await, Confirmed::No);
        }
        // It is probably the first now, and then needs to be confirmed as well.
        let data = holder::data(self.claim);
        let (listed, written) = join(listing, client.set_data(&node.path, &data, None)).await;
        match written {
            Ok(_) => self.placed(node, listed, Confirmed::Yes),
            Err(Error::NoNode) => {
                self.book.gone(self.claim.id);
                Ok(Look::Again)
            }
            Err(error) => Err(self.session.told("confirming a claim", error)),
        }
    }

    fn placed(
        &self,
        node: Node,
        listed: Result<Vec<String>, Error>,
        confirmed: Confirmed,
    ) -> Result<Look, BackendError> {
        let line = match listed {
            Ok(names) => Line::of(names),
            Err(Error::NoNode) => Line::default(),
            Err(error) => return Err(self.session.told("listing claims", error)),
        };
        if line.has(node.name()) {
            return Ok(Look::Placed { node, line, confirmed });
        }
        // Someone removed it by hand: the claim goes to the end of the line.
        self.book.gone(self.claim.id);
        Ok(Look::Again)
    }

    /// Confirms a place by a write: a list may come from a follower that is behind, and show a node whose session has
    /// ended. Says as well when the hold began. False if the node has gone.
    async fn confirm(&self, node: &Node) -> Result<bool, BackendError> {
        match self.session.client.set_data(&node.path, &holder::data(self.claim), None).await {
            Ok(_) => Ok(true),
            Err(Error::NoNode) => {
                self.book.gone(self.claim.id);
                Ok(false)
            }
            Err(error) => Err(self.session.told("confirming a claim", error)),
        }
    }

    async fn grant(&self, node: Node) -> Result<Attempt, BackendError> {
        if node.token < self.claim.min_token {
            self.leave(&node).await?;
            let message = format!(
                "fencing token {} of lock {:?} is below the {} asked for, and ZooKeeper counts by itself",
                node.token, self.claim.name, self.claim.min_token
            );
            return Err(BackendError::new(BackendErrorKind::Unsupported, message));
        }
        let lease = lease(self.session, self.claim.lease);
        self.book.grants(self.claim.id, self.begun, lease);
        let mut grant = Grant::new(node.token, lease);
        grant.disturbed = watch::hints(self.session, node.path);
        Ok(Attempt::Granted(grant))
    }

    /// Watches the nearest one before the claim's node, and it alone (L19). None if that one has gone meanwhile.
    async fn wait_behind(&self, node: &Node, before: Before<'_>) -> Result<Option<Busy>, BackendError> {
        let next = format!("{}/{}", self.directory, before.next.name);
        let (watched, holder) = join(watch::watch(self.session, &next), self.holder_of(before.first)).await;
        let watcher = watched.map_err(|error| self.session.told("watching a claim", error))?;
        let Some(watcher) = watcher else { return Ok(None) };
        let mut busy = Busy::new(None, holder?.into_iter().collect());
        busy.changed = watch::wake(watcher, Arc::clone(&node.turn));
        Ok(Some(busy))
    }

    /// The answer to a try that found others in the line.
    async fn busy(&self, line: &Line) -> Result<Attempt, BackendError> {
        let first = line.first().filter(|first| first.id != self.claim.id);
        let holder = match first {
            Some(first) => self.holder_of(first).await?,
            None => None,
        };
        Ok(Attempt::Busy(Busy::new(None, holder.into_iter().collect())))
    }

    async fn holder_of(&self, first: &path::Child) -> Result<Option<Holder>, BackendError> {
        match self.session.client.get_data(&format!("{}/{}", self.directory, first.name)).await {
            Ok((data, stat)) => Ok(Some(holder::holder(first.id, &data, &stat))),
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(self.session.told("reading a claim", error)),
        }
    }

    /// Gives the place up: a try leaves nothing behind.
    async fn leave(&self, node: &Node) -> Result<(), BackendError> {
        find::remove(self.session, &node.path).await?;
        self.book.gone(self.claim.id);
        Ok(())
    }
}

/// What the session guarantees of a lease: all of a short one, which core ends, and of a long one the part until the
/// next confirmation is due.
pub(crate) fn lease(session: &Session, asked: Duration) -> Duration {
    asked.min(session.guarantee())
}
