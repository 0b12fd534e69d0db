//! What core itself costs: time per acquisition, memory per held lock, lateness of renewals. No store is asked.
//!
//! `cargo bench --bench core` prints one line for each; nothing is asserted, since machines are noisy.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{
    Attempt, Backend, BackendError, Capabilities, Claim, Extension, FencingToken, Grant, LockClient, LockRecord,
    Release, Selector, reexport::async_trait,
};

/// A store that grants everything and keeps nothing, so that what is measured is core.
#[derive(Debug)]
struct Yes {
    capabilities: Capabilities,
    tokens: AtomicU64,
    extensions: Arc<AtomicU64>,
}

impl Yes {
    fn new() -> Self {
        Yes { capabilities: Capabilities::new("yes"), tokens: AtomicU64::new(0), extensions: Arc::default() }
    }
}

#[async_trait]
impl Backend for Yes {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn attempt(&self, claim: &Claim) -> Result<Attempt, BackendError> {
        let token = FencingToken::new(self.tokens.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(Attempt::Granted(Grant::new(token, claim.lease)))
    }

    async fn extend(&self, _: &Claim, lease: Duration) -> Result<Extension, BackendError> {
        self.extensions.fetch_add(1, Ordering::Relaxed);
        Ok(Extension::Extended(lease))
    }

    async fn release(&self, _: &Claim) -> Result<Release, BackendError> {
        Ok(Release::Removed)
    }

    async fn inspect(&self, _: &Selector) -> Result<Vec<LockRecord>, BackendError> {
        Ok(Vec::new())
    }

    async fn close(&self) {}
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(async {
        pairs().await;
        memory().await;
        renewals().await;
    });
}

/// Acquire and release beside the two bare calls, each in a task of its own as any caller's would be.
async fn pairs() {
    const ROUNDS: u32 = 20_000;
    let client = LockClient::builder(Yes::new()).build().expect("client");
    let lock = client.lock("x");
    let task = tokio::spawn(async move {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            lock.acquire().await.expect("granted").release().await.expect("held");
        }
        started.elapsed() / ROUNDS
    });
    let core = task.await.expect("no panic");
    println!("acquire + release: {core:?} of core for each pair, beside the store's two round trips");
}

/// Resident memory of the process, from the kernel.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

async fn memory() {
    const HELD: u64 = 50_000;
    let client = LockClient::builder(Yes::new()).build().expect("client");
    let mut guards = Vec::with_capacity(usize::try_from(HELD).expect("fits"));
    guards.push(client.lock("warm").acquire().await.expect("granted"));
    let before = resident();
    for n in 0..HELD {
        guards.push(client.lock(format!("order:{n:08}")).acquire().await.expect("granted"));
    }
    let each = resident().saturating_sub(before) / HELD;
    println!("memory: {each} bytes for each of {HELD} held locks (goal: at most 2048)");
    black_box(&guards);
}

async fn renewals() {
    const HELD: u64 = 10_000;
    let lease = Duration::from_secs(3);
    let yes = Yes::new();
    let extensions = Arc::clone(&yes.extensions);
    let client = LockClient::builder(yes).lease(lease).build().expect("client");
    let mut guards = Vec::new();
    for n in 0..HELD {
        guards.push(client.lock(format!("n{n}")).acquire().await.expect("granted"));
    }
    let started = Instant::now();
    let mut least = lease;
    while started.elapsed() < lease * 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        least = guards.iter().map(|guard| guard.remaining()).min().unwrap_or_default().min(least);
    }
    let lost = guards.iter().filter(|guard| !guard.is_held()).count();
    let rounds = extensions.load(Ordering::Relaxed) / HELD;
    println!(
        "renewal: {HELD} guards over 4 leases of {lease:?}: {rounds} renewals each, {lost} lost, \
         and never less than {least:?} left of a lease (on time: at least {:?})",
        lease * 2 / 3 - lease / 100 - Duration::from_millis(2)
    );
}
