//! Idle rows go, and their tokens are never given twice.

use std::time::Duration;

use lock_core::{Backend as _, FencingToken};

use crate::{
    claim,
    db::{Admin, Db},
    granted,
};

super::on_both!(idle_rows_go_and_the_next_token_is_above_theirs, more_rows_than_a_page_go_and_the_held_ones_stay);

async fn until(admin: &mut dyn Admin, sql: &str, wanted: i64) {
    let reached = async {
        while admin.number(sql).await != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.expect(sql);
}

/// Makes the tables, and has nobody look for idle rows until the test wants it.
async fn undisturbed(db: &Db, admin: &mut dyn Admin) {
    db.backend().await.close().await;
    admin.execute(&format!("UPDATE leasehold_schema SET swept = {}", db.now())).await;
}

/// A sweep, as the first claim of a client makes it when none was lately.
async fn sweep(db: &Db, admin: &mut dyn Admin) {
    admin.execute("UPDATE leasehold_schema SET swept = 0").await;
    let backend = db.backend().await;
    granted(&backend, &claim(&format!("sweeper{}", a_number()))).await;
    until(admin, "SELECT count(*) FROM leasehold_schema WHERE swept = 0", 0).await;
}

/// A number that no other call gives.
fn a_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

async fn idle_rows_go_and_the_next_token_is_above_theirs(db: &Db) {
    let mut admin = db.admin().await;
    undisturbed(db, &mut *admin).await;
    let backend = db.backend().await;
    let (idle, held) = (claim("idle"), claim("held"));
    granted(&backend, &idle).await;
    granted(&backend, &held).await;
    backend.release(&idle).await.expect("release");
    // Two days ago, when the clock was a year ahead: the token is far above what the clock gives now.
    admin
        .execute(
            "UPDATE leasehold_locks SET expires = expires - 172800000000, token = token + 31536000000000
             WHERE claim IS NULL",
        )
        .await;
    let name = db.bytes("idle");
    let last = admin.number(&format!("SELECT token FROM leasehold_locks WHERE name = {name}")).await;
    let row = format!("SELECT count(*) FROM leasehold_locks WHERE name = {name}");

    sweep(db, &mut *admin).await;
    until(&mut *admin, &format!("SELECT count(*) FROM leasehold_schema WHERE floor = {last}"), 1).await;
    assert_eq!(admin.number(&row).await, 1, "the first sweep only raises the floor");
    sweep(db, &mut *admin).await;
    until(&mut *admin, &row, 0).await;

    let token = granted(&backend, &claim("idle")).await.token;
    assert!(token > FencingToken::new(last.unsigned_abs()), "{token} is not above {last}");
    assert!(crate::is_busy(&backend, &claim("held")).await);
}

async fn more_rows_than_a_page_go_and_the_held_ones_stay(db: &Db) {
    let mut admin = db.admin().await;
    undisturbed(db, &mut *admin).await;
    let backend = db.backend().await;
    let held = claim("n500");
    granted(&backend, &held).await;
    let (empty, name) = match db {
        Db::Postgres(_) => ("''::bytea", "convert_to('n' || i, 'UTF8')"),
        Db::Mysql(_) => ("''", "CAST(CONCAT('n', i) AS BINARY)"),
    };
    admin
        .execute(&format!(
            "INSERT INTO leasehold_locks (namespace, family, name, slot, token, expires)
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
             SELECT {empty}, 'lock', {name}, k, 1000 + i, 1 FROM n, (SELECT 1 AS k UNION ALL SELECT 2) AS slots"
        ))
        .await;
    let idle = "SELECT count(*) FROM leasehold_locks WHERE claim IS NULL";
    assert_eq!(admin.number(idle).await, 2000);
    sweep(db, &mut *admin).await;
    until(&mut *admin, "SELECT count(*) FROM leasehold_schema WHERE floor = 1999", 1).await;
    sweep(db, &mut *admin).await;
    until(&mut *admin, idle, 0).await;
    assert!(crate::is_busy(&backend, &claim("n500")).await);
}
