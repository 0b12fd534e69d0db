//! A service that takes a client, and its unit tests, which need no server.
//!
//! The tests are below; `cargo test --example unit_test` runs them. Clones of one `MemoryBackend` are one store, so that
//! a second client is another instance of the service.

use leasehold::{Error, ErrorKind, LockClient};

/// A service. It is given a client, and does not care which store that has.
struct Payments {
    locks: LockClient,
}

/// How a payment went.
#[derive(Debug, PartialEq)]
enum Paid {
    Now,
    /// Another instance is at it.
    Elsewhere,
}

impl Payments {
    async fn pay(&self, order: u64) -> Result<Paid, Error> {
        let Some(guard) = self.locks.lock(format!("order:{order}")).try_acquire().await? else {
            return Ok(Paid::Elsewhere);
        };
        let paid = guard.protect(charge(order)).await?;
        match guard.release().await {
            // The payment was made under the lock; that its end is not confirmed takes nothing from it.
            Err(error) if error.kind() != ErrorKind::Unavailable => Err(error),
            _ => Ok(paid),
        }
    }
}

/// Stands for a call to a bank.
async fn charge(order: u64) -> Paid {
    tokio::time::sleep(std::time::Duration::from_millis(order)).await;
    Paid::Now
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    let payments = Payments { locks: leasehold::connect("memory:").await? };
    println!("order 7: {:?}", payments.pay(7).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold::{MemoryBackend, TokioClock};

    use super::*;

    fn instance(store: &MemoryBackend) -> Payments {
        let locks = LockClient::builder(store.clone()).build().expect("a client");
        Payments { locks }
    }

    #[tokio::test]
    async fn an_order_that_another_instance_pays_is_left_to_it() {
        let store = MemoryBackend::new();
        let (ours, theirs) = (instance(&store), instance(&store));
        let guard = theirs.locks.lock("order:7").acquire().await.expect("free");
        assert_eq!(ours.pay(7).await.expect("the store answers"), Paid::Elsewhere);
        guard.release().await.expect("held");
        assert_eq!(ours.pay(7).await.expect("the store answers"), Paid::Now);
    }

    #[tokio::test]
    async fn a_lost_lock_is_an_error() {
        let store = MemoryBackend::new();
        let (ours, operator) = (instance(&store), instance(&store));
        let paying = tokio::spawn(async move { ours.pay(60_000).await });
        while operator.locks.break_lock("order:60000", None).await.expect("the store answers").is_empty() {
            tokio::task::yield_now().await;
        }
        let told = paying.await.expect("no panic").expect_err("the lock was broken");
        assert_eq!(told.kind(), ErrorKind::Lost);
    }

    // With the same clock in the client and the store, and tokio's time paused, an hour takes no time.
    #[tokio::test(start_paused = true)]
    async fn a_lease_is_kept_for_as_long_as_the_payment_takes() {
        let clock = TokioClock::new();
        let store = MemoryBackend::new().with_clock(clock);
        let locks = LockClient::builder(store).clock(clock).build().expect("a client");
        let payments = Payments { locks };
        let hour = u64::try_from(Duration::from_secs(3_600).as_millis()).expect("few");
        assert_eq!(payments.pay(hour).await.expect("held all the time"), Paid::Now);
    }
}
