//! A connection to PostgreSQL: its settings, and making sure of the tables.

use std::{fmt, str::FromStr as _};

use lock_core::{BackendError, reexport::futures_util::TryStreamExt as _};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Either, Executor as _, PgConnection, Postgres,
    SqlSafeStr as _, SqlStr, postgres::PgConnectOptions,
};

use crate::{
    postgres::{fault, statement},
    server::{
        Answer, PrepareError, Prepared, Server,
        config::{ServerConfig, config},
        fault::Fault,
        statement::Statement,
        tables::{Table, check_version},
        tls::{check_files, choose_cryptography},
    },
};

/// PostgreSQL, and how it is reached.
pub(crate) struct PgServer {
    options: PgConnectOptions,
    shown: String,
    sessions: Sessions,
    schema: SqlStr,
    version: SqlStr,
}

/// For how long a session is ours.
enum Sessions {
    /// As long as the connection, which tells it its settings at the beginning.
    Ours { settings: SqlStr },
    /// For one transaction; the next one may have another. Statements are written out, behind their settings.
    OfOneTransaction { before: String },
}

impl PgServer {
    pub(crate) fn new(told: &ServerConfig) -> Result<Self, BackendError> {
        // The driver's words are about the URL's form, and quote nothing of it.
        let options = PgConnectOptions::from_str(&told.url)
            .map_err(|error| config(format!("the URL of {} is wrong: {error}", told.shown)))?
            // A setting of the session that is for fractions, which no statement reads, and that poolers refuse.
            .extra_float_digits(None)
            .disable_statement_logging();
        choose_cryptography();
        check_files(&told.shown, options.to_url_lossy().query_pairs())?;
        let lock_timeout_ms = told.lock_timeout.as_millis();
        // Read committed, whatever the server's default: a claim then waits for a row's last version and decides by
        // that, where a snapshot would make it fail. The keepalives end the sessions of clients that are gone.
        let sessions = if told.listens {
            let settings = format!(
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
                 SET lock_timeout = {lock_timeout_ms};
                 SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
            );
            Sessions::Ours { settings: AssertSqlSafe(settings).into_sql_str() }
        } else {
            // Statements in one message are one transaction, which these are the settings of and which ends with them.
            let before = format!(
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {lock_timeout_ms};\n"
            );
            Sessions::OfOneTransaction { before }
        };
        let text = |sql| told.table.put_into(sql, QUOTE);
        Ok(PgServer {
            options,
            shown: told.shown.clone(),
            sessions,
            schema: text(include_str!("../../sql/schema.postgres.sql")),
            version: text(include_str!("../../sql/version.postgres.sql")),
        })
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }
}

/// What is around a table's name.
pub(crate) const QUOTE: char = '"';

impl Server for PgServer {
    type Database = Postgres;

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.options).await?;
        if let Sessions::Ours { settings } = &self.sessions {
            sqlx::raw_sql(settings.clone()).execute(&mut connection).await?;
        }
        Ok(connection)
    }

    async fn read<'q>(
        &self,
        connection: &mut PgConnection,
        statement: Statement<'q>,
    ) -> Result<Answer<Self>, sqlx::Error> {
        let mut answer = Answer { rows: Vec::new(), done: Default::default() };
        let mut parts = match &self.sessions {
            Sessions::Ours { .. } => connection.fetch_many(statement::prepared(statement)),
            Sessions::OfOneTransaction { before } => {
                connection.fetch_many(sqlx::raw_sql(statement::written_out(before, &statement)))
            }
        };
        while let Some(part) = parts.try_next().await? {
            match part {
                Either::Left(done) => answer.done = done,
                Either::Right(row) => answer.rows.push(row),
            }
        }
        Ok(answer)
    }

    async fn prepare(&self, connection: &mut PgConnection) -> Result<Prepared, PrepareError> {
        let version = || Statement::new(self.version.clone()).bind(crate::schedule::PERIOD_US);
        let mut missing = false;
        let rows = match self.read(connection, version()).await {
            Err(error) if fault::of(&error) == Fault::NoTable => {
                missing = true;
                let created = sqlx::raw_sql(self.schema.clone()).execute(&mut *connection).await;
                match self.read(connection, version()).await {
                    Ok(answer) => answer.rows,
                    // Why they could not be created says more than that they are missing.
                    Err(unusable) => return Err(created.err().unwrap_or(unusable).into()),
                }
            }
            other => other?.rows,
        };
        let sweep_is_due = check_version(&self.shown, rows.first())?;
        Ok(Prepared { created: missing, sweep_is_due })
    }

    fn fault(error: &sqlx::Error) -> Fault {
        fault::of(error)
    }

    fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for PgServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options have the password.
        f.debug_struct("PgServer").field("server", &self.shown).finish_non_exhaustive()
    }
}

/// The texts of the statements, with the tables' names in them.
pub(crate) struct Texts {
    pub(crate) claim: SqlStr,
    pub(crate) extend: SqlStr,
    pub(crate) release: SqlStr,
    pub(crate) holders: SqlStr,
    pub(crate) watch: SqlStr,
    pub(crate) check: SqlStr,
    pub(crate) clock: SqlStr,
    pub(crate) turn: SqlStr,
    pub(crate) page: SqlStr,
    pub(crate) delete: SqlStr,
    pub(crate) floor: SqlStr,
}

impl Texts {
    pub(crate) fn of(table: &Table) -> Self {
        let text = |sql| table.put_into(sql, QUOTE);
        Texts {
            claim: text(include_str!("../../sql/claim.postgres.sql")),
            extend: text(include_str!("../../sql/extend.postgres.sql")),
            release: text(include_str!("../../sql/release.postgres.sql")),
            holders: text(include_str!("../../sql/holders.postgres.sql")),
            watch: text(include_str!("../../sql/watch.postgres.sql")),
            check: text(include_str!("../../sql/check.postgres.sql")),
            clock: text(include_str!("../../sql/clock.postgres.sql")),
            turn: text(include_str!("../../sql/sweep_turn.postgres.sql")),
            page: text(include_str!("../../sql/sweep_page.postgres.sql")),
            delete: text(include_str!("../../sql/sweep_delete.postgres.sql")),
            floor: text(include_str!("../../sql/sweep_floor.postgres.sql")),
        }
    }
}
