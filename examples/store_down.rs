//! What to do when the store does not answer: go on under a local lock, and what that costs.
//!
//! The recipe takes a lock of this process first, always, and then the store's. On `Unavailable` it goes on with the
//! local one alone. **The price is exclusion between hosts**: while the store is away, every host is alone in its own
//! world, and someone may still hold the lock that the store granted before. This program shows it happen. Use it only
//! where doing the work twice is better than not doing it; else let the error through.
//! `cargo run --example store_down --features sqlite`

use std::{error::Error as StdError, time::Duration};

use leasehold::{Error, ErrorKind, LockClient, LockGuard, MemoryBackend};
use sqlx::{ConnectOptions as _, sqlite::SqliteConnectOptions};

const WAIT: Duration = Duration::from_secs(1);

/// One host: its client of the store, and a store of its own that lives as long as the process.
struct Host {
    shared: LockClient,
    local: LockClient,
}

/// What the recipe gives: a lock of this process, and most of the time one of the store.
struct Held {
    _local: LockGuard,
    /// None while the store is away. Its token is then missing as well: a local one means nothing to a fenced resource.
    shared: Option<LockGuard>,
}

impl Host {
    async fn new(url: &str) -> Result<Self, Error> {
        let local = LockClient::builder(MemoryBackend::new()).build()?;
        Ok(Host { shared: leasehold::connect(url).await?, local })
    }

    async fn lock(&self, name: &str) -> Result<Held, Error> {
        // First and always, so that the tasks of this process exclude each other whatever the store does meanwhile.
        let local = self.local.lock(name).wait(WAIT).acquire().await?;
        match self.shared.lock(name).wait(WAIT).acquire().await {
            Ok(shared) => Ok(Held { _local: local, shared: Some(shared) }),
            // Tell someone: from here on nobody else is kept out.
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(Held { _local: local, shared: None }),
            Err(error) => Err(error),
        }
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("locks.db");
    let url = format!("sqlite:{}?request_timeout=500ms", path.display());
    let (one, two) = (Host::new(&url).await?, Host::new(&url).await?);

    let first = one.lock("import").await?;
    let refused = two.lock("import").await.err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::TimedOut), "the store is there, so the second host is kept out");
    println!("the store answers: one host is in, the other is kept out");

    // Someone keeps the file locked, as a process does that was stopped while it wrote.
    let mut outage = SqliteConnectOptions::new().filename(&path).connect().await?;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut outage).await?;

    let second = two.lock("import").await?;
    assert!(second.shared.is_none(), "the store did not answer");
    let still = first.shared.as_ref().is_some_and(LockGuard::is_held);
    assert!(still, "and the first host rightly counts on its lease");
    println!("the store is away: the second host goes on, while the first one still holds. That is the price");

    let third = two.lock("import").await.err().map(|error| error.kind());
    assert_eq!(third, Some(ErrorKind::TimedOut), "within a host the local lock still excludes");
    println!("within the second host, the next task is kept out");

    sqlx::raw_sql("ROLLBACK").execute(&mut outage).await?;
    drop((first, second));
    let again = two.shared.lock("import").wait(Duration::from_secs(30)).acquire().await?;
    println!("the store is back, and grants again");
    again.release().await?;
    Ok(())
}
