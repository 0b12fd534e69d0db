//! SQLite: the four statements on the one connection to a file.

mod check;
mod open;
mod registry;
mod store;
mod sweep;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use lock_core::{BackendError, Capabilities, ClaimId, Finding, Usage};
use sqlx::{Row as _, Sqlite as Driver, query::Query, sqlite::SqliteArguments};

use crate::{
    capabilities,
    config::SqliteConfig,
    dialect::{ClaimRow, ClaimedRow, Dialect, Key, WasInForce},
    rows::{HolderRow, claimed_row, holder_row, id_bytes},
    sqlite::store::Store,
    units::NameRange,
};

const CLAIM: &str = include_str!("../sql/claim.sqlite.sql");
const EXTEND: &str = include_str!("../sql/extend.sqlite.sql");
const RELEASE: &str = include_str!("../sql/release.sqlite.sql");
const CLEAR: &str = include_str!("../sql/clear.sqlite.sql");
const HOLDERS: &str = include_str!("../sql/holders.sqlite.sql");

type Statement<'q> = Query<'q, Driver, SqliteArguments>;

/// One backend's share of the connection to a file.
pub(crate) struct Sqlite {
    store: Arc<Store>,
    capabilities: Capabilities,
    closed: AtomicBool,
}

impl Sqlite {
    /// Opens the file, or shares the connection that this process has to it.
    pub(crate) async fn open(config: &SqliteConfig) -> Result<Self, BackendError> {
        let path = open::locate(config.path())?;
        let store = registry::store(path, config.limits());
        // From here on dropping gives the share back.
        let share = Sqlite { store, capabilities: capabilities::of_sqlite(), closed: AtomicBool::new(false) };
        share.store.open().await?;
        Ok(share)
    }

    fn leave(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel) && self.store.leave()
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.store.path()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Dialect for Sqlite {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn claim(&self, row: &ClaimRow<'_>) -> Result<Option<ClaimedRow>, BackendError> {
        let statement = || {
            keyed(CLAIM, &row.key)
                .bind(id_bytes(row.claim))
                .bind(row.lease_us)
                .bind(row.min_token)
                .bind(row.host)
                .bind(row.pid)
                .bind(row.label)
        };
        let rows = self.store.run(statement).await?.rows;
        self.store.sweep_when_due();
        rows.first().map(claimed_row).transpose().map_err(|error| self.store.error(error))
    }

    async fn extend(&self, key: &Key<'_>, claim: ClaimId, lease_us: i64) -> Result<Option<i64>, BackendError> {
        let rows = self.store.run_in_place(|| keyed(EXTEND, key).bind(id_bytes(claim)).bind(lease_us)).await?.rows;
        rows.first().map(|row| row.try_get(0)).transpose().map_err(|error| self.store.error(error))
    }

    async fn release(&self, key: &Key<'_>, claim: ClaimId) -> Result<WasInForce, BackendError> {
        if self.store.run_in_place(|| keyed(RELEASE, key).bind(id_bytes(claim))).await?.changed > 0 {
            return Ok(WasInForce::Yes);
        }
        self.store.run_in_place(|| keyed(CLEAR, key).bind(id_bytes(claim))).await?;
        Ok(WasInForce::No)
    }

    async fn holders(&self, range: &NameRange<'_>) -> Result<Vec<HolderRow>, BackendError> {
        let statement = || {
            sqlx::query(HOLDERS)
                .bind(range.namespace)
                .bind(range.kind.family())
                .bind(range.first)
                .bind(range.end.as_slice())
        };
        let rows = self.store.run(statement).await?.rows;
        rows.iter().map(holder_row).collect::<Result<_, _>>().map_err(|error| self.store.error(error))
    }

    async fn check(&self, _usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        check::check(&self.store).await
    }

    fn take_created(&self) -> Option<String> {
        self.store.take_created().then(|| format!("the lock tables in the sqlite file {}", self.store.path().display()))
    }

    async fn close(&self) {
        if self.leave() {
            self.store.close_if_unused().await;
        }
    }
}

fn keyed<'q>(sql: &'static str, key: &Key<'q>) -> Statement<'q> {
    sqlx::query(sql).bind(key.namespace).bind(key.family).bind(key.name).bind(key.slot)
}
