//! A file that is deleted or replaced under an open store.

use std::{fs, time::Duration};

use lock_core::{Backend as _, Extension, Release};

use crate::{LEASE, Place, busy, claim, granted};

fn delete(place: &Place) {
    for name in ["locks.db", "locks.db-wal", "locks.db-shm"] {
        let _ = fs::remove_file(place.path.with_file_name(name));
    }
}

#[tokio::test]
async fn a_deleted_store_is_made_again_and_shared_with_those_who_come() {
    let place = Place::new();
    let backend = place.backend().await;
    let lost = claim("job");
    granted(&backend, &lost).await;
    delete(&place);
    // The store looks every 50 ms whether its path leads elsewhere.
    tokio::time::sleep(Duration::from_millis(60)).await;

    // Another process would open the path, and so must this one.
    assert_eq!(backend.extend(&lost, LEASE).await.expect("extend"), Extension::NotHeld);
    let held = claim("job");
    granted(&backend, &held).await;
    let row = place.oracle().await.row("job").await.expect("the file at the path has the row");
    assert_eq!(row.claim, Some(held.id.to_string()));
    assert_eq!(backend.release(&lost).await.expect("release"), Release::Absent);
    busy(&backend, &claim("job")).await;
}

#[tokio::test]
async fn tables_that_were_dropped_are_made_again() {
    let place = Place::new();
    let backend = place.backend().await;
    granted(&backend, &claim("job")).await;
    place.oracle().await.execute("DROP TABLE leasehold_locks; DROP TABLE leasehold_schema").await;
    // The first statement that misses them says so, be it this one or one of a sweep.
    if let Err(error) = backend.attempt(&claim("other")).await {
        assert!(error.to_string().contains("no such table"), "{error}");
    }
    granted(&backend, &claim("job")).await;
}
