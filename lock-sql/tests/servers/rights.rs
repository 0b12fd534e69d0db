//! Users with too few rights or a wrong password: what they are told, and never a secret.

use lock_core::{Backend as _, BackendErrorKind};
use lock_sql::{ServerConfig, SqlBackend};

use crate::{claim, db::Db, granted};

super::on_both!(a_wrong_password_and_a_missing_database_are_told_without_secrets, a_user_needs_no_more_than_the_rows,);

const PASSWORD: &str = "s3cr3t-w0rd";

async fn refused(url: &str) -> (BackendErrorKind, String) {
    let config = ServerConfig::new(url).expect("a good URL");
    let error = SqlBackend::server(&config).await.expect_err("it cannot be used");
    let mut told = format!("{error} {error:?} {config:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        told += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    assert!(!told.contains(PASSWORD), "{told}");
    (error.kind(), error.to_string())
}

async fn a_wrong_password_and_a_missing_database_are_told_without_secrets(db: &Db) {
    let mut admin = db.admin().await;
    let database = match db {
        Db::Postgres(_) => {
            admin.execute("CREATE USER shop PASSWORD 'right'").await;
            // Until here the server trusts everybody, whatever the password.
            let rules = "ARRAY[''host all postgres 127.0.0.1/32 trust'', ''host all all 127.0.0.1/32 scram-sha-256'']";
            let copy = format!("format('COPY (SELECT unnest({rules})) TO %L', current_setting('hba_file'))");
            admin.execute(&format!("DO $$ BEGIN EXECUTE {copy}; END $$")).await;
            admin.execute("SELECT pg_reload_conf()").await;
            "postgres"
        }
        Db::Mysql(_) => {
            admin.execute("CREATE USER shop IDENTIFIED BY 'right'").await;
            admin.execute("GRANT ALL ON leasehold.* TO shop").await;
            "leasehold"
        }
    };
    let wrong = async {
        loop {
            // The server reads its new settings in its own time.
            let config = ServerConfig::new(db.url_of("shop", PASSWORD, database)).expect("a good URL");
            match SqlBackend::server(&config).await {
                Err(error) if error.kind() == BackendErrorKind::Config => break,
                _ => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), wrong).await.expect("a wrong password is a wrong setting");
    let (kind, told) = refused(&db.url_of("shop", PASSWORD, database)).await;
    assert_eq!(kind, BackendErrorKind::Config, "{told}");
    let (kind, told) = refused(&db.url_of("shop", "right", "missing")).await;
    assert_eq!(kind, BackendErrorKind::Config, "{told}");
    // A server that is not there is told as such, and no more.
    let (kind, told) =
        refused(&format!("{}://shop:{PASSWORD}@127.0.0.1:1/x", db.url().split(':').next().expect("a scheme"))).await;
    assert_eq!(kind, BackendErrorKind::Unavailable, "{told}");
}

async fn a_user_needs_no_more_than_the_rows(db: &Db) {
    let mut admin = db.admin().await;
    let (database, grants) = match db {
        Db::Postgres(_) => {
            admin.execute("CREATE USER shop").await;
            let rows = [
                "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold_locks TO shop",
                "GRANT SELECT, UPDATE ON leasehold_schema TO shop",
            ];
            ("postgres", rows)
        }
        Db::Mysql(_) => {
            admin.execute("CREATE USER shop").await;
            let rows = [
                "GRANT SELECT, INSERT, UPDATE, DELETE ON leasehold.leasehold_locks TO shop",
                "GRANT SELECT, UPDATE ON leasehold.leasehold_schema TO shop",
            ];
            // So that the user may use the database at all.
            admin.execute("CREATE TABLE leasehold.other (x INT)").await;
            admin.execute("GRANT SELECT ON leasehold.other TO shop").await;
            ("leasehold", rows)
        }
    };
    let url = db.url_of("shop", "", database);
    let (kind, told) = refused(&url).await;
    assert_eq!(kind, BackendErrorKind::Refused, "{told}");
    assert!(told.contains("lacks rights"), "{told}");

    db.backend().await.close().await;
    let (kind, told) = refused(&url).await;
    assert_eq!(kind, BackendErrorKind::Refused, "{told}");
    for grant in grants {
        admin.execute(grant).await;
    }
    let config = ServerConfig::new(&url).expect("a good URL");
    let backend = SqlBackend::server(&config).await.expect("the rows are all it needs");
    let held = claim("job");
    granted(&backend, &held).await;
    backend.extend(&held, crate::LEASE).await.expect("extend");
    backend.release(&held).await.expect("release");
}
