//! A server that takes no writes for a while, as one does that was a primary and will be one again.

use std::time::Duration;

use lock_core::{Backend as _, BackendErrorKind, LockClient};
use lock_sql::{ServerConfig, SqlBackend};

use crate::{
    LEASE, claim,
    db::{Admin, Db},
    granted,
};

super::on_both!(what_is_held_outlives_a_time_without_writes, a_server_that_takes_no_writes_from_the_start_is_told);

/// Has the server take writes of those who are no administrators, or none.
async fn set_read_only(db: &Db, admin: &mut dyn Admin, on: bool) {
    let value = if on { "on" } else { "off" };
    match db {
        Db::Postgres(_) => {
            admin.execute(&format!("ALTER SYSTEM SET default_transaction_read_only = {value}")).await;
            admin.execute("SELECT pg_reload_conf()").await;
        }
        Db::Mysql(_) => admin.execute(&format!("SET GLOBAL read_only = {value}")).await,
    }
}

async fn user(db: &Db, admin: &mut dyn Admin) -> ServerConfig {
    let (grant, database) = match db {
        Db::Postgres(_) => ("GRANT ALL ON SCHEMA public TO shop", "postgres"),
        Db::Mysql(_) => ("GRANT ALL ON leasehold.* TO shop", "leasehold"),
    };
    admin.execute("CREATE USER shop").await;
    admin.execute(grant).await;
    ServerConfig::new(db.url_of("shop", "", database)).expect("a good URL")
}

async fn what_is_held_outlives_a_time_without_writes(db: &Db) {
    let mut admin = db.admin().await;
    let config = user(db, &mut *admin).await;
    let backend = SqlBackend::server(&config).await.expect("the server takes us");
    let client = LockClient::builder(SqlBackend::server(&config).await.expect("the server takes us"));
    let client = client.lease(LEASE).build().expect("a client");
    let guard = client.lock("held").acquire().await.expect("free");

    set_read_only(db, &mut *admin, true).await;
    let refused = async {
        loop {
            // The server reads its new settings in its own time.
            match backend.attempt(&claim("new")).await {
                Err(error) => return error,
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let error = tokio::time::timeout(LEASE, refused).await.expect("it is refused");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("takes no writes now"), "{error}");
    guard.extend(LEASE * 2).await.expect_err("nothing is written");
    assert!(guard.is_held(), "the lease goes on");
    let waiter = tokio::spawn(client.lock("other").wait(LEASE).acquire());
    tokio::time::sleep(Duration::from_millis(300)).await;

    set_read_only(db, &mut *admin, false).await;
    let served = tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic");
    served.expect("granted").release().await.expect("release");
    guard.extend(LEASE * 2).await.expect("still its own");
    guard.release().await.expect("release");
    granted(&backend, &claim("held")).await;
}

async fn a_server_that_takes_no_writes_from_the_start_is_told(db: &Db) {
    let mut admin = db.admin().await;
    let config = user(db, &mut *admin).await;
    set_read_only(db, &mut *admin, true).await;
    let refused = async {
        loop {
            match SqlBackend::server(&config).await {
                Err(error) => return error,
                Ok(_) => {
                    admin.execute("DROP TABLE IF EXISTS leasehold_locks").await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    };
    let error = tokio::time::timeout(LEASE, refused).await.expect("it is refused");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("name the primary server"), "{error}");
}
