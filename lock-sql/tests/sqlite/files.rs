//! Files that cannot be a store: each is a clear error that names the file.

use std::{fs, os::unix::fs::FileExt as _, path::Path, time::Duration};

use lock_core::{Backend as _, BackendError, BackendErrorKind};
use lock_sql::{SqlBackend, SqliteConfig};

use crate::{Place, claim, granted};

async fn refused(config: &SqliteConfig) -> BackendError {
    let error = SqlBackend::sqlite(config).await.expect_err("no store");
    let text = error.to_string();
    assert!(text.starts_with("sqlite file "), "{text}");
    assert!(text.contains(&config.path().display().to_string()), "{text}");
    error
}

#[tokio::test]
async fn a_directory() {
    let place = Place::new();
    fs::create_dir(&place.path).expect("a directory");
    let error = refused(&place.config()).await;
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().ends_with("is a directory; name a file in it"), "{error}");
}

#[tokio::test]
async fn a_missing_directory() {
    let place = Place::new();
    let config = SqliteConfig::new(place.path.with_file_name("nowhere").join("locks.db"));
    let error = refused(&config).await;
    assert!(error.to_string().contains("its directory does not exist; create it"), "{error}");
}

#[tokio::test]
async fn a_file_as_directory() {
    let place = Place::new();
    fs::write(&place.path, "").expect("a file");
    let error = refused(&SqliteConfig::new(place.path.join("locks.db"))).await;
    assert!(error.to_string().contains("no directory"), "{error}");
}

#[tokio::test]
async fn a_device() {
    let error = refused(&SqliteConfig::new("/dev/null")).await;
    assert!(error.to_string().contains("is not a regular file"), "{error}");
}

#[tokio::test]
async fn no_file_at_all() {
    for path in ["", "/", ".."] {
        let error = SqlBackend::sqlite(&SqliteConfig::new(path)).await.expect_err("no file");
        assert_eq!(error.kind(), BackendErrorKind::Config, "{error}");
    }
    let error = SqlBackend::sqlite(&SqliteConfig::new(":memory:")).await.expect_err("memory");
    assert!(error.to_string().contains("use memory:"), "{error}");
}

#[tokio::test]
async fn something_else_than_a_database() {
    let place = Place::new();
    fs::write(&place.path, "lock the door\n".repeat(1000)).expect("a file");
    let error = refused(&place.config()).await;
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("no usable SQLite database (file is not a database)"), "{error}");
    assert_eq!(fs::read(&place.path).expect("still there").len(), 14_000, "what is not ours is left as it was");
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let place = Place::new();
    fs::write(&place.path, "").expect("a file");
    granted(&place.backend().await, &claim("job")).await;
}

/// Makes a store and closes it, so that all of it is in one file.
async fn make(place: &Place) {
    let backend = place.backend().await;
    granted(&backend, &claim("job")).await;
    backend.close().await;
}

#[tokio::test]
async fn a_damaged_database() {
    let place = Place::new();
    make(&place).await;
    let size = fs::metadata(&place.path).expect("the store").len();
    let file = fs::OpenOptions::new().write(true).open(&place.path).expect("the store");
    for page in 1..size / 4096 {
        file.write_all_at(&[0xA5; 4096], page * 4096).expect("damage");
    }
    let error = refused(&place.config()).await;
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("no usable SQLite database (database disk image is malformed)"), "{error}");
}

#[tokio::test]
async fn a_newer_schema() {
    let place = Place::new();
    make(&place).await;
    place.oracle().await.execute("UPDATE leasehold_schema SET version = 7").await;
    let error = refused(&place.config()).await;
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("schema version 7, and this version of leasehold knows 1"), "{error}");
    assert_eq!(place.oracle().await.number("SELECT version FROM leasehold_schema").await, 7);
}

#[tokio::test]
async fn a_schema_without_its_version() {
    let place = Place::new();
    make(&place).await;
    place.oracle().await.execute("DELETE FROM leasehold_schema").await;
    let error = refused(&place.config()).await;
    assert!(error.to_string().contains("has lost its schema version"), "{error}");
}

/// SQLite only reads a file whose format for writing is one that it does not know (fileformat2.html, 1.3.3). Unlike
/// permissions, that stops root too.
fn make_read_only(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("the store");
    file.write_all_at(&[3], 18).expect("the header");
}

#[tokio::test]
async fn a_read_only_file() {
    let place = Place::new();
    make(&place).await;
    make_read_only(&place.path);
    let error = refused(&place.config()).await;
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("is read-only (attempt to write a readonly database)"), "{error}");
}

#[tokio::test]
async fn a_file_kept_locked_for_the_whole_time_to_connect() {
    let place = Place::new();
    let mut oracle = place.oracle().await;
    // Without a log, a transaction keeps readers out as well.
    oracle.execute("CREATE TABLE orders (id INTEGER); BEGIN EXCLUSIVE").await;
    let limits = Duration::from_millis(30);
    let error = refused(&place.config().busy_timeout(limits).connect_timeout(limits * 5)).await;
    assert_eq!(error.kind(), BackendErrorKind::Unavailable);
    assert!(error.to_string().contains("is kept locked by another program"), "{error}");
}

#[tokio::test]
async fn a_relative_path_and_a_link_lead_to_the_same_store() {
    let place = Place::new();
    let backend = place.backend().await;
    let held = claim("job");
    granted(&backend, &held).await;
    let link = place.path.with_file_name("link.db");
    std::os::unix::fs::symlink("locks.db", &link).expect("a link");
    let linked = SqlBackend::sqlite(&SqliteConfig::new(&link)).await.expect("opens through the link");
    crate::busy(&linked, &claim("job")).await;
    assert!(!link.with_file_name("link.db-wal").exists());
}
