//! The connection for requests: made when it is needed, shared by all calls, and thrown away after a doubt (L18).
//!
//! The client library has a connection that makes itself anew, but the first call after a cut waits for about a second
//! there, and a call that was given up leaves it in use. Here each call takes what there is or waits for the one that is
//! being made.

use std::{fmt, sync::Arc};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use lock_core::BackendError;
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};
use tracing::debug;

use crate::{connector::Connector, error::Fault, sync::Guarded};

/// The one connection for requests, or none yet.
pub(crate) struct Link {
    connector: Connector,
    slot: Arc<Guarded<Slot>>,
}

#[derive(Default)]
struct Slot {
    state: State,
    /// Counts the connections, so that a doubt about one never ends its successor.
    count: u64,
}

#[derive(Default)]
enum State {
    #[default]
    Empty,
    Opening(Opening),
    Open(MultiplexedConnection),
    Closed,
}

type Opening = Shared<BoxFuture<'static, Result<MultiplexedConnection, BackendError>>>;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There was no connection, and nothing was sent.
    NotSent(BackendError),
    /// What the server or the connection said.
    Said(RedisError),
}

/// What to do when the connection is cut under a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterCut {
    /// Send it once more on a new connection: the request does nothing when it is repeated.
    Repeat,
    /// Tell, since a second answer would mean something else.
    Tell,
}

impl Link {
    /// A link that is not connected yet.
    pub(crate) fn new(connector: Connector) -> Self {
        Link { connector, slot: Arc::default() }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Makes the connection if there is none.
    pub(crate) async fn open(&self) -> Result<(), BackendError> {
        self.connection().await.map(drop)
    }

    /// Ends the connection, and every attempt to make one.
    pub(crate) fn close(&self) {
        self.slot.lock().state = State::Closed;
    }

    /// Sends a command and waits for its answer.
    ///
    /// If it is dropped meanwhile, the connection is thrown away: a server that did not answer this call will not soon
    /// answer the next ones on it.
    pub(crate) async fn send(&self, command: &Cmd, after_cut: AfterCut) -> Result<Value, Failure> {
        match self.send_once(command).await {
            // An idle connection that a firewall or the server's own time limit has cut is only found so.
            Err(Failure::Said(error)) if after_cut == AfterCut::Repeat && Fault::of(&error) == Fault::Cut => {
                debug!(place = self.connector.place(), %error, "the connection was cut; repeating the request on a new one");
                match self.send_once(command).await {
                    // Whatever keeps the second from being sent, the first may have been applied.
                    Err(Failure::NotSent(_)) => Err(Failure::Said(error)),
                    other => other,
                }
            }
            other => other,
        }
    }

    async fn send_once(&self, command: &Cmd) -> Result<Value, Failure> {
        let (mut connection, number) = self.connection().await.map_err(Failure::NotSent)?;
        let doubt = Doubt { link: self, number };
        let answer = command.query_async(&mut connection).await;
        match answer {
            Err(error) if Fault::of(&error).ends_connection() => Err(Failure::Said(error)),
            answer => {
                std::mem::forget(doubt);
                answer.map_err(Failure::Said)
            }
        }
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), BackendError> {
        let (opening, number) = {
            let mut slot = self.slot.lock();
            let number = slot.count;
            match &slot.state {
                State::Open(connection) => return Ok((connection.clone(), number)),
                State::Closed => return Err(closed(self.connector.place())),
                State::Opening(opening) => (opening.clone(), number),
                State::Empty => {
                    slot.count += 1;
                    let opening = self.begin(slot.count);
                    slot.state = State::Opening(opening.clone());
                    (opening, slot.count)
                }
            }
        };
        match opening.await {
            Ok(connection) => Ok((connection, number)),
            Err(error) => {
                // The task has done so itself, unless its runtime ended under it.
                forget(&self.slot, number);
                Err(error)
            }
        }
    }

    /// Makes a connection in a task of its own, so that the first caller's end is not the others'.
    fn begin(&self, number: u64) -> Opening {
        let (connector, slot) = (self.connector.clone(), Arc::clone(&self.slot));
        let place = self.connector.place().to_owned();
        let task = tokio::spawn(async move {
            let opened = connector.open().await;
            let mut slot = slot.lock();
            if slot.count == number && matches!(slot.state, State::Opening(_)) {
                slot.state = match &opened {
                    Ok(connection) => State::Open(connection.clone()),
                    Err(_) => State::Empty,
                };
            } else if matches!(slot.state, State::Closed) {
                return Err(closed(connector.place()));
            }
            drop(slot);
            opened
        });
        let ended = move |_| BackendError::unavailable(format!("connecting to redis {place} ended with its runtime"));
        task.map(move |opened| opened.unwrap_or_else(|error| Err(ended(error)))).boxed().shared()
    }
}

/// Throws a connection away when dropped, unless that was forgotten.
struct Doubt<'a> {
    link: &'a Link,
    number: u64,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        debug!(place = self.link.connector.place(), "the connection is thrown away");
        forget(&self.link.slot, self.number);
    }
}

/// Empties the slot of this connection. Calls that are under way on it keep their share until they end.
fn forget(slot: &Guarded<Slot>, number: u64) {
    let mut slot = slot.lock();
    if slot.count == number && !matches!(slot.state, State::Closed) {
        slot.state = State::Empty;
    }
}

fn closed(place: &str) -> BackendError {
    BackendError::unavailable(format!("the backend of redis {place} is closed"))
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("place", &self.connector.place()).finish_non_exhaustive()
    }
}
