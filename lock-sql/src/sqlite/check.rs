//! What the file and where it lies mean for locks.

use std::{fs, path::Path};

use lock_core::{BackendError, Finding};

use crate::sqlite::store::Store;

/// Below this the log cannot grow for long, and then no lock can be taken.
#[cfg(target_os = "linux")]
const LITTLE_SPACE: u64 = 64 << 20;

/// One finding for each rule.
pub(crate) async fn check(store: &Store) -> Result<Vec<Finding>, BackendError> {
    let path = store.path();
    let synchronous = store.number("PRAGMA synchronous").await?;
    let mut findings = vec![
        // Opening refuses a file that cannot have the log, and one with tables of another version.
        Finding::good("journal", format!("journal_mode is wal in {}", path.display())),
        Finding::good("schema", "the tables are of the version that this leasehold knows"),
        durability(synchronous),
        room(store.number("PRAGMA page_count").await?, store.number("PRAGMA max_page_count").await?),
    ];
    findings.extend(place(path));
    findings.push(permissions(path));
    findings
        .push(Finding::note("wall-clock", "leases go by this host's wall clock: setting it ends them early or late"));
    Ok(findings)
}

fn durability(synchronous: i64) -> Finding {
    const RULE: &str = "durability";
    match synchronous {
        0 => Finding::warning(
            RULE,
            "synchronous is off: a crash of the host may corrupt the file",
            "leave PRAGMA synchronous at NORMAL or FULL",
        ),
        1 => Finding::good(
            RULE,
            "synchronous is NORMAL: a power cut may forget the last claims, and ends their holders too",
        ),
        _ => Finding::good(RULE, "synchronous is FULL: what was claimed survives a power cut"),
    }
}

/// How far the file may still grow.
fn room(pages: i64, most: i64) -> Finding {
    const RULE: &str = "file-size";
    let evidence = format!("the file has {pages} pages and may grow to {most}");
    if pages.saturating_mul(10) >= most.saturating_mul(9) {
        let remedy = "raise max_page_count; idle rows go after a day";
        return Finding::warning(RULE, evidence, remedy);
    }
    Finding::good(RULE, evidence)
}

/// The file system and the room on it.
#[cfg(target_os = "linux")]
fn place(path: &Path) -> Vec<Finding> {
    const RULE: &str = "file-system";
    let looked = rustix::fs::statfs(path).and_then(|system| Ok((system, rustix::fs::statvfs(path)?)));
    let Ok((system, space)) = looked else {
        return vec![Finding::note(RULE, format!("the file system of {} cannot be looked at", path.display()))];
    };
    #[expect(clippy::cast_sign_loss, reason = "a magic number, whatever its type on this machine")]
    let magic = system.f_type as u64 & 0xFFFF_FFFF;
    let kind = match magic {
        0x6969 => Err("NFS"),
        0x517B | 0xFF53_4D42 | 0xFE53_4D42 => Err("SMB"),
        0x0102_1997 => Err("9p"),
        0x00C3_6400 => Err("CephFS"),
        0x0BD0_0BD0 => Err("Lustre"),
        0x5346_414F => Err("AFS"),
        0x6573_5546 => Ok("FUSE, which may be a network file system: SQLite's locks and its log need a local disk"),
        0x0102_1994 | 0x8584_58F6 => Ok("memory (tmpfs): the locks and their tokens end with this boot"),
        _ => Ok(""),
    };
    let system = match kind {
        Err(network) => Finding::warning(
            RULE,
            format!(
                "{} is on a network file system ({network}), where a write-ahead log excludes nobody",
                path.display()
            ),
            "put the file on a local disk, or use a server such as Redis or PostgreSQL for several hosts",
        ),
        Ok("") => Finding::good(RULE, format!("{} is on a local file system", path.display())),
        Ok(limit) => Finding::note(RULE, format!("{} is on {limit}", path.display())),
    };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let evidence = format!("{} MiB are free", free >> 20);
    let space = if free < LITTLE_SPACE {
        Finding::warning("free-space", evidence, "make room: on a full disk no lock can be taken")
    } else {
        Finding::good("free-space", evidence)
    };
    vec![system, space]
}

#[cfg(not(target_os = "linux"))]
fn place(path: &Path) -> Vec<Finding> {
    vec![Finding::note(
        "file-system",
        format!("not looked at on this system; {} must be on a local disk", path.display()),
    )]
}

/// Who else may change the file. Those who share locks must; everybody should not.
#[cfg(unix)]
fn permissions(path: &Path) -> Finding {
    use std::os::unix::fs::PermissionsExt as _;

    const RULE: &str = "permissions";
    let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode() & 0o7777);
    let (Some(directory), Ok(file_mode)) = (path.parent(), mode(path)) else {
        return Finding::note(RULE, format!("the permissions of {} cannot be read", path.display()));
    };
    if file_mode & 0o002 != 0 {
        let evidence = format!("every user may write {} (mode {file_mode:o})", path.display());
        return Finding::warning(RULE, evidence, format!("chmod o-w {}", path.display()));
    }
    match mode(directory) {
        // With the sticky bit nobody can rename or remove another's file.
        Ok(mode) if mode & 0o002 != 0 && mode & 0o1000 == 0 => Finding::warning(
            RULE,
            format!("every user may replace files in {} (mode {mode:o})", directory.display()),
            format!("chmod o-w {}", directory.display()),
        ),
        _ => Finding::good(RULE, format!("the mode of {} is {file_mode:o}", path.display())),
    }
}

#[cfg(not(unix))]
fn permissions(path: &Path) -> Finding {
    let read_only = fs::metadata(path).is_ok_and(|found| found.permissions().readonly());
    Finding::note("permissions", format!("{} is {}", path.display(), if read_only { "read-only" } else { "writable" }))
}
