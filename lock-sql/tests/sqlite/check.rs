//! `check` and `prepare`: what is told of the file, each warning provoked.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use conformance_tests::finding;
use lock_core::{Backend as _, Finding, Level, Namespace, Usage};

use crate::{LEASE, Place};

async fn findings(place: &Place) -> Vec<Finding> {
    place.backend().await.check(&Usage::new(Namespace::default(), LEASE)).await.expect("an answer")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[tokio::test]
async fn a_good_file_gives_no_warning_and_is_left_as_it_was() {
    let place = Place::new();
    let backend = place.backend().await;
    // Changes whenever another connection has written.
    let mut oracle = place.oracle().await;
    let before = oracle.number("PRAGMA data_version").await;
    let findings = findings(&place).await;
    assert!(findings.iter().all(|finding| finding.level < Level::Warning), "{findings:?}");
    assert_eq!(finding(&findings, "journal").level, Level::Good);
    assert!(finding(&findings, "permissions").evidence.contains("locks.db"));
    assert_eq!(oracle.number("PRAGMA data_version").await, before);
    backend.close().await;
}

#[tokio::test]
async fn a_file_that_everybody_may_write_or_replace_is_a_warning() {
    let place = Place::new();
    findings(&place).await;
    set_mode(&place.path, 0o666);
    let told = findings(&place).await;
    let told = finding(&told, "permissions");
    assert_eq!(told.level, Level::Warning);
    assert!(told.remedy.as_deref().is_some_and(|remedy| remedy.starts_with("chmod o-w")), "{told:?}");
    set_mode(&place.path, 0o600);
    let directory = place.path.parent().expect("a directory");
    set_mode(directory, 0o777);
    assert_eq!(finding(&findings(&place).await, "permissions").level, Level::Warning);
    // As /tmp is.
    set_mode(directory, 0o1777);
    assert_eq!(finding(&findings(&place).await, "permissions").level, Level::Good);
}

#[tokio::test]
async fn a_file_that_may_not_grow_is_a_warning() {
    let place = Place::new();
    findings(&place).await;
    let config = place.config().max_page_count(1);
    let backend = lock_sql::SqlBackend::sqlite(&config).await.expect("it opens");
    let findings = backend.check(&Usage::new(Namespace::default(), LEASE)).await.expect("an answer");
    assert_eq!(finding(&findings, "file-size").level, Level::Warning, "{findings:?}");
}

#[tokio::test]
async fn preparing_tells_what_opening_created_and_that_once() {
    let place = Place::new();
    let first = place.backend().await;
    let created = first.prepare().await.expect("an answer");
    assert!(created.len() == 1 && created[0].contains("locks.db"), "{created:?}");
    assert!(first.prepare().await.expect("an answer").is_empty());
    first.close().await;
    assert!(place.backend().await.prepare().await.expect("an answer").is_empty());
}
