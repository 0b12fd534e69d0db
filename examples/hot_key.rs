//! A name that all want, split over several.
//!
//! One lock is one queue: with a store that takes 1 ms, one name serves at most some hundred holders a second, however
//! many wait. Where the thing behind it can be split, as a stock of tickets can, each part has a lock of its own, and a
//! buyer takes any part. What is no longer possible: to see or change the whole at once, but by taking every lock in
//! order. `cargo run --example hot_key`

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{Error, LockClient};

const BUYERS: usize = 64;
const PARTS: usize = 8;
const TICKETS: u32 = 64;
/// What a buyer does under the lock.
const SALE: Duration = Duration::from_millis(5);

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    let client = leasehold::connect("memory:?namespace=tickets").await?;
    let whole = sell(&client, 1).await?;
    let split = sell(&client, PARTS).await?;
    println!("{BUYERS} buyers took {whole:.0?} at one name, and {split:.0?} at {PARTS}");
    assert!(split < whole / 2, "{split:?} is not much less than {whole:?}");
    client.close().await
}

/// Sells all tickets, kept in this many parts; answers how long it took.
async fn sell(client: &LockClient, parts: usize) -> Result<Duration, Error> {
    let share = TICKETS / u32::try_from(parts).expect("a few");
    let stock: Arc<Vec<AtomicU32>> = Arc::new((0..parts).map(|_| AtomicU32::new(share)).collect());
    let begun = Instant::now();
    let buyers: Vec<_> = (0..BUYERS)
        .map(|buyer| {
            let (client, stock) = (client.clone(), Arc::clone(&stock));
            tokio::spawn(async move { buy(&client, &stock, buyer).await })
        })
        .collect();
    for buyer in buyers {
        buyer.await.expect("a buyer does not panic")?;
    }
    assert!(stock.iter().all(|part| part.load(Ordering::SeqCst) == 0), "every ticket is sold once: {stock:?}");
    Ok(begun.elapsed())
}

async fn buy(client: &LockClient, stock: &[AtomicU32], buyer: usize) -> Result<(), Error> {
    // Each begins at another part, and goes on to the next where one is sold out.
    for part in (0..stock.len()).map(|step| (buyer + step) % stock.len()) {
        let guard = client.lock(format!("part:{part}")).acquire().await?;
        let left = stock[part].load(Ordering::SeqCst);
        tokio::time::sleep(SALE).await;
        if left > 0 {
            // Read and write are two steps: without the lock, tickets would be sold twice.
            stock[part].store(left - 1, Ordering::SeqCst);
        }
        guard.release().await?;
        if left > 0 {
            return Ok(());
        }
    }
    Ok(())
}
