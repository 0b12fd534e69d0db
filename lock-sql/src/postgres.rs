//! PostgreSQL: the statements on a pool of connections, and notifications for those who wait.

mod check;
mod fault;
mod listener;
mod pooler;
mod session;
mod statement;

use std::{fmt, sync::Arc, time::SystemTime};

use async_trait::async_trait;
use lock_core::{BackendError, Capabilities, ClaimId, Finding, LockKind, Usage};
use sqlx::{Row as _, SqlStr, postgres::PgRow};

use crate::{
    capabilities,
    dialect::{ClaimRow, ClaimedRow, Dialect, Key, WasInForce, Watched},
    postgres::{
        listener::Listener,
        pooler::Pooler,
        session::{PgServer, Texts},
    },
    rows::{HolderRow, claimed_row, holder_row, id_bytes},
    schedule::{PERIOD_US, Place, RETENTION_US, Schedule},
    server::{
        Answer,
        config::ServerConfig,
        pool::{IfUnanswered, Pool},
        statement::Statement,
        sweep::{self, PAGE_ROWS, Sweep},
    },
    units::{NameRange, fnv1a},
};

/// One backend's connections to a PostgreSQL server.
pub(crate) struct Postgres {
    store: Arc<Store>,
    capabilities: Capabilities,
    listener: Option<Listener>,
    schedule: Schedule,
    pooler: Pooler,
    /// Part of every channel, so that tables of one database do not wake each other's waiters.
    table: String,
}

struct Store {
    pool: Pool<PgServer>,
    texts: Texts,
}

impl Postgres {
    /// Connects, and creates the tables where they are missing.
    pub(crate) async fn open(config: &ServerConfig) -> Result<Self, BackendError> {
        let server = PgServer::new(config)?;
        let listener = config.listens.then(|| Listener::new(server.options(), config.connect_timeout));
        let pooler =
            Pooler { options: server.options().clone(), limit: config.connect_timeout, listens: config.listens };
        let pool = Pool::new(server, config);
        let store = Arc::new(Store { pool, texts: Texts::of(&config.table) });
        let schedule = Schedule::default();
        schedule.set(store.pool.open().await?);
        Ok(Postgres {
            store,
            capabilities: capabilities::of_postgres(config.listens),
            listener,
            schedule,
            pooler,
            table: config.table.as_str().to_owned(),
        })
    }

    /// The channel that a lock's release is told on. Two locks on one channel wake each other's waiters, and no more.
    fn channel(&self, key: &Key<'_>) -> String {
        let lock = [self.table.as_bytes(), key.namespace, key.family.as_bytes(), key.name];
        format!("leasehold_{:016x}", fnv1a(&lock))
    }
}

impl Store {
    async fn run<'q>(
        &self,
        unanswered: IfUnanswered,
        statement: impl Fn() -> Statement<'q>,
    ) -> Result<Vec<PgRow>, BackendError> {
        let Answer { rows, .. } = self.pool.run(unanswered, statement).await?;
        Ok(rows)
    }

    fn read<T>(&self, rows: &[PgRow], read: impl Fn(&PgRow) -> Result<T, sqlx::Error>) -> Result<Vec<T>, BackendError> {
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| self.pool.error(error))
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("pool", &self.store.pool)
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Dialect for Postgres {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn claim(&self, row: &ClaimRow<'_>) -> Result<Option<ClaimedRow>, BackendError> {
        let label = row.label.map(without_nul);
        let statement = || {
            keyed(&self.store.texts.claim, &row.key)
                .bind(id_bytes(row.claim))
                .bind(row.lease_us)
                .bind(row.min_token)
                .bind(row.host)
                .bind(i64::from(row.pid))
                .bind(label.as_deref())
        };
        let rows = self.store.run(IfUnanswered::Again, statement).await?;
        if self.schedule.is_due() {
            sweep::spawn(Arc::clone(&self.store));
        }
        Ok(self.store.read(&rows, claimed_row)?.pop())
    }

    async fn extend(&self, key: &Key<'_>, claim: ClaimId, lease_us: i64) -> Result<Option<i64>, BackendError> {
        let statement = || keyed(&self.store.texts.extend, key).bind(id_bytes(claim)).bind(lease_us);
        let rows = self.store.run(IfUnanswered::Again, statement).await?;
        Ok(self.store.read(&rows, |row| row.try_get(0))?.pop())
    }

    async fn release(&self, key: &Key<'_>, claim: ClaimId) -> Result<WasInForce, BackendError> {
        let channel = self.channel(key);
        let statement = || keyed(&self.store.texts.release, key).bind(id_bytes(claim)).bind(channel.as_str());
        let rows = self.store.run(IfUnanswered::Tell, statement).await?;
        let in_force = self.store.read(&rows, |row| row.try_get(0))?.pop();
        Ok(if in_force == Some(true) { WasInForce::Yes } else { WasInForce::No })
    }

    async fn holders(&self, range: &NameRange<'_>) -> Result<Vec<HolderRow>, BackendError> {
        let statement = || {
            Statement::new(self.store.texts.holders.clone())
                .bind(range.namespace)
                .bind(range.kind.family())
                .bind(range.first)
                .bind(range.end.as_slice())
        };
        let rows = self.store.run(IfUnanswered::Again, statement).await?;
        self.store.read(&rows, holder_row)
    }

    async fn watch(&self, key: &Key<'_>, kind: LockKind) -> Result<Watched, BackendError> {
        let Some(listener) = &self.listener else {
            let range = NameRange::one(key.namespace, kind, key.name);
            return Ok(Watched { holders: self.holders(&range).await?, changed: None });
        };
        // In this order: whoever releases after the look finds the note, and is heard.
        let subscription = listener.subscribe(&self.channel(key)).await;
        let statement = || {
            let query = Statement::new(self.store.texts.watch.clone());
            query.bind(key.namespace).bind(key.family).bind(key.name)
        };
        let rows = self.store.run(IfUnanswered::Again, statement).await?;
        let holders = self.store.read(&rows, holder_row)?;
        Ok(Watched { holders, changed: Some(Box::pin(subscription.changed())) })
    }

    async fn check(&self, _usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        check::check(&self.store, &self.pooler).await
    }

    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        check::wall_clock(&self.store).await.map(Some)
    }

    fn take_created(&self) -> Option<String> {
        self.store.pool.take_created(&self.table)
    }

    async fn close(&self) {
        if let Some(listener) = &self.listener {
            listener.close().await;
        }
        self.store.pool.close().await;
    }
}

#[async_trait]
impl Sweep for Store {
    fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }

    async fn turn(&self) -> Result<Option<i64>, BackendError> {
        let statement = || Statement::new(self.texts.turn.clone()).bind(PERIOD_US);
        let rows = self.run(IfUnanswered::Tell, statement).await?;
        Ok(self.read(&rows, |row| row.try_get(0))?.pop())
    }

    async fn page(&self, before: &Place) -> Result<Option<Place>, BackendError> {
        let statement = || placed(Statement::new(self.texts.page.clone()), before).bind(PAGE_ROWS);
        let rows = self.run(IfUnanswered::Again, statement).await?;
        Ok(self.read(&rows, place)?.pop())
    }

    async fn delete(&self, before: &Place, upto: &Place, floor: i64) -> Result<(), BackendError> {
        let range = || placed(placed(Statement::new(self.texts.delete.clone()), before), upto);
        self.run(IfUnanswered::Again, || range().bind(RETENTION_US).bind(floor)).await.map(drop)
    }

    async fn raise_floor(&self, before: &Place, upto: &Place) -> Result<(), BackendError> {
        let range = || placed(placed(Statement::new(self.texts.floor.clone()), before), upto);
        self.run(IfUnanswered::Again, || range().bind(RETENTION_US)).await.map(drop)
    }
}

fn keyed<'q>(sql: &SqlStr, key: &Key<'q>) -> Statement<'q> {
    Statement::new(sql.clone()).bind(key.namespace).bind(key.family).bind(key.name).bind(key.slot)
}

fn placed<'q>(statement: Statement<'q>, place: &'q Place) -> Statement<'q> {
    statement.bind(place.namespace.as_slice()).bind(place.family.as_str()).bind(place.name.as_slice()).bind(place.slot)
}

fn place(row: &PgRow) -> Result<Place, sqlx::Error> {
    Ok(Place { namespace: row.try_get(0)?, family: row.try_get(1)?, name: row.try_get(2)?, slot: row.try_get(3)? })
}

/// A label as a text of PostgreSQL's, which cannot have a NUL. It is for people, who see that there was one.
fn without_nul(label: &str) -> String {
    label.replace('\0', "\u{FFFD}")
}
