//! The ZooKeeper backend: the trait over a session and its nodes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Capabilities, Claim, Extension, Finding, LockRecord, Release, Selector, Usage,
};
use tokio::{sync::oneshot, time::Instant};

use crate::{
    ZkConfig,
    attempt::{Attempting, lease},
    book::{Book, Standing},
    capabilities,
    check::check,
    confirm::{Confirm, Presence},
    inspect::inspect,
    release::release,
    session::{Session, Sessions},
};

/// Locks in a ZooKeeper ensemble.
///
/// A backend has one session, whose timeout the server may have changed from what the configuration asked for. Once it
/// has ended, its claims are lost, and the next call begins another.
///
/// A lease below two thirds of the session's timeout is ended by the client; a longer one is held by renewals, and one
/// that is not renewed ends after these two thirds.
#[derive(Debug)]
pub struct ZkBackend {
    sessions: Sessions,
    book: Book,
    capabilities: Capabilities,
}

impl ZkBackend {
    /// Connects and begins a session.
    ///
    /// # Errors
    ///
    /// `Config` for servers or a chroot that are badly written, and for a chroot that does not exist. `Unavailable` if no
    /// server answers in time. `Refused` where the access list of the chroot forbids to look at it.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, nothing stays open.
    pub async fn connect(config: &ZkConfig) -> Result<Self, BackendError> {
        let sessions = Sessions::open(config.clone()).await?;
        let negotiated = sessions.present().map_or(config.session_timeout, |session| session.client.session_timeout());
        Ok(ZkBackend { sessions, book: Book::default(), capabilities: capabilities::zookeeper(negotiated) })
    }

    /// What a session of this length promises; a backend that is connected knows the length that the server gave.
    #[must_use]
    pub fn promises(session_timeout: Duration) -> Capabilities {
        capabilities::zookeeper(session_timeout)
    }

    /// The number of the present session, as the server's logs show it.
    #[must_use]
    pub fn session_id(&self) -> Option<i64> {
        self.sessions.present().map(|session| session.client.session_id().0)
    }

    async fn session(&self) -> Result<Arc<Session>, BackendError> {
        self.sessions.current(|session| self.book.furthest(session.number)).await
    }
}

#[async_trait]
impl Backend for ZkBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        let session = self.session().await?;
        Attempting::new(&session, &self.book, claim).run().await
    }

    async fn extend(&self, claim: &Claim, wish: Duration) -> Result<Extension, BackendError> {
        let Some(session) = self.sessions.present().filter(|session| session.is_alive()) else {
            return Ok(Extension::NotHeld);
        };
        let entry = self.book.get(claim.id).filter(|entry| entry.standing == Standing::Granted);
        // A node of an earlier session has gone with it.
        let node = entry.and_then(|entry| entry.node).filter(|node| node.session == session.number);
        let Some(node) = node else { return Ok(Extension::NotHeld) };
        let begun = Instant::now();
        let (answer, answered) = oneshot::channel();
        let ended = || BackendError::unavailable("the session ended before it confirmed the claim");
        session.confirmations.send(Confirm { path: node.path, answer }).map_err(|_| ended())?;
        match answered.await.map_err(|_| ended())? {
            Ok(Presence::There) => {
                let lease = lease(&session, wish);
                self.book.extends(claim.id, begun, lease);
                Ok(Extension::Extended(lease))
            }
            Ok(Presence::Gone) => Ok(Extension::NotHeld),
            Err(error) => Err(session.told("confirming a claim", error)),
        }
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        // Whoever releases does not hold any more, whatever becomes of the request.
        self.book.ends(claim.id);
        let session = self.session().await?;
        release(&session, &self.book, claim).await
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        let session = self.session().await?;
        inspect(&session, self.capabilities.kinds, selector).await
    }

    async fn check(&self, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        let session = self.session().await?;
        let config = self.sessions.config();
        check(&session, config, usage).await
    }

    async fn close(&self) {
        self.sessions.close().await;
    }
}
