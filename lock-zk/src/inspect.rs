//! Who holds and who waits, for people.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use lock_core::{BackendError, LockKind, LockName, LockRecord, Pattern, Selector};
use zookeeper_client::Error;

use crate::{holder, path, session::Session};

/// How many locks are asked for at once.
const AT_ONCE: usize = 32;

/// How often a lock is looked at again whose holder went between two requests.
const ROUNDS: usize = 4;

/// The records that a selector shows, ordered by name.
pub(crate) async fn inspect(
    session: &Session,
    kinds: &[LockKind],
    selector: &Selector,
) -> Result<Vec<LockRecord>, BackendError> {
    let mut shown = Vec::new();
    for &kind in kinds {
        let names = names(session, kind, selector).await?;
        let records = stream::iter(names).map(|name| record(session, kind, selector, name)).buffered(AT_ONCE);
        shown.extend(records.try_filter_map(|record| async { Ok(record) }).try_collect::<Vec<_>>().await?);
    }
    shown.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    Ok(shown)
}

/// The names that may be held. Directories stay for a while after their last claim.
async fn names(session: &Session, kind: LockKind, selector: &Selector) -> Result<Vec<LockName>, BackendError> {
    if let Pattern::Name(name) = selector.pattern() {
        // What is no name has no lock.
        return Ok(LockName::new(name).into_iter().collect());
    }
    let children = session.list_synced(&path::locks(selector.namespace(), kind)).await?;
    let names = children.iter().filter_map(|child| path::name_of(child));
    Ok(names.filter(|name| selector.matches(name.as_str())).collect())
}

async fn record(
    session: &Session,
    kind: LockKind,
    selector: &Selector,
    name: LockName,
) -> Result<Option<LockRecord>, BackendError> {
    let directory = path::lock(selector.namespace(), kind, &name);
    let exact = matches!(selector.pattern(), Pattern::Name(_));
    for _ in 0..ROUNDS {
        // The list of names was read after a sync, and what this session reads never goes back.
        let line = if exact {
            crate::line::Line::of(session.list_synced(&directory).await?)
        } else {
            session.line(&directory).await?
        };
        let Some(first) = line.first() else { return Ok(None) };
        match session.client.get_data(&format!("{directory}/{}", first.name)).await {
            Ok((data, stat)) => {
                let holders = vec![holder::holder(first.id, &data, &stat)];
                let record = LockRecord::new(selector.namespace(), &name, kind, holders);
                return Ok(Some(record.with_queue(line.behind(first.number))));
            }
            Err(Error::NoNode) => {}
            Err(error) => return Err(session.told("reading a claim", error)),
        }
    }
    // Holders came and went faster than they could be read: between two of them there is none.
    Ok(Some(LockRecord::new(selector.namespace(), &name, kind, Vec::new())))
}
