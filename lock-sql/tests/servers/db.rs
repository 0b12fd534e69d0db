//! A server with an administrator, whichever kind it is.

use std::sync::Arc;

use async_trait::async_trait;
use lock_sql::{ServerConfig, SqlBackend};
use sqlx::{AssertSqlSafe, MySqlConnection, PgConnection};

use crate::{
    mysql::{self, MariaProcess},
    postgres::{self, PgProcess},
};

/// A server of one test's own.
pub(crate) enum Db {
    Postgres(Arc<PgProcess>),
    Mysql(Arc<MariaProcess>),
}

pub(crate) fn postgres(settings: &'static [&'static str]) -> Db {
    Db::Postgres(PgProcess::start(settings).expect("PostgreSQL starts; scripts/test.sh installs it"))
}

pub(crate) fn mysql(settings: &'static [&'static str]) -> Db {
    Db::Mysql(MariaProcess::start(settings).expect("MariaDB starts; scripts/test.sh installs it"))
}

impl Db {
    pub(crate) fn url(&self) -> String {
        match self {
            Db::Postgres(process) => process.url(),
            Db::Mysql(process) => process.url(),
        }
    }

    /// The URL of another user and database.
    pub(crate) fn url_of(&self, user: &str, password: &str, database: &str) -> String {
        match self {
            Db::Postgres(process) => format!("postgres://{user}:{password}@{}/{database}", process.address()),
            Db::Mysql(process) => format!("mysql://{user}:{password}@{}/{database}", process.address()),
        }
    }

    pub(crate) fn config(&self) -> ServerConfig {
        ServerConfig::new(self.url()).expect("a good URL")
    }

    pub(crate) async fn backend(&self) -> SqlBackend {
        SqlBackend::server(&self.config()).await.expect("the server takes us")
    }

    pub(crate) async fn admin(&self) -> Box<dyn Admin> {
        match self {
            Db::Postgres(process) => Box::new(postgres::connect(&process.url()).await.expect("a connection")),
            Db::Mysql(process) => {
                let mut admin = mysql::connect(&process.url()).await.expect("a connection");
                // What the tests lock is rows, and no gaps beside them.
                admin.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
                Box::new(admin)
            }
        }
    }

    pub(crate) fn restart(&self) {
        match self {
            Db::Postgres(process) => {
                process.stop();
                process.start_again().expect("it starts again");
            }
            Db::Mysql(process) => {
                process.stop();
                process.start_again().expect("it starts again");
            }
        }
    }

    /// The server's clock in microseconds, as SQL.
    pub(crate) fn now(&self) -> &'static str {
        match self {
            Db::Postgres(_) => "(extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
            Db::Mysql(_) => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
        }
    }

    /// A text as bytes, as SQL.
    pub(crate) fn bytes(&self, text: &str) -> String {
        match self {
            Db::Postgres(_) => format!("'{text}'::bytea"),
            Db::Mysql(_) => format!("CAST('{text}' AS BINARY)"),
        }
    }
}

/// Someone with a database shell.
#[async_trait]
pub(crate) trait Admin: Send {
    async fn execute(&mut self, sql: &str);

    async fn number(&mut self, sql: &str) -> i64;

    /// Ends all other sessions, and says how many.
    async fn end_sessions(&mut self) -> u64;
}

#[async_trait]
impl Admin for PgConnection {
    async fn execute(&mut self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(self).await.expect(sql);
    }

    async fn number(&mut self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(self).await.expect(sql)
    }

    async fn end_sessions(&mut self) -> u64 {
        postgres::terminate_all(self).await.expect("an administrator may")
    }
}

#[async_trait]
impl Admin for MySqlConnection {
    async fn execute(&mut self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(self).await.expect(sql);
    }

    async fn number(&mut self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(self).await.expect(sql)
    }

    async fn end_sessions(&mut self) -> u64 {
        mysql::kill_all(self).await.expect("an administrator may")
    }
}
