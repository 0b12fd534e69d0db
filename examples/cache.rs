//! A cache that one instance of many rebuilds, while the others wait for it.
//!
//! Without a lock, all that find the entry missing would rebuild it at once. With one, the first rebuilds; those who get
//! the lock after it look again before they do anything. The lock saves work here and protects nothing: if it fails, the
//! entry is rebuilt twice. `cargo run --example cache`

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use leasehold::{Error, ErrorKind, LockClient};

const INSTANCES: u32 = 20;

/// Stands for a cache that all instances share.
#[derive(Default)]
struct Cache {
    prices: Mutex<Option<u64>>,
    rebuilds: AtomicU32,
}

impl Cache {
    fn get(&self) -> Option<u64> {
        *self.prices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn rebuild(&self) -> u64 {
        self.rebuilds.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
        *self.prices.lock().unwrap_or_else(PoisonError::into_inner) = Some(42);
        42
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    let cache = Arc::new(Cache::default());
    let client = leasehold::connect("memory:?namespace=cache").await?;
    let instances: Vec<_> = (0..INSTANCES).map(|_| tokio::spawn(prices(client.clone(), Arc::clone(&cache)))).collect();
    for instance in instances {
        assert_eq!(instance.await.expect("an instance does not panic")?, 42);
    }
    let rebuilds = cache.rebuilds.load(Ordering::SeqCst);
    assert_eq!(rebuilds, 1);
    println!("{INSTANCES} instances asked, and the cache was rebuilt {rebuilds} time");
    client.close().await
}

async fn prices(client: LockClient, cache: Arc<Cache>) -> Result<u64, Error> {
    if let Some(prices) = cache.get() {
        return Ok(prices);
    }
    // Nobody waits for ever: whoever rebuilds may hang.
    match client.lock("prices").wait(Duration::from_secs(5)).acquire().await {
        Ok(guard) => {
            // Someone else may have rebuilt it while this one waited.
            let prices = match cache.get() {
                Some(prices) => prices,
                None => guard.protect(cache.rebuild()).await?,
            };
            guard.release().await?;
            Ok(prices)
        }
        // To rebuild it twice is better than to fail.
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable) => Ok(cache.rebuild().await),
        Err(error) => Err(error),
    }
}
