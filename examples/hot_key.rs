//! One busy lock split over several names, so that as many holders work at once.
//!
//! The stock of one article lies on four shelves, each with a lock of its own. A buyer begins at a shelf of its own and
//! goes on to the next where that one is empty. The price: who wants the whole stock takes every lock, in one order.
//! `cargo run --example hot_key`

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use leasehold::{Error, LockClient};
use tokio::task::JoinSet;

const STOCK: u64 = 40;
/// One more than there is stock for.
const BUYERS: usize = 41;

/// A stock in parts. Reading and writing are apart, as in most stores: without the locks, sales would be lost.
struct Shop {
    shelves: Vec<AtomicU64>,
    inside: AtomicUsize,
    most_inside: AtomicUsize,
}

impl Shop {
    fn new(shelves: usize) -> Self {
        let each = STOCK / shelves as u64;
        Shop {
            shelves: (0..shelves).map(|_| AtomicU64::new(each)).collect(),
            inside: AtomicUsize::new(0),
            most_inside: AtomicUsize::new(0),
        }
    }

    /// Takes one piece from a shelf, whose lock the caller holds. Tells whether there was one.
    async fn take(&self, shelf: usize) -> bool {
        let inside = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_inside.fetch_max(inside, Ordering::Relaxed);
        let left = self.shelves[shelf].load(Ordering::Relaxed);
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        self.shelves[shelf].store(left.saturating_sub(1), Ordering::Relaxed);
        self.inside.fetch_sub(1, Ordering::Relaxed);
        left > 0
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = leasehold::connect("memory:?namespace=shop").await?;
    let most_of_one = sell(&client, 1).await?;
    assert_eq!(most_of_one, 1, "one name, one holder");
    let most_of_four = sell(&client, 4).await?;
    assert!((2..=4).contains(&most_of_four), "{most_of_four} holders of four names");
    client.close().await
}

/// Sells the whole stock, and tells how many buyers were at a shelf at once.
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn sell(client: &LockClient, shelves: usize) -> Result<usize, Error> {
    let shop = Arc::new(Shop::new(shelves));
    let mut buyers = JoinSet::new();
    for buyer in 0..BUYERS {
        buyers.spawn(buy(client.clone(), Arc::clone(&shop), buyer));
    }
    let bought = buyers.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(bought.iter().filter(|bought| **bought).count() as u64, STOCK, "no piece is sold twice or lost");

    // All locks at once, always in this order: two that took them in different orders would wait for each other.
    let mut guards = Vec::new();
    for shelf in 0..shelves {
        guards.push(client.lock(name(shelf)).acquire().await?);
    }
    let left: u64 = shop.shelves.iter().map(|shelf| shelf.load(Ordering::Relaxed)).sum();
    assert_eq!(left, 0);
    for guard in guards {
        guard.release().await?;
    }
    let most = shop.most_inside.load(Ordering::Relaxed);
    println!("shelves: {shelves}, pieces sold: {STOCK}, buyers at once: {most}");
    Ok(most)
}

async fn buy(client: LockClient, shop: Arc<Shop>, buyer: usize) -> Result<bool, Error> {
    let shelves = shop.shelves.len();
    for step in 0..shelves {
        let shelf = (buyer + step) % shelves;
        let guard = client.lock(name(shelf)).acquire().await?;
        let found = guard.protect(shop.take(shelf)).await?;
        guard.release().await?;
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn name(shelf: usize) -> String {
    format!("article:42/{shelf}")
}
