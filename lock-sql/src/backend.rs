//! The backend: core's four calls as statements, and what the rows decide. The same on every database.

use std::time::Duration;

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Busy, Capabilities, Claim, Extension, FencingToken, Grant, Holder, LockRecord,
    Release, Selector,
};

use crate::{
    capabilities,
    config::SqliteConfig,
    dialect::{ClaimRow, Dialect, Key, WasInForce},
    rows::{HolderRow, records},
    sqlite::Sqlite,
    units::{NameRange, duration, lease_us, token_i64},
};

/// How often an attempt asks again when the holder left between its two statements. Core asks again after that anyhow.
const ROUNDS: usize = 3;

/// Locks as unique rows of an SQL database.
#[derive(Debug)]
pub struct SqlBackend {
    dialect: Box<dyn Dialect>,
}

impl SqlBackend {
    /// What an SQLite file promises, without opening one.
    #[must_use]
    pub fn sqlite_capabilities() -> Capabilities {
        capabilities::of_sqlite()
    }

    /// Opens the SQLite file of `config`, and creates it where it is missing. Its directory must exist.
    ///
    /// All backends of one file in one process share one connection, with the settings of the one that was first.
    ///
    /// # Errors
    ///
    /// `Config` for a path that cannot be one of a store. `Refused` for a file that cannot be used: a directory, a
    /// file that is read-only, corrupt, full or of a newer schema, or one in a directory that is missing. `Unavailable`
    /// if another program kept it locked for all of the time to connect.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, nothing stays open. The file may have been created.
    pub async fn sqlite(config: &SqliteConfig) -> Result<Self, BackendError> {
        Ok(SqlBackend { dialect: Box::new(Sqlite::open(config).await?) })
    }
}

#[async_trait]
impl Backend for SqlBackend {
    fn capabilities(&self) -> &Capabilities {
        self.dialect.capabilities()
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        let row = ClaimRow {
            key: Key::of(claim),
            claim: claim.id,
            lease_us: lease_us(claim.lease, self.capabilities())?,
            min_token: token_i64(claim.min_token)?,
            host: &claim.holder.host,
            pid: claim.holder.pid,
            label: claim.holder.label.as_deref(),
        };
        for _ in 0..ROUNDS {
            // The claim's id decides, and never a count of rows, which a database may give for a row it left alone.
            let written = self.dialect.claim(&row).await?.filter(|written| written.claim == claim.id);
            if let Some(written) = written {
                let token = FencingToken::new(written.token);
                return Ok(Attempt::Granted(Grant::new(token, duration(written.remaining_us))));
            }
            let one = NameRange::one(row.key.namespace, claim.kind, row.key.name);
            let holders: Vec<Holder> = self.dialect.holders(&one).await?.iter().map(HolderRow::holder).collect();
            let retry_after = holders.iter().filter_map(|holder| holder.remaining).min();
            if retry_after.is_some() {
                return Ok(Attempt::Busy(Busy::new(retry_after, holders)));
            }
        }
        // Others came and went so fast that neither statement met one of them.
        Ok(Attempt::Busy(Busy::new(Some(Duration::ZERO), Vec::new())))
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        let lease_us = lease_us(lease, self.capabilities())?;
        let remaining = self.dialect.extend(&Key::of(claim), claim.id, lease_us).await?;
        Ok(remaining.map_or(Extension::NotHeld, |us| Extension::Extended(duration(us))))
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        Ok(match self.dialect.release(&Key::of(claim), claim.id).await? {
            WasInForce::Yes => Release::Removed,
            WasInForce::No => Release::Absent,
        })
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        let mut shown = Vec::new();
        for &kind in self.capabilities().kinds {
            let rows = self.dialect.holders(&NameRange::of(selector, kind)?).await?;
            shown.extend(records(selector.namespace(), kind, &rows));
        }
        shown.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        Ok(shown)
    }

    async fn close(&self) {
        self.dialect.close().await;
    }
}
