//! Removing idle rows: in the background, page by page, and never lowering a token. The same on every server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_core::BackendError;

use crate::schedule::Place;

/// How many rows a statement of a sweep reads: few enough that no claim waits for it for long.
pub(crate) const PAGE_ROWS: i64 = 500;

/// The statements of a sweep.
#[async_trait]
pub(crate) trait Sweep: Send + Sync + 'static {
    /// Whether the backend was closed, which ends the sweep.
    fn is_closed(&self) -> bool;

    /// The floor before this sweep; None if another client has the turn.
    async fn turn(&self) -> Result<Option<i64>, BackendError>;

    /// The last row of the page behind this place; None if the page is the last.
    async fn page(&self, before: &Place) -> Result<Option<Place>, BackendError>;

    /// Deletes the page's idle rows whose tokens are not above `floor`.
    async fn delete(&self, before: &Place, upto: &Place, floor: i64) -> Result<(), BackendError>;

    /// Raises the floor to the tokens of the page's idle rows that are left.
    async fn raise_floor(&self, before: &Place, upto: &Place) -> Result<(), BackendError>;
}

/// Sweeps in a task of its own, which ends with the pages or with the backend.
pub(crate) fn spawn(store: Arc<impl Sweep>) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            if let Err(error) = sweep(&*store).await {
                // The next sweep finds the same rows; a server that is away is told of by the calls that it fails.
                tracing::debug!(%error, "looking for idle rows ended early");
            }
        });
    }
}

/// A row goes in the sweep after the one that raised the floor to its token, an hour later: a claim reads the floor
/// before it waits for a row, and no claim waits for that long.
async fn sweep(store: &impl Sweep) -> Result<(), BackendError> {
    let Some(floor) = store.turn().await? else { return Ok(()) };
    let mut before = Place::before_all();
    while !store.is_closed() {
        let last = store.page(&before).await?;
        let upto = last.clone().unwrap_or_else(Place::after_all);
        store.delete(&before, &upto, floor).await?;
        store.raise_floor(&before, &upto).await?;
        match last {
            Some(last) => before = last,
            None => break,
        }
        // The claims have the server between two pages.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
