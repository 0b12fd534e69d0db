//! Confirmation by a write: that nodes are there, said by a quorum and not by a follower that may be behind.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};
use zookeeper_client::{Client, Error, MultiWriteError};

/// The most nodes that one request asks for.
const AT_ONCE: usize = 64;

/// A node of this session that is to be confirmed.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) path: String,
    pub(crate) answer: oneshot::Sender<Result<Presence, Error>>,
}

/// Whether a node was there when the request was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    There,
    Gone,
}

/// Confirms what is asked for until nobody can ask any more. Those who ask while a request is under way share the next.
///
/// The request is a transaction of checks alone: it passes the leader and a quorum like any other write, keeps the
/// session, and changes nothing, so that it wakes nobody.
pub(crate) async fn run(client: Client, mut asked: mpsc::UnboundedReceiver<Confirm>) {
    while let Some(first) = asked.recv().await {
        let mut batch = VecDeque::from([first]);
        while batch.len() < AT_ONCE
            && let Ok(next) = asked.try_recv()
        {
            batch.push_back(next);
        }
        batch.retain(|confirm| !confirm.answer.is_closed());
        confirm_all(&client, batch).await;
    }
}

async fn confirm_all(client: &Client, mut batch: VecDeque<Confirm>) {
    while !batch.is_empty() {
        match check(client, &batch).await {
            Ok(()) => {
                for confirm in batch.drain(..) {
                    // Who has gone has no use for the answer.
                    let _ = confirm.answer.send(Ok(Presence::There));
                }
            }
            // One that is missing fails the transaction: the others are asked for again without it.
            Err(MultiWriteError::OperationFailed { index, source }) if index < batch.len() => {
                if let Some(confirm) = batch.remove(index) {
                    let absent = matches!(source, Error::NoNode);
                    let _ = confirm.answer.send(if absent { Ok(Presence::Gone) } else { Err(source) });
                }
            }
            Err(error) => {
                let error = Error::from(error);
                for confirm in batch.drain(..) {
                    let _ = confirm.answer.send(Err(error.clone()));
                }
            }
        }
    }
}

async fn check(client: &Client, batch: &VecDeque<Confirm>) -> Result<(), MultiWriteError> {
    /// Matches every version of a node.
    const ANY: i32 = -1;
    let mut checks = client.new_multi_writer();
    for confirm in batch {
        checks.add_check_version(&confirm.path, ANY)?;
    }
    checks.commit().await.map(drop)
}
