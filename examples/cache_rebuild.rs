//! A cache that one instance of many rebuilds, while the others wait and then read what it wrote.
//!
//! The second look is the point: whoever got the lock after waiting looks into the cache again before it works.
//! `cargo run --example cache_rebuild`

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use leasehold::{Error, FencingToken, LockClient};
use tokio::task::JoinSet;

const INSTANCES: u32 = 8;

/// Stands for a cache that the instances share.
#[derive(Default)]
struct Cache {
    entry: Mutex<Option<(String, FencingToken)>>,
    rebuilds: AtomicU32,
}

impl Cache {
    fn get(&self) -> Option<String> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(page, _)| page.clone())
    }

    /// Keeps the page, unless one came from a later holder: an instance that was paused must not bring back an old one.
    fn put(&self, page: &str, token: FencingToken) {
        let mut entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        if entry.as_ref().is_none_or(|(_, last)| *last <= token) {
            *entry = Some((page.to_owned(), token));
        }
    }

    /// The work that only one shall do.
    async fn rebuild(&self) -> String {
        let number = self.rebuilds.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
        format!("front page, built {number} times")
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    let cache = Arc::new(Cache::default());
    let mut instances = JoinSet::new();
    for _ in 0..INSTANCES {
        let client = leasehold::connect("memory:?namespace=shop").await?;
        let cache = Arc::clone(&cache);
        instances.spawn(async move { read(&client, &cache).await });
    }
    for page in instances.join_all().await {
        assert_eq!(page?, "front page, built 1 times", "every instance reads what one of them built");
    }
    let rebuilds = cache.rebuilds.load(Ordering::Relaxed);
    println!("{INSTANCES} instances read the page, and it was built {rebuilds} time");
    assert_eq!(rebuilds, 1);
    Ok(())
}

async fn read(client: &LockClient, cache: &Cache) -> Result<String, Error> {
    if let Some(page) = cache.get() {
        return Ok(page);
    }
    // Longer than a rebuild takes. Who has an old page at hand may rather serve that than wait: see `ErrorKind::TimedOut`.
    let guard = client.lock("cache:front-page").wait(Duration::from_secs(10)).acquire().await?;
    if let Some(page) = cache.get() {
        // Someone built it while this one waited.
        guard.release().await?;
        return Ok(page);
    }
    let page = guard.protect(cache.rebuild()).await?;
    cache.put(&page, guard.fencing_token());
    guard.release().await?;
    Ok(page)
}
