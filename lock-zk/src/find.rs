//! Finding the nodes of a claim whose creation was not answered, by the id in their names.

use std::sync::{Arc, atomic::AtomicBool};

use lock_core::{BackendError, ClaimId};
use zookeeper_client::Error;

use crate::{book::Node, holder, line::Line, path::Child, session::Session};

/// The claim's node, if it has one that lives as long as this session. All others of the claim are removed: one of an
/// earlier session may go at any moment.
pub(crate) async fn adopt(session: &Session, directory: &str, id: ClaimId) -> Result<Option<Node>, BackendError> {
    let line = Line::of(session.list_synced(directory).await?);
    let mut found: Option<Node> = None;
    for child in line.of_claim(id) {
        let path = format!("{directory}/{}", child.name);
        let stat =
            session.client.check_stat(&path).await.map_err(|error| session.told("looking for a claim", error))?;
        let Some(stat) = stat else { continue };
        if stat.ephemeral_owner != session.client.session_id().0 {
            remove(session, &path).await?;
            continue;
        }
        let node = Node {
            session: session.number,
            path,
            number: child.number,
            token: holder::token(&stat),
            turn: Arc::new(AtomicBool::new(false)),
        };
        // Of two, the earlier keeps the place.
        match &mut found {
            Some(kept) if kept.token <= node.token => remove(session, &node.path).await.map(drop)?,
            Some(kept) => {
                let later = std::mem::replace(kept, node);
                remove(session, &later.path).await?;
            }
            None => found = Some(node),
        }
    }
    Ok(found)
}

/// Removes every node of a claim, whoever made it. True if there was one.
pub(crate) async fn remove_all(session: &Session, directory: &str, id: ClaimId) -> Result<bool, BackendError> {
    let line = Line::of(session.list_synced(directory).await?);
    let mut removed = false;
    for Child { name, .. } in line.of_claim(id) {
        removed |= remove(session, &format!("{directory}/{name}")).await?;
    }
    Ok(removed)
}

/// Removes a node. False if there was none.
pub(crate) async fn remove(session: &Session, path: &str) -> Result<bool, BackendError> {
    match session.client.delete(path, None).await {
        Ok(()) => Ok(true),
        Err(Error::NoNode) => Ok(false),
        Err(error) => Err(session.told("removing a claim", error)),
    }
}
