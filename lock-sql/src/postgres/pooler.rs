//! Whether a pooler is between that gives each transaction another session.

use std::time::Duration;

use lock_core::Finding;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

const RULE: &str = "pooler";

/// How often two connections are compared: what others do at a pooler meanwhile may part them.
const ROUNDS: u32 = 5;

/// How the server is reached, for two connections that are made to be compared.
pub(crate) struct Pooler {
    pub(crate) options: PgConnectOptions,
    pub(crate) limit: Duration,
    pub(crate) listens: bool,
}

impl Pooler {
    /// What is between us and the server, which said that it listens on this port; 0 is a local socket.
    pub(crate) async fn find(&self, port: i64) -> Finding {
        let shared = tokio::time::timeout(self.limit, shares_sessions(&self.options)).await;
        let shared = matches!(shared, Ok(Ok(true)));
        let dialled = self.options.get_port();
        // A port that was mapped looks the same as a pooler's.
        let mapped = port != 0 && port != i64::from(dialled);
        match (self.listens, shared) {
            (true, true) => Finding::warning(
                RULE,
                "a pooler is between that gives each transaction another session: no notification arrives, and prepared \
                 statements fail unless it follows them",
                "add listen=off to the URL",
            ),
            (false, true) => Finding::good(
                RULE,
                "a pooler is between that gives each transaction another session, and listen is off: statements are \
                 written out, and waiters poll",
            ),
            (false, false) => {
                Finding::good(RULE, "listen is off: waiters poll, as behind a transaction pooler they must")
            }
            (true, false) if mapped => Finding::note(
                RULE,
                format!(
                    "port {dialled} was dialled and the server listens on {port}: if that is a pooler in transaction \
                     mode, add listen=off to the URL"
                ),
            ),
            (true, false) => Finding::good(RULE, "no pooler is seen between; waiters are woken by notifications"),
        }
    }
}

/// Whether two connections that are there at once are served by one session: nothing but a pooler does that, and only
/// one that takes the session back after each transaction.
async fn shares_sessions(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut one = PgConnection::connect_with(options).await?;
    let mut other = PgConnection::connect_with(options).await?;
    let mut shared = false;
    for _ in 0..ROUNDS {
        shared = shared || session(&mut one).await? == session(&mut other).await?;
    }
    one.close().await?;
    other.close().await?;
    Ok(shared)
}

async fn session(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    // As one message: a prepared statement might not be found again.
    let row = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?;
    sqlx::Row::try_get(&row, 0)
}
