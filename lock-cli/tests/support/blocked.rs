//! A store that answers no writer: the state in which renewals fail.

use sqlx::{Connection as _, SqliteConnection};
use tokio::runtime::Runtime;

use super::{Sandbox, runtime};

/// A write transaction that stays open, until it is let go.
#[derive(Debug)]
pub(crate) struct Blocked {
    runtime: Runtime,
    connection: SqliteConnection,
}

impl Blocked {
    /// From here on the sandbox's store can be read and not written.
    pub(crate) fn begin(sandbox: &Sandbox) -> Self {
        let runtime = runtime();
        let connection = runtime.block_on(async {
            let mut connection = SqliteConnection::connect(&sandbox.url()).await.expect("the store's file");
            sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await.expect("a transaction");
            connection
        });
        Blocked { runtime, connection }
    }

    /// Lets the store go on.
    pub(crate) fn end(self) {
        self.runtime.block_on(self.connection.close()).expect("closed");
    }
}
