//! Random calls of the public API on an SQLite file.
#![cfg(feature = "sqlite")]

use std::sync::Arc;

use conformance_tests::play_randomly;
use lock_core::Backend;
use lock_sql::{SqlBackend, SqliteConfig};

#[test]
fn random_calls_keep_the_contract_on_sqlite() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = SqliteConfig::new(directory.path().join("locks.db"));
    play_randomly(|| async { Ok(Arc::new(SqlBackend::sqlite(&config).await?) as Arc<dyn Backend>) });
}
