//! The backend: core's four calls as statements, and what the rows decide. The same on every database.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use lock_core::{
    Attempt, Backend, BackendError, Busy, Capabilities, Claim, Extension, FencingToken, Finding, Grant, Holder, Intent,
    LockRecord, Release, Selector, Usage,
};

#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::server::config::{DialectName, ServerConfig};
use crate::{
    capabilities,
    dialect::{ClaimRow, Dialect, Key, WasInForce, Watched},
    rows::{HolderRow, records},
    units::{NameRange, duration, lease_us, token_i64},
};
#[cfg(feature = "sqlite")]
use crate::{config::SqliteConfig, sqlite::Sqlite};

/// How often an attempt asks again when the holder left between its two statements. Core asks again after that anyhow.
const ROUNDS: usize = 3;

/// Locks as unique rows of an SQL database.
#[derive(Debug)]
pub struct SqlBackend {
    dialect: Box<dyn Dialect>,
}

impl SqlBackend {
    /// What PostgreSQL promises with its notifications on, without connecting to one.
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn postgres_capabilities() -> Capabilities {
        capabilities::of_postgres(true)
    }

    /// What MySQL and MariaDB promise, without connecting to one.
    #[cfg(feature = "mysql")]
    #[must_use]
    pub fn mysql_capabilities() -> Capabilities {
        capabilities::of_mysql()
    }

    /// What a server promises, without connecting to it.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    #[must_use]
    pub fn server_capabilities(config: &ServerConfig) -> Capabilities {
        match config.dialect {
            #[cfg(feature = "postgres")]
            DialectName::Postgres => capabilities::of_postgres(config.listens),
            #[cfg(feature = "mysql")]
            DialectName::Mysql => capabilities::of_mysql(),
        }
    }

    /// Connects to the PostgreSQL, MySQL or MariaDB server of `config`, and creates the tables where they are missing.
    ///
    /// # Errors
    ///
    /// `Config` for a wrong user, password, database or encryption. `Refused` if the tables cannot be used: the user
    /// lacks rights, or a newer version made them. `Unavailable` if the server does not answer within the time to
    /// connect, or does not serve now.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, nothing stays open. The tables may have been created.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub async fn server(config: &ServerConfig) -> Result<Self, BackendError> {
        let dialect: Box<dyn Dialect> = match config.dialect {
            #[cfg(feature = "postgres")]
            DialectName::Postgres => Box::new(crate::postgres::Postgres::open(config).await?),
            #[cfg(feature = "mysql")]
            DialectName::Mysql => Box::new(crate::mysql::Mysql::open(config).await?),
        };
        Ok(SqlBackend { dialect })
    }

    /// What an SQLite file promises, without opening one.
    #[cfg(feature = "sqlite")]
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
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(config: &SqliteConfig) -> Result<Self, BackendError> {
        Ok(SqlBackend { dialect: Box::new(Sqlite::open(config).await?) })
    }
}

impl SqlBackend {
    /// Who holds; a try arms nothing that would tell of a change (L9).
    async fn look(&self, key: &Key<'_>, claim: &Claim) -> Result<Watched, BackendError> {
        match claim.intent {
            Intent::Wait => self.dialect.watch(key, claim.kind).await,
            Intent::Try => {
                let one = NameRange::one(key.namespace, claim.kind, key.name);
                Ok(Watched { holders: self.dialect.holders(&one).await?, changed: None })
            }
        }
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
            let watched = self.look(&row.key, claim).await?;
            let holders: Vec<Holder> = watched.holders.iter().map(HolderRow::holder).collect();
            let retry_after = holders.iter().filter_map(|holder| holder.remaining).min();
            if retry_after.is_some() {
                let mut busy = Busy::new(retry_after, holders);
                if let Some(changed) = watched.changed {
                    busy.changed = changed;
                }
                return Ok(Attempt::Busy(busy));
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

    async fn check(&self, usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        self.dialect.check(usage).await
    }

    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        self.dialect.wall_clock().await
    }

    async fn prepare(&self) -> Result<Vec<String>, BackendError> {
        Ok(self.dialect.take_created().into_iter().collect())
    }

    async fn close(&self) {
        self.dialect.close().await;
    }
}
