//! A database without room: new names are refused, what is held is kept, and it recovers by itself.

use lock_core::{Backend as _, BackendErrorKind, Claim, Extension, Release};
use lock_sql::SqlBackend;

use crate::{LEASE, claim, db::Db, granted, programs};

/// Claims names until there is no room, and gives what was granted and the error.
async fn fill(backend: &SqlBackend) -> (Vec<Claim>, lock_core::BackendError) {
    let mut held = Vec::new();
    for number in 0..20_000 {
        let claim = claim(&format!("{number:0>500}"));
        match backend.attempt(&claim).await {
            Ok(_) => held.push(claim),
            Err(error) => return (held, error),
        }
    }
    panic!("the store never was full");
}

/// A disk of its own for the locks' table. It needs the right to mount.
struct Disk {
    at: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Option<Self> {
        let at = tempfile::tempdir().expect("a directory");
        let mut mount = std::process::Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs"])
            .arg(at.path())
            .stderr(std::process::Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Disk { at })
    }

    fn ballast(&self) -> std::path::PathBuf {
        self.at.path().join("ballast")
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
        let _ = std::process::Command::new("umount").arg("-l").arg(self.at.path()).status();
    }
}

/// Puts the locks' table on that disk.
async fn move_table(db: &Db, disk: &Disk) {
    let mut admin = db.admin().await;
    let directory = disk.at.path().join("locks");
    std::fs::create_dir(&directory).expect("there is room");
    let path = directory.display();
    match db {
        Db::Postgres(_) => {
            programs::give_to_postgres(&directory);
            admin.execute(&format!("CREATE TABLESPACE small LOCATION '{path}'")).await;
            admin.execute("ALTER TABLE leasehold_locks SET TABLESPACE small").await;
            admin.execute("ALTER INDEX leasehold_locks_pkey SET TABLESPACE small").await;
        }
        Db::Mysql(_) => {
            admin.execute("DROP TABLE leasehold_locks").await;
            let schema = include_str!("../../sql/schema.mysql.sql");
            let place = format!("ROW_FORMAT = DYNAMIC DATA DIRECTORY = '{path}'");
            admin.execute(&schema.replace("ROW_FORMAT = DYNAMIC", &place)).await;
        }
    }
}

/// Without the right to mount the test says that it did nothing.
async fn on_a_full_disk_held_locks_are_extended_and_new_names_are_refused(db: &Db) {
    let Some(disk) = Disk::mount() else {
        eprintln!("ignored: this user cannot mount a file system");
        return;
    };
    let backend = db.backend().await;
    move_table(db, &disk).await;
    granted(&backend, &claim("first")).await;
    disk.fill();
    let (held, error) = fill(&backend).await;
    assert!(!held.is_empty());
    assert_eq!(error.kind(), BackendErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("make room on its disk"), "{error}");

    let rows = "SELECT count(*) FROM leasehold_locks WHERE claim IS NOT NULL";
    let rows = db.admin().await.number(rows).await.unsigned_abs();
    assert_eq!(rows, 1 + held.len() as u64, "nothing of the refused claim is left");
    for claim in &held {
        let extended = backend.extend(claim, LEASE * 2).await.expect("extend");
        assert!(matches!(extended, Extension::Extended(_)), "{extended:?}");
        assert_eq!(backend.release(claim).await.expect("release"), Release::Removed);
    }
    granted(&backend, &claim(held[0].name.as_str())).await;

    disk.make_room();
    granted(&backend, &claim(&"y".repeat(500))).await;
    // The table's file is to go before its disk.
    db.admin().await.execute("DROP TABLE leasehold_locks").await;
}

super::on_both!(on_a_full_disk_held_locks_are_extended_and_new_names_are_refused);
