//! MySQL and MariaDB: the statements on a pool of connections. Waiters ask again and again.
//!
//! MySQL has no RETURNING, and a count of rows says nothing about who wrote them: a statement answers by the number that
//! it leaves as its last insert id, which the row's own expressions compute.

mod check;
mod fault;
mod session;

use std::{fmt, sync::Arc, time::SystemTime};

use async_trait::async_trait;
use lock_core::{BackendError, Capabilities, ClaimId, Finding, Usage};
use sqlx::{Row as _, SqlStr, mysql::MySqlRow};

use crate::{
    capabilities,
    dialect::{ClaimRow, ClaimedRow, Dialect, Key, WasInForce},
    mysql::session::{MysqlServer, Texts},
    rows::{HolderRow, holder_row, id_bytes},
    schedule::{PERIOD_US, Place, RETENTION_US, Schedule},
    server::{
        Answer,
        config::ServerConfig,
        pool::{IfUnanswered, Pool},
        statement::Statement,
        sweep::{self, PAGE_ROWS, Sweep},
    },
    units::NameRange,
};

/// One backend's connections to a MySQL or MariaDB server.
pub(crate) struct Mysql {
    store: Arc<Store>,
    capabilities: Capabilities,
    schedule: Schedule,
    table: String,
}

struct Store {
    pool: Pool<MysqlServer>,
    texts: Texts,
}

impl Mysql {
    /// Connects, and creates the tables where they are missing.
    pub(crate) async fn open(config: &ServerConfig) -> Result<Self, BackendError> {
        let pool = Pool::new(MysqlServer::new(config)?, config);
        let store = Arc::new(Store { pool, texts: Texts::of(&config.table) });
        let schedule = Schedule::default();
        schedule.set(store.pool.open().await?);
        Ok(Mysql { store, capabilities: capabilities::of_mysql(), schedule, table: config.table.as_str().to_owned() })
    }
}

impl Store {
    /// Runs a statement that answers with a number: what it left as its last insert id, or 0.
    async fn number<'q>(
        &self,
        unanswered: IfUnanswered,
        statement: impl Fn() -> Statement<'q>,
    ) -> Result<u64, BackendError> {
        Ok(self.pool.run(unanswered, statement).await?.done.last_insert_id())
    }

    /// Runs a statement that answers with rows.
    async fn rows<'q, T>(
        &self,
        statement: impl Fn() -> Statement<'q>,
        read: impl Fn(&MySqlRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, BackendError> {
        let Answer { rows, .. } = self.pool.run(IfUnanswered::Again, statement).await?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| self.pool.error(error))
    }
}

impl fmt::Debug for Mysql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mysql").field("pool", &self.store.pool).finish_non_exhaustive()
    }
}

#[async_trait]
impl Dialect for Mysql {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn claim(&self, row: &ClaimRow<'_>) -> Result<Option<ClaimedRow>, BackendError> {
        let statement = || {
            keyed(Statement::new(self.store.texts.claim.clone()), &row.key)
                .bind(id_bytes(row.claim))
                .bind(row.min_token)
                .bind(row.lease_us)
                .bind(row.host)
                .bind(i64::from(row.pid))
                .bind(row.label)
                .bind(row.lease_us)
                .bind(row.lease_us)
        };
        let token = self.store.number(IfUnanswered::Again, statement).await?;
        if self.schedule.is_due() {
            sweep::spawn(Arc::clone(&self.store));
        }
        // Every clock that the statement read is later than the sending, from which a grant counts (L3): the row has at
        // least the lease from there.
        let claimed = ClaimedRow { claim: row.claim, token, remaining_us: row.lease_us };
        Ok((token > 0).then_some(claimed))
    }

    async fn extend(&self, key: &Key<'_>, claim: ClaimId, lease_us: i64) -> Result<Option<i64>, BackendError> {
        let statement =
            || keyed(Statement::new(self.store.texts.extend.clone()).bind(lease_us), key).bind(id_bytes(claim));
        let remaining = self.store.number(IfUnanswered::Again, statement).await?;
        Ok(i64::try_from(remaining).ok().filter(|us| *us > 0))
    }

    async fn release(&self, key: &Key<'_>, claim: ClaimId) -> Result<WasInForce, BackendError> {
        let statement = || keyed(Statement::new(self.store.texts.release.clone()), key).bind(id_bytes(claim));
        let found = self.store.number(IfUnanswered::Tell, statement).await?;
        Ok(if found == 2 { WasInForce::Yes } else { WasInForce::No })
    }

    async fn holders(&self, range: &NameRange<'_>) -> Result<Vec<HolderRow>, BackendError> {
        let statement = || {
            Statement::new(self.store.texts.holders.clone())
                .bind(range.namespace)
                .bind(range.kind.family().as_bytes())
                .bind(range.first)
                .bind(range.end.as_slice())
        };
        self.store.rows(statement, holder_row).await
    }

    async fn check(&self, _usage: &Usage) -> Result<Vec<Finding>, BackendError> {
        check::check(&self.store, &self.table).await
    }

    async fn wall_clock(&self) -> Result<Option<SystemTime>, BackendError> {
        check::wall_clock(&self.store).await.map(Some)
    }

    fn take_created(&self) -> Option<String> {
        self.store.pool.take_created(&self.table)
    }

    async fn close(&self) {
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
        let floor = self.number(IfUnanswered::Tell, statement).await?;
        Ok(i64::try_from(floor).ok().filter(|floor| *floor > 0).map(|floor| floor - 1))
    }

    async fn page(&self, before: &Place) -> Result<Option<Place>, BackendError> {
        let statement = || placed(query(&self.texts.page), before).bind(PAGE_ROWS - 1);
        Ok(self.rows(statement, place).await?.pop())
    }

    async fn delete(&self, before: &Place, upto: &Place, floor: i64) -> Result<(), BackendError> {
        let range = || placed(placed(query(&self.texts.delete), before), upto);
        self.number(IfUnanswered::Again, || range().bind(RETENTION_US).bind(floor)).await.map(drop)
    }

    async fn raise_floor(&self, before: &Place, upto: &Place) -> Result<(), BackendError> {
        let range = || placed(placed(query(&self.texts.floor), before), upto);
        self.number(IfUnanswered::Again, || range().bind(RETENTION_US)).await.map(drop)
    }
}

fn query<'q>(sql: &SqlStr) -> Statement<'q> {
    Statement::new(sql.clone())
}

fn keyed<'q>(statement: Statement<'q>, key: &Key<'q>) -> Statement<'q> {
    statement.bind(key.namespace).bind(key.family.as_bytes()).bind(key.name).bind(key.slot)
}

/// A place as the order of rows that is written out wants it: its first column, its first two, its first three, and all.
fn placed<'q>(mut statement: Statement<'q>, place: &'q Place) -> Statement<'q> {
    for columns in 1..=4 {
        statement = statement.bind(place.namespace.as_slice());
        if columns > 1 {
            statement = statement.bind(place.family.as_bytes());
        }
        if columns > 2 {
            statement = statement.bind(place.name.as_slice());
        }
        if columns > 3 {
            statement = statement.bind(place.slot);
        }
    }
    statement
}

fn place(row: &MySqlRow) -> Result<Place, sqlx::Error> {
    let family = String::from_utf8_lossy(&row.try_get::<Vec<u8>, _>(1)?).into_owned();
    Ok(Place { namespace: row.try_get(0)?, family, name: row.try_get(2)?, slot: row.try_get(3)? })
}
