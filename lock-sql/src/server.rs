//! What the backends of database servers have in common: connections, what errors mean, tables, clean-up.

pub(crate) mod config;
pub(crate) mod fault;
pub(crate) mod pool;
pub(crate) mod statement;
pub(crate) mod sweep;
pub(crate) mod tables;
pub(crate) mod tls;

use std::{fmt::Debug, future::Future};

use sqlx::Database;

use fault::Fault;
use statement::Statement;

/// A connection to a server.
pub(crate) type Connection<S> = <<S as Server>::Database as Database>::Connection;

/// All that a statement answers with.
pub(crate) struct Answer<S: Server> {
    pub(crate) rows: Vec<<S::Database as Database>::Row>,
    pub(crate) done: <S::Database as Database>::QueryResult,
}

/// A kind of server: what the connections need that differs between drivers.
pub(crate) trait Server: Debug + Send + Sync + 'static {
    type Database: Database;

    /// A new connection whose session has the settings that the statements rely on.
    fn connect(&self) -> impl Future<Output = Result<Connection<Self>, sqlx::Error>> + Send
    where
        Self: Sized;

    /// Runs a statement and reads its answer to the end, which is where a commit that fails is told.
    fn read<'q>(
        &self,
        connection: &mut Connection<Self>,
        statement: Statement<'q>,
    ) -> impl Future<Output = Result<Answer<Self>, sqlx::Error>> + Send
    where
        Self: Sized;

    /// Creates the tables where they are missing, and checks their version.
    fn prepare(&self, connection: &mut Connection<Self>) -> impl Future<Output = Result<Prepared, PrepareError>> + Send
    where
        Self: Sized;

    /// What the server's error means.
    fn fault(error: &sqlx::Error) -> Fault;

    /// The server as messages name it, without a password.
    fn shown(&self) -> &str;
}

/// Tables that can be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    /// They were missing.
    pub(crate) created: bool,
    pub(crate) sweep_is_due: bool,
}

/// Why the tables cannot be used.
#[derive(Debug)]
pub(crate) enum PrepareError {
    /// The server said so.
    Sql(sqlx::Error),
    /// They are not what they should be.
    Refused(String),
}

impl From<sqlx::Error> for PrepareError {
    fn from(error: sqlx::Error) -> Self {
        PrepareError::Sql(error)
    }
}
