//! Removing idle rows: in the background, page by page, and never lowering a token.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use sqlx::{Row as _, sqlite::SqliteRow};

use crate::sqlite::{Statement, open, store::Store};

const TURN: &str = include_str!("../../sql/sweep_turn.sqlite.sql");
const PAGE: &str = include_str!("../../sql/sweep_page.sqlite.sql");
const FLOOR: &str = include_str!("../../sql/sweep_floor.sqlite.sql");
const DELETE: &str = include_str!("../../sql/sweep_delete.sqlite.sql");

/// How often idle rows are looked for, by one of the processes that use a file.
const PERIOD: Duration = Duration::from_secs(3600);
pub(crate) const PERIOD_US: i64 = 3600 * 1_000_000;

/// How long a row is kept for its token alone.
const RETENTION_US: i64 = 24 * 3600 * 1_000_000;

/// How many rows a statement of a sweep reads: few enough that the calls that queue behind it do not notice.
const PAGE_ROWS: i64 = 500;

/// When this process looks next.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    next: Mutex<Option<Instant>>,
}

impl Schedule {
    /// Sets the next time: now, or after a period.
    pub(crate) fn set(&self, due: bool) {
        let next = if due { Instant::now() } else { Instant::now() + PERIOD };
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    }

    /// Whether the time has come. Only the first caller after it is told so.
    pub(crate) fn is_due(&self) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = next.is_some_and(|at| at <= now);
        if due {
            *next = Some(now + PERIOD);
        }
        due
    }
}

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
        let page = store.run_if_open(before.bind_to(sqlx::query(PAGE)).bind(PAGE_ROWS)).await?;
        let last = page.rows.first().map(Place::read).transpose()?;
        let upto = last.clone().unwrap_or_else(Place::after_all);
        // In this order: a row may go only when the floor covers its token.
        for statement in [FLOOR, DELETE] {
            let of_this_page = upto.bind_to(before.bind_to(sqlx::query(statement)));
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

/// A place in the order of rows.
#[derive(Clone, Debug)]
struct Place {
    namespace: Vec<u8>,
    family: String,
    name: Vec<u8>,
    slot: i64,
}

impl Place {
    fn before_all() -> Self {
        Place { namespace: Vec::new(), family: String::new(), name: Vec::new(), slot: i64::MIN }
    }

    /// No namespace is UTF-8 and begins with this byte.
    fn after_all() -> Self {
        Place { namespace: vec![0xFF], family: String::new(), name: Vec::new(), slot: i64::MIN }
    }

    fn read(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Place { namespace: row.try_get(0)?, family: row.try_get(1)?, name: row.try_get(2)?, slot: row.try_get(3)? })
    }

    fn bind_to<'q>(&'q self, statement: Statement<'q>) -> Statement<'q> {
        statement.bind(self.namespace.as_slice()).bind(self.family.as_str()).bind(self.name.as_slice()).bind(self.slot)
    }
}
