//! A table of SQLite that refuses a late writer (L13): what README promises, with a real table.
#![cfg(feature = "sqlite")]

use std::time::Duration;

use leasehold::{FencingToken, Renew};
use sqlx::{Connection as _, SqliteConnection};

/// Writes unless a later holder has written before; one statement, so that nothing comes between check and write.
async fn write(table: &mut SqliteConnection, total: i64, token: FencingToken) -> bool {
    let token = i64::try_from(token.get()).expect("tokens fit");
    let update = sqlx::query("UPDATE ledger SET total = ?1, fence = ?2 WHERE id = 1 AND fence <= ?2");
    update.bind(total).bind(token).execute(table).await.expect("the table answers").rows_affected() == 1
}

#[tokio::test]
async fn a_table_refuses_the_late_write_of_a_paused_holder() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite:{}", directory.path().join("locks.db").display());
    let mut table = SqliteConnection::connect("sqlite::memory:").await.expect("a table's database");
    sqlx::raw_sql(
        "CREATE TABLE ledger (id INTEGER PRIMARY KEY, total INTEGER, fence INTEGER); INSERT INTO ledger VALUES (1, 0, 0)",
    )
    .execute(&mut table)
    .await
    .expect("a table");
    let (slow, quick) = (leasehold::connect(&url).await.expect("open"), leasehold::connect(&url).await.expect("open"));
    let lease = Duration::from_millis(300);
    let mut refused = 0;
    for round in 1..=3 {
        let late = slow.lock("ledger").lease(lease).renew(Renew::Off).acquire().await.expect("free");
        assert!(write(&mut table, round, late.fencing_token()).await);
        // The slow holder is paused here: it neither renews nor looks.
        let next = quick.lock("ledger").wait(Duration::from_secs(30)).acquire().await.expect("the lease runs out");
        assert!(write(&mut table, round * 10, next.fencing_token()).await);
        refused += u32::from(!write(&mut table, -1, late.fencing_token()).await);
        assert!(!late.is_held());
        next.release().await.expect("held");
        let total: i64 = sqlx::query_scalar("SELECT total FROM ledger").fetch_one(&mut table).await.expect("a row");
        assert_eq!(total, round * 10, "the late write is not there");
    }
    assert_eq!(refused, 3, "every late write was refused");
}
