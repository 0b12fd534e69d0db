//! A holder that was paused past its lease, and a table that refuses its late write.
//!
//! A lock alone cannot stop it: it was stopped between asking its guard and writing. The table can, since it keeps the
//! largest fencing token that it has seen. `cargo run --example fencing --features sqlite`

use std::{error::Error, time::Duration};

use leasehold::Renew;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let table = SqliteConnectOptions::new().filename(directory.path().join("ledger.db")).create_if_missing(true);
    let mut table = table.connect().await?;
    sqlx::raw_sql("CREATE TABLE ledger (id INTEGER PRIMARY KEY, total INTEGER, fence INTEGER)")
        .execute(&mut table)
        .await?;
    sqlx::raw_sql("INSERT INTO ledger VALUES (1, 0, 0)").execute(&mut table).await?;

    let url = format!("sqlite:{}", directory.path().join("locks.db").display());
    let (ours, theirs) = (leasehold::connect(&url).await?, leasehold::connect(&url).await?);

    let lease = Duration::from_millis(300);
    let paused = ours.lock("ledger").lease(lease).renew(Renew::Off).acquire().await?;
    println!("the first holder has token {} and is paused before it writes", paused.fencing_token());
    let next = theirs.lock("ledger").acquire().await?;
    println!("its lease has run out; the next holder has token {}", next.fencing_token());

    assert!(write(&mut table, 200, next.fencing_token().get()).await?);
    println!("the next holder writes 200");
    assert!(!write(&mut table, 100, paused.fencing_token().get()).await?);
    println!("the first one continues and writes 100: the table refuses it");

    next.release().await?;
    table.close().await?;
    Ok(())
}

/// Writes unless a later holder has written before. One statement, so that nothing comes between check and write.
async fn write(table: &mut SqliteConnection, total: i64, token: u64) -> Result<bool, Box<dyn Error>> {
    let token = i64::try_from(token)?;
    let update = sqlx::query("UPDATE ledger SET total = ?1, fence = ?2 WHERE id = 1 AND fence <= ?2");
    Ok(update.bind(total).bind(token).execute(table).await?.rows_affected() == 1)
}
