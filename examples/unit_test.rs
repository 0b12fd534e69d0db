//! A service whose locks are tested without a server: on the memory backend, with a clock that the test puts forward.
//!
//! The service is given its client and does not know which store is behind it. Each function below `main` would be a
//! `#[tokio::test]` in a service's own crate; here `main` runs them. `cargo run --example unit_test`

use std::{
    future::{Future, pending},
    time::Duration,
};

use leasehold::{Error, ErrorKind, LockClient, ManualClock, MemoryBackend, SystemClock};

/// The service under test.
struct Billing {
    locks: LockClient,
}

#[derive(Debug, PartialEq, Eq)]
enum Run {
    Done,
    /// Another instance is at it.
    Skipped,
}

impl Billing {
    /// Sends the month's invoices, unless another instance does.
    async fn send_invoices(&self, sending: impl Future<Output = ()>) -> Result<Run, Error> {
        let Some(guard) = self.locks.lock("invoices").try_acquire().await? else { return Ok(Run::Skipped) };
        guard.protect(sending).await?;
        guard.release().await?;
        Ok(Run::Done)
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it did")]
async fn main() -> Result<(), Error> {
    it_runs_where_nobody_else_does().await?;
    it_skips_while_another_instance_runs().await?;
    it_stops_when_the_lease_has_run_out().await?;
    it_stops_when_an_operator_breaks_the_lock().await?;
    println!("4 tests passed, without a server and without waiting for a lease");
    Ok(())
}

async fn it_runs_where_nobody_else_does() -> Result<(), Error> {
    // A store for each test, so that tests which run at once do not meet. `memory:` in a URL is one for the process.
    let billing = Billing { locks: LockClient::builder(MemoryBackend::new()).build()? };
    assert_eq!(billing.send_invoices(async {}).await?, Run::Done);
    assert_eq!(billing.send_invoices(async {}).await?, Run::Done, "the first run has let go");
    Ok(())
}

async fn it_skips_while_another_instance_runs() -> Result<(), Error> {
    // Clones of a backend are one store: two instances of the service.
    let store = MemoryBackend::new();
    let billing = Billing { locks: LockClient::builder(store.clone()).build()? };
    let other = LockClient::builder(store).build()?.lock("invoices").acquire().await?;
    assert_eq!(billing.send_invoices(async { panic!("nothing is sent") }).await?, Run::Skipped);
    other.release().await
}

async fn it_stops_when_the_lease_has_run_out() -> Result<(), Error> {
    // The store and the client read one clock, as they would both live through a suspend of the machine.
    let clock = ManualClock::over(SystemClock);
    let store = MemoryBackend::new().with_clock(clock.clone());
    let locks = LockClient::builder(store).clock(clock.clone()).lease(Duration::from_secs(1)).build()?;
    let billing = Billing { locks };
    let sending = async {
        clock.advance(Duration::from_secs(3_600));
        pending::<()>().await;
    };
    let stopped = billing.send_invoices(sending).await.expect_err("the lease has run out");
    assert_eq!(stopped.kind(), ErrorKind::Lost, "{stopped}");
    Ok(())
}

async fn it_stops_when_an_operator_breaks_the_lock() -> Result<(), Error> {
    let store = MemoryBackend::new();
    let operator = LockClient::builder(store.clone()).build()?;
    let billing = Billing { locks: LockClient::builder(store).build()? };
    let sending = async {
        let broken = operator.break_lock("invoices", None).await.expect("the store answers");
        assert_eq!(broken.len(), 1);
        pending::<()>().await;
    };
    let stopped = billing.send_invoices(sending).await.expect_err("the lock is gone");
    assert_eq!(stopped.kind(), ErrorKind::Lost, "{stopped}");
    Ok(())
}
