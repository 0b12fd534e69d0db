//! A server that takes no more connections: what is held stays held, and others are told, and served when there is room.

use std::time::Duration;

use conformance_tests::assert_warns;
use lock_core::{Backend as _, BackendErrorKind, LockClient, Namespace, Usage};
use lock_sql::{ServerConfig, SqlBackend};
use sqlx::{Connection as _, MySqlConnection, PgConnection};

use crate::{LEASE, db::Db};

/// What administrators have left: both servers keep connections for them.
fn crowded(db: &Db) -> (ServerConfig, String) {
    let database = if matches!(db, Db::Postgres(_)) { "postgres" } else { "leasehold" };
    let url = db.url_of("shop", "", database);
    (ServerConfig::new(&url).expect("a good URL").max_connections(1), url)
}

/// Takes connections until the server gives no more. Dropping them gives them back.
async fn take_all(db: &Db, url: &str) -> Vec<Box<dyn Send>> {
    let mut taken: Vec<Box<dyn Send>> = Vec::new();
    loop {
        let connection: Result<Box<dyn Send>, sqlx::Error> = match db {
            Db::Postgres(_) => PgConnection::connect(url).await.map(|connection| Box::new(connection) as _),
            Db::Mysql(_) => MySqlConnection::connect(url).await.map(|connection| Box::new(connection) as _),
        };
        match connection {
            Ok(connection) => taken.push(connection),
            Err(error) => {
                assert!(error.to_string().contains("connection") && !taken.is_empty(), "{error}");
                return taken;
            }
        }
    }
}

async fn what_is_held_stays_held_and_others_are_served_when_there_is_room(db: &Db) {
    let mut admin = db.admin().await;
    db.backend().await.close().await;
    match db {
        Db::Postgres(_) => {
            admin.execute("CREATE USER shop").await;
            admin.execute("GRANT ALL ON leasehold_locks, leasehold_schema TO shop").await;
        }
        Db::Mysql(_) => {
            admin.execute("CREATE USER shop").await;
            admin.execute("GRANT ALL ON leasehold.* TO shop").await;
        }
    }
    let (config, url) = crowded(db);
    let backend = SqlBackend::server(&config).await.expect("there is room");
    let lease = Duration::from_secs(6);
    let holder = LockClient::builder(backend).lease(lease).build().expect("a client");
    let guard = holder.lock("job").acquire().await.expect("free");
    let taken = take_all(db, &url).await;

    let error = SqlBackend::server(&config).await.expect_err("there is no room");
    assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("does not serve now"), "{error}");
    // It is renewed on the connection that its client has.
    tokio::time::sleep(lease + Duration::from_secs(1)).await;
    assert!(guard.is_held());
    guard.extend(LEASE).await.expect("still its own");
    // An administrator comes in, and is told.
    let told = db.backend().await.check(&Usage::new(Namespace::default(), LEASE)).await.expect("an answer");
    assert_warns(&told, "connections", "are used");

    // Its other locks need no other connection, and a waiter does without notifications.
    holder.lock("other").acquire().await.expect("free").release().await.expect("release");
    let waiter = tokio::spawn(holder.lock("job").wait(LEASE).acquire());
    tokio::time::sleep(Duration::from_millis(300)).await;
    guard.release().await.expect("release");
    let guard = tokio::time::timeout(LEASE, waiter).await.expect("served").expect("no panic").expect("granted");
    drop(taken);
    let again = async {
        loop {
            match SqlBackend::server(&config).await {
                Ok(backend) => return backend,
                Err(error) => assert_eq!(error.kind(), BackendErrorKind::Unavailable, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LEASE, again).await.expect("there is room again");
    guard.release().await.expect("release");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_without_room_keeps_what_is_held() {
    let db = crate::db::postgres(&["max_connections=12", "superuser_reserved_connections=2"]);
    what_is_held_stays_held_and_others_are_served_when_there_is_room(&db).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_without_room_keeps_what_is_held() {
    // One more is kept for an administrator, which the tests' own connection has: `check` here needs a second.
    let db = crate::db::mysql(&["--max-connections=12"]);
    what_is_held_stays_held_and_others_are_served_when_there_is_room(&db).await;
}
