//! A store without room: new locks are refused, held ones are kept, and it recovers by itself.

use lock_core::{Backend as _, BackendErrorKind, Claim, Extension, Release};
use lock_sql::SqlBackend;

use crate::{LEASE, Place, claim, granted};

/// Claims names until there is no room, and gives what was granted and the error.
async fn fill(backend: &SqlBackend) -> (Vec<Claim>, lock_core::BackendError) {
    let mut held = Vec::new();
    for number in 0..10_000 {
        let claim = claim(&format!("{number:0>500}"));
        match backend.attempt(&claim).await {
            Ok(_) => held.push(claim),
            Err(error) => return (held, error),
        }
    }
    panic!("the store never was full");
}

#[tokio::test]
async fn a_full_store_refuses_new_names_keeps_the_held_ones_and_recovers() {
    let place = Place::new();
    let backend = SqlBackend::sqlite(&place.config().max_page_count(20)).await.expect("the store opens");
    let (held, error) = fill(&backend).await;
    assert!(held.len() > 20, "{}", held.len());
    assert_eq!(error.kind(), BackendErrorKind::Refused);
    assert!(error.to_string().contains("locks.db is full (database or disk is full); make room"), "{error}");

    let mut oracle = place.oracle().await;
    assert_eq!(oracle.rows().await.len(), held.len(), "nothing of the refused claim is left");
    for claim in &held {
        assert_eq!(backend.extend(claim, LEASE * 2).await.expect("extend"), Extension::Extended(LEASE * 2));
        assert_eq!(backend.release(claim).await.expect("release"), Release::Removed);
    }
    granted(&backend, &claim(held[0].name.as_str())).await;
    oracle.execute("DELETE FROM leasehold_locks WHERE claim IS NULL").await;
    granted(&backend, &claim(&"y".repeat(500))).await;
}

/// A disk that is really full. It needs the right to mount; without it the test says that it did nothing.
#[tokio::test]
async fn on_a_full_disk_held_locks_are_extended_and_new_names_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(disk) = Disk::mount(directory.path()) else {
        eprintln!("ignored: this user cannot mount a file system");
        return;
    };
    let path = disk.at.join("locks.db");
    let backend = SqlBackend::sqlite(&lock_sql::SqliteConfig::new(&path)).await.expect("the store opens");
    let held = claim("job");
    let grant = granted(&backend, &held).await;
    // A store that was used for a while: its log was copied into the file more than once.
    extend_often(&backend, &held).await;
    disk.fill();

    // More than the log has room for: it begins anew instead of growing.
    extend_often(&backend, &held).await;
    // New names need new pages, first in the log and then in the file.
    let (others, error) = fill(&backend).await;
    assert_eq!(error.kind(), BackendErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("is full"), "{error}");
    let mut oracle = crate::support::Oracle::open(&path).await;
    assert_eq!(oracle.rows().await.len(), others.len() + 1, "nothing of the refused claim is left");
    oracle.close().await;

    disk.make_room();
    assert_eq!(backend.extend(&held, LEASE).await.expect("extend"), Extension::Extended(LEASE));
    for claim in others.iter().chain([&held]) {
        assert_eq!(backend.release(claim).await.expect("release"), Release::Removed);
    }
    assert!(granted(&backend, &claim("job")).await.token > grant.token);
    backend.close().await;
}

async fn extend_often(backend: &SqlBackend, held: &Claim) {
    for _ in 0..2500 {
        assert_eq!(backend.extend(held, LEASE).await.expect("extend"), Extension::Extended(LEASE));
    }
}

/// A small file system in memory, unmounted when it is dropped.
struct Disk {
    at: std::path::PathBuf,
}

impl Disk {
    fn mount(at: &std::path::Path) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(at).stderr(std::process::Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Disk { at: at.to_owned() })
    }
}

impl Disk {
    fn ballast(&self) -> std::path::PathBuf {
        self.at.join("ballast")
    }

    fn fill(&self) {
        let mut ballast = std::fs::File::create(self.ballast()).expect("a file");
        while std::io::Write::write_all(&mut ballast, &[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.ballast()).expect("removed");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
