//! Releasing a claim, held, queued, or of unknown outcome, its own or another's (L5).

use lock_core::{BackendError, Claim, Release};

use crate::{
    book::{Book, Entry},
    find::{remove, remove_all},
    path,
    session::Session,
};

/// Removes every node of the claim.
pub(crate) async fn release(session: &Session, book: &Book, claim: &Claim) -> Result<Release, BackendError> {
    let removed = match book.get(claim.id) {
        // The one node that there can be is known: it need not be looked for.
        Some(Entry { node: Some(node), stray: false, .. }) if node.session == session.number => {
            remove(session, &node.path).await?
        }
        _ => remove_all(session, &path::of_claim(claim), claim.id).await?,
    };
    book.forgets(claim.id);
    Ok(if removed { Release::Removed } else { Release::Absent })
}
