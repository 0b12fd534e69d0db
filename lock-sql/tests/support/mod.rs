//! What is really in an SQLite store, read through a connection that the backend knows nothing of.

use std::path::Path;

use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions};

/// A second connection to a store's file.
#[derive(Debug)]
pub(crate) struct Oracle {
    connection: SqliteConnection,
}

/// A row of the locks' table as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) namespace: Vec<u8>,
    pub(crate) family: String,
    pub(crate) name: Vec<u8>,
    /// The claim's id as hexadecimal digits; None in a free row.
    pub(crate) claim: Option<String>,
    pub(crate) token: i64,
    pub(crate) since_us: Option<i64>,
    pub(crate) expires_us: i64,
    pub(crate) host: Option<String>,
    pub(crate) label: Option<String>,
}

impl Oracle {
    pub(crate) async fn open(path: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        Oracle { connection: options.connect().await.expect("the oracle opens the file") }
    }

    /// All rows, held or not, in the order of the primary key.
    pub(crate) async fn rows(&mut self) -> Vec<Row> {
        let sql = "SELECT namespace, family, name, lower(hex(claim)), token, since, expires, host, label, claim IS NULL
            FROM leasehold_locks ORDER BY namespace, family, name, slot";
        let rows = sqlx::query(sql).fetch_all(&mut self.connection).await.expect("the oracle reads the rows");
        rows.iter()
            .map(|row| Row {
                namespace: row.get(0),
                family: row.get(1),
                name: row.get(2),
                claim: (!row.get::<bool, _>(9)).then(|| row.get(3)),
                token: row.get(4),
                since_us: row.get(5),
                expires_us: row.get(6),
                host: row.get(7),
                label: row.get(8),
            })
            .collect()
    }

    /// The one row of this name, if it is there.
    pub(crate) async fn row(&mut self, name: &str) -> Option<Row> {
        self.rows().await.into_iter().find(|row| row.name == name.as_bytes())
    }

    /// The store's clock.
    pub(crate) async fn now_us(&mut self) -> i64 {
        self.number("SELECT CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000").await
    }

    /// The number that a query answers with.
    pub(crate) async fn number(&mut self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.connection).await.expect("the oracle asks")
    }

    /// Does to the file what someone with a database shell could.
    pub(crate) async fn execute(&mut self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut self.connection).await.expect("the oracle writes");
    }

    /// Closes the connection, so that nothing of it is left when the file is looked at.
    pub(crate) async fn close(self) {
        self.connection.close().await.expect("the oracle closes");
    }
}
