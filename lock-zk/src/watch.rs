//! What the server tells by itself: that the node before a waiter has gone, or a holder's own.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use tokio::sync::oneshot;
use zookeeper_client::{Error, EventType, OneshotWatcher};

use crate::session::Session;

/// How long a hold must last before its node is watched. Most are released sooner, and are spared the request.
const SETTLED: Duration = Duration::from_millis(25);

/// The pause before the next look at a node that has gone, or could not be looked at.
const AGAIN: Duration = Duration::from_millis(250);

/// Watches a node until it goes; None if it has gone.
///
/// A claim's node has no children, so that a watch for them hears of its removal alone: one for its data would hear of
/// every write to it as well, and wake a waiter for nothing.
pub(crate) async fn watch(session: &Session, path: &str) -> Result<Option<OneshotWatcher>, Error> {
    match session.client.list_and_watch_children(path).await {
        Ok((_, watcher)) => Ok(Some(watcher)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Resolves when the watched node has gone, or its session has ended; then `turn` says which.
pub(crate) fn wake(watcher: OneshotWatcher, turn: Arc<AtomicBool>) -> BoxFuture<'static, ()> {
    let (mut tell, told) = oneshot::channel();
    // In a task, since whoever waits may be polled by another runtime than the one that serves the connection: the
    // watcher must not be asked after that one has ended.
    tokio::spawn(async move {
        tokio::select! {
            event = watcher.changed() => {
                turn.store(event.event_type == EventType::NodeDeleted, Ordering::Release);
                // Who has gone needs no waking.
                let _ = tell.send(());
            }
            () = tell.closed() => {}
        }
    });
    Box::pin(async move {
        // Without its task there is nothing left to wait for, and asking again shows what is the matter.
        let _ = told.await;
    })
}

/// Hints that a holder's own node, or its session, has gone (L8).
pub(crate) fn hints(session: &Arc<Session>, path: String) -> BoxStream<'static, ()> {
    let own = Own { session: Arc::downgrade(session), path, pause: SETTLED };
    stream::unfold(own, |mut own| async move {
        own.disturbed().await;
        Some(((), own))
    })
    .boxed()
}

/// A holder's own node.
struct Own {
    /// Weak, so that a hold does not keep a session that is to be closed.
    session: Weak<Session>,
    path: String,
    pause: Duration,
}

impl Own {
    async fn disturbed(&mut self) {
        loop {
            tokio::time::sleep(self.pause).await;
            self.pause = AGAIN;
            let Some(session) = self.session.upgrade() else { return };
            match watch(&session, &self.path).await {
                Ok(Some(watcher)) => {
                    drop(session);
                    watcher.changed().await;
                    self.pause = SETTLED;
                    return;
                }
                Ok(None) => return,
                Err(_) if !session.is_alive() => return,
                Err(error) => tracing::debug!(%error, path = self.path, "a node could not be watched; trying again"),
            }
        }
    }
}
