//! What is special to SQLite, each proved by what a second connection sees in the file.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod claims;
mod creation;
mod dropped;
mod files;
mod full;
mod names;
mod replaced;
mod sweep;
mod waits;

use std::{path::PathBuf, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Backend as _, Busy, Claim, ClaimId, FencingToken, Grant, HolderInfo, Intent, LockKind, LockName, Namespace,
};
use lock_sql::{SqlBackend, SqliteConfig};
use tempfile::TempDir;

const LEASE: Duration = Duration::from_secs(30);

/// A store in a directory of its own.
struct Place {
    _directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("locks.db");
        Place { _directory: directory, path }
    }

    fn config(&self) -> SqliteConfig {
        SqliteConfig::new(&self.path)
    }

    async fn backend(&self) -> SqlBackend {
        SqlBackend::sqlite(&self.config()).await.expect("the store opens")
    }

    async fn oracle(&self) -> support::Oracle {
        support::Oracle::open(&self.path).await
    }
}

fn claim(name: &str) -> Claim {
    Claim {
        namespace: Namespace::default(),
        name: LockName::new(name).expect("a good name"),
        kind: LockKind::Exclusive,
        id: ClaimId::random(),
        intent: Intent::Try,
        lease: LEASE,
        holder: Arc::new(HolderInfo { host: "here".to_owned(), pid: 7, label: Some("nightly".to_owned()) }),
        min_token: FencingToken::ZERO,
    }
}

async fn granted(backend: &SqlBackend, claim: &Claim) -> Grant {
    match backend.attempt(claim).await.expect("the store answers") {
        Attempt::Granted(grant) => grant,
        Attempt::Busy(busy) => panic!("{:?} is taken: {busy:?}", claim.name),
    }
}

async fn busy(backend: &SqlBackend, claim: &Claim) -> Busy {
    match backend.attempt(claim).await.expect("the store answers") {
        Attempt::Busy(busy) => busy,
        Attempt::Granted(grant) => panic!("{:?} is free: {grant:?}", claim.name),
    }
}
