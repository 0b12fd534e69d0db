//! A connection to MySQL or MariaDB: its settings, and making sure of the tables.

use std::{fmt, str::FromStr as _};

use lock_core::{BackendError, reexport::futures_util::TryStreamExt as _};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Either, Executor as _, MySql, MySqlConnection,
    SqlSafeStr as _, SqlStr,
    mysql::{MySqlArguments, MySqlConnectOptions},
    query::Query,
};

use crate::{
    mysql::fault,
    server::{
        Answer, PrepareError, Prepared, Server,
        config::{ServerConfig, config},
        fault::Fault,
        statement::{Statement, Value},
        tables::{Table, check_version},
        tls::{check_files, choose_cryptography},
    },
};

/// MySQL or MariaDB, and how it is reached.
pub(crate) struct MysqlServer {
    options: MySqlConnectOptions,
    shown: String,
    settings: SqlStr,
    schema: SqlStr,
    version: SqlStr,
}

impl MysqlServer {
    pub(crate) fn new(told: &ServerConfig) -> Result<Self, BackendError> {
        // The driver's words are about the URL's form, and quote nothing of it.
        let options = MySqlConnectOptions::from_str(&told.url)
            .map_err(|error| config(format!("the URL of {} is wrong: {error}", told.shown)))?
            .pipes_as_concat(false)
            .no_engine_substitution(false)
            .disable_statement_logging();
        choose_cryptography();
        check_files(&told.shown, options.to_url_lossy().query_pairs())?;
        // Nothing of the server's defaults is left to chance. UTC has no hour that comes twice; strict mode cuts nothing
        // off in silence; read committed locks the row that is written and no gap beside it, so that claims on other
        // names never wait for each other; and an abandoned statement ends after a second or so.
        let lock_timeout_s = told.lock_timeout.as_millis().div_ceil(1000);
        let settings = format!(
            "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,
                 innodb_lock_wait_timeout = {lock_timeout_s};
             SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        );
        let text = |sql| told.table.put_into(sql, QUOTE);
        Ok(MysqlServer {
            options,
            shown: told.shown.clone(),
            settings: AssertSqlSafe(settings).into_sql_str(),
            schema: text(include_str!("../../sql/schema.mysql.sql")),
            version: text(include_str!("../../sql/version.mysql.sql")),
        })
    }
}

/// The statement as the driver prepares it.
fn query(statement: Statement<'_>) -> Query<'_, MySql, MySqlArguments> {
    statement.values.into_iter().fold(sqlx::query(statement.sql), |query, value| match value {
        Value::Bytes(bytes) => query.bind(bytes),
        Value::Id(id) => query.bind(id),
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
    })
}

/// What is around a table's name.
const QUOTE: char = '`';

impl Server for MysqlServer {
    type Database = MySql;

    async fn connect(&self) -> Result<MySqlConnection, sqlx::Error> {
        let mut connection = MySqlConnection::connect_with(&self.options).await?;
        sqlx::raw_sql(self.settings.clone()).execute(&mut connection).await?;
        Ok(connection)
    }

    async fn read<'q>(
        &self,
        connection: &mut MySqlConnection,
        statement: Statement<'q>,
    ) -> Result<Answer<Self>, sqlx::Error> {
        let mut answer = Answer { rows: Vec::new(), done: Default::default() };
        let mut parts = connection.fetch_many(query(statement));
        while let Some(part) = parts.try_next().await? {
            match part {
                Either::Left(done) => answer.done = done,
                Either::Right(row) => answer.rows.push(row),
            }
        }
        Ok(answer)
    }

    async fn prepare(&self, connection: &mut MySqlConnection) -> Result<Prepared, PrepareError> {
        let version = || sqlx::query(self.version.clone()).bind(crate::schedule::PERIOD_US);
        let mut missing = false;
        let rows = match version().fetch_all(&mut *connection).await {
            // A user without rights is not told that a table is missing, only that it may not read it.
            Err(error) if matches!(fault::of(&error), Fault::NoTable | Fault::Denied) => {
                missing = true;
                let created = sqlx::raw_sql(self.schema.clone()).execute(&mut *connection).await;
                match version().fetch_all(connection).await {
                    Ok(rows) => rows,
                    // Why they could not be created says more than that they are missing.
                    Err(unusable) => return Err(created.err().unwrap_or(unusable).into()),
                }
            }
            other => other?,
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

impl fmt::Debug for MysqlServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options have the password.
        f.debug_struct("MysqlServer").field("server", &self.shown).finish_non_exhaustive()
    }
}

/// The texts of the statements, with the tables' names in them.
pub(crate) struct Texts {
    pub(crate) claim: SqlStr,
    pub(crate) extend: SqlStr,
    pub(crate) release: SqlStr,
    pub(crate) holders: SqlStr,
    pub(crate) turn: SqlStr,
    pub(crate) page: SqlStr,
    pub(crate) delete: SqlStr,
    pub(crate) floor: SqlStr,
}

impl Texts {
    pub(crate) fn of(table: &Table) -> Self {
        let text = |sql| table.put_into(sql, QUOTE);
        Texts {
            claim: text(include_str!("../../sql/claim.mysql.sql")),
            extend: text(include_str!("../../sql/extend.mysql.sql")),
            release: text(include_str!("../../sql/release.mysql.sql")),
            holders: text(include_str!("../../sql/holders.mysql.sql")),
            turn: text(include_str!("../../sql/sweep_turn.mysql.sql")),
            page: text(include_str!("../../sql/sweep_page.mysql.sql")),
            delete: text(include_str!("../../sql/sweep_delete.mysql.sql")),
            floor: text(include_str!("../../sql/sweep_floor.mysql.sql")),
        }
    }
}
