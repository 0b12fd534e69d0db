//! A store that answers no writer: the state in which renewals fail, and one that a stopped process can bring about.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::runtime::Runtime;

use super::{Running, Sandbox, runtime, state, until};

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

    /// When the claim on a lock ends, by the store's clock. Nobody can move it now.
    pub(crate) fn expires(&mut self, name: &str) -> SystemTime {
        let query = sqlx::query_scalar("SELECT expires FROM leasehold_locks WHERE name = ?1").bind(name.as_bytes());
        let expires_us: i64 = self.runtime.block_on(query.fetch_one(&mut self.connection)).expect("a row");
        UNIX_EPOCH + Duration::from_micros(expires_us.unsigned_abs())
    }

    /// Lets the store go on.
    pub(crate) fn end(self) {
        self.runtime.block_on(self.connection.close()).expect("closed");
    }
}

/// Stops a process at a moment when it is not writing to the store.
///
/// One that is stopped in the middle of a write keeps all others from writing until it goes on: that is how SQLite
/// locks its file, and not what these tests are about.
pub(crate) fn stop_between_writes(sandbox: &Sandbox, running: &Running) {
    until("it is stopped between two writes", || {
        running.signal(Signal::STOP);
        until("it is stopped", || state(running.pid()) == Some('T'));
        let writable = is_writable(sandbox);
        if !writable {
            running.signal(Signal::CONT);
        }
        writable
    });
}

fn is_writable(sandbox: &Sandbox) -> bool {
    let options = SqliteConnectOptions::new().filename(sandbox.path("locks.db"));
    runtime().block_on(async {
        // Far longer than any write of a process that runs, and far shorter than any lease here.
        let options = options.busy_timeout(Duration::from_millis(100));
        let mut connection = SqliteConnection::connect_with(&options).await.expect("the store's file");
        let writable = sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await.is_ok();
        connection.close().await.expect("closed");
        writable
    })
}
