//! Removing idle rows: in the background, page by page, and never lowering a token.

use std::sync::Arc;

use sqlx::{Row as _, sqlite::SqliteRow};

use crate::{
    schedule::{PERIOD_US, Place, RETENTION_US},
    sqlite::{Statement, open, store::Store},
};

const TURN: &str = include_str!("../../sql/sweep_turn.sqlite.sql");
const PAGE: &str = include_str!("../../sql/sweep_page.sqlite.sql");
const FLOOR: &str = include_str!("../../sql/sweep_floor.sqlite.sql");
const DELETE: &str = include_str!("../../sql/sweep_delete.sqlite.sql");

/// How many rows a statement of a sweep reads: few enough that the calls that queue behind it do not notice.
const PAGE_ROWS: i64 = 500;

/// Sweeps in a task of its own, which ends with the pages or with the last backend.
pub(crate) fn spawn(store: &Arc<Store>) {
    let store = Arc::clone(store);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            if let Err(error) = sweep(&store).await {
                // The next sweep finds the same rows; a full or locked file is told by the calls that it fails.
                tracing::debug!(path = %store.path().display(), %error, "looking for idle rows ended early");
            }
        });
    }
}

async fn sweep(store: &Store) -> Result<(), sqlx::Error> {
    if store.run_if_open(sqlx::query(TURN).bind(PERIOD_US)).await?.changed == 0 {
        return Ok(());
    }
    let mut before = Place::before_all();
    loop {
        let page = store.run_if_open(bind(&before, sqlx::query(PAGE)).bind(PAGE_ROWS)).await?;
        let last = page.rows.first().map(place).transpose()?;
        let upto = last.clone().unwrap_or_else(Place::after_all);
        // In this order: a row may go only when the floor covers its token.
        for statement in [FLOOR, DELETE] {
            let of_this_page = bind(&upto, bind(&before, sqlx::query(statement)));
            store.run_if_open(of_this_page.bind(RETENTION_US)).await?;
        }
        match last {
            Some(last) => before = last,
            None => break,
        }
    }
    // Once an hour the file takes the room that its rows need, and the log can do with what it has.
    store.run_if_open(sqlx::query(open::CHECKPOINT)).await?;
    Ok(())
}

fn place(row: &SqliteRow) -> Result<Place, sqlx::Error> {
    Ok(Place { namespace: row.try_get(0)?, family: row.try_get(1)?, name: row.try_get(2)?, slot: row.try_get(3)? })
}

fn bind<'q>(place: &'q Place, statement: Statement<'q>) -> Statement<'q> {
    statement.bind(place.namespace.as_slice()).bind(place.family.as_str()).bind(place.name.as_slice()).bind(place.slot)
}
