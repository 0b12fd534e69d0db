//! What to do when the store is down: fail, or go on with a lock of this process alone.
//!
//! leasehold never falls back by itself, since a lock of one process is another lock with the same name: instances on
//! other hosts no longer exclude each other, nor does this one exclude those that still reach the store. **Where the lock
//! protects something, fail.** Where it only saves work, as for a cache, the recipe below keeps the service going; its
//! price is that the work may be done by every instance at once. `cargo run --example store_down`

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold::{
    Attempt, Backend, BackendError, Capabilities, Claim, Error, ErrorKind, Extension, LockClient, LockGuard,
    LockRecord, MemoryBackend, Release, Selector, reexport::async_trait,
};
use tokio::sync::{Mutex, MutexGuard};

/// A lock of the store, or, while that is down, of this process.
enum Held<'a> {
    Everywhere(LockGuard),
    Here(MutexGuard<'a, ()>),
}

/// The recipe. The caller says by its choice of function that the work may be done twice.
async fn everywhere_or_here<'a>(client: &LockClient, name: &str, local: &'a Mutex<()>) -> Result<Held<'a>, Error> {
    match client.lock(name).wait(Duration::from_secs(1)).acquire().await {
        Ok(guard) => Ok(Held::Everywhere(guard)),
        // The store did not answer. That others hold the lock is `TimedOut`, and no reason to go on.
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(Held::Here(local.lock().await)),
        Err(error) => Err(error),
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    let store = Switched { store: MemoryBackend::new(), up: Arc::new(AtomicBool::new(true)) };
    let up = Arc::clone(&store.up);
    // How long one call may take decides how fast an outage is found.
    let client = LockClient::builder(store).request_timeout(Duration::from_millis(200)).build()?;
    let local = Mutex::new(());

    let held = everywhere_or_here(&client, "prices", &local).await?;
    let Held::Everywhere(guard) = held else { panic!("the store is up") };
    println!("the store is up: held everywhere, with token {}", guard.fencing_token());
    guard.release().await?;

    up.store(false, Ordering::SeqCst);
    let held = everywhere_or_here(&client, "prices", &local).await?;
    let Held::Here(guard) = held else { panic!("the store is down") };
    println!("the store is down: held in this process alone, and without a token");
    drop(guard);

    up.store(true, Ordering::SeqCst);
    let held = everywhere_or_here(&client, "prices", &local).await?;
    assert!(matches!(held, Held::Everywhere(_)), "the client goes on by itself once the store is back");
    println!("the store is back: held everywhere");
    Ok(())
}

/// A store with a switch, since this example has no server that it could stop.
#[derive(Debug)]
struct Switched {
    store: MemoryBackend,
    up: Arc<AtomicBool>,
}

impl Switched {
    fn reach(&self) -> Result<&MemoryBackend, BackendError> {
        if self.up.load(Ordering::SeqCst) {
            Ok(&self.store)
        } else {
            Err(BackendError::unavailable("the store is switched off"))
        }
    }
}

#[async_trait]
impl Backend for Switched {
    fn capabilities(&self) -> &Capabilities {
        self.store.capabilities()
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        self.reach()?.attempt(claim).await
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        self.reach()?.extend(claim, lease).await
    }

    async fn release(&self, claim: &Claim) -> Result<Release, BackendError> {
        self.reach()?.release(claim).await
    }

    async fn inspect(&self, selector: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        self.reach()?.inspect(selector).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
