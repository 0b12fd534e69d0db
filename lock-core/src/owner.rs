//! The owner: an identity for re-entering locks, carried explicitly or by a scope (L12).

use std::{
    fmt,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
};

/// An identity under which locks are re-entered (L12). Clones are the same owner.
///
/// Reentrancy is never by thread or task: two futures that run inside one owner's scope share its locks, and a task
/// that is spawned inside it does not inherit it.
///
/// ```
/// # use lock_core::{LockClient, MemoryBackend, Owner};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_core::Error> {
/// # let client = LockClient::builder(MemoryBackend::new()).build()?;
/// let owner = Owner::new();
/// let outer = client.lock("account:7").owner(&owner).acquire().await?;
/// let inner = client.lock("account:7").owner(&owner).acquire().await?;
/// assert_eq!(inner.fencing_token(), outer.fencing_token());
/// assert_eq!(inner.hold_count(), 2);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

tokio::task_local! {
    static AMBIENT: Owner;
}

impl Owner {
    /// A new owner, different from every other in this process.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default value that differs each time would surprise")]
    pub fn new() -> Self {
        Owner(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs a future with this owner for every acquisition in it that names no other.
    ///
    /// An acquisition reads the ambient owner when it is first polled. Tasks spawned inside do not inherit it.
    ///
    /// # Cancel safety
    ///
    /// As safe as the future inside.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        AMBIENT.scope(self.clone(), future).await
    }

    /// The owner whose scope this runs in, if any.
    #[must_use]
    pub fn current() -> Option<Owner> {
        AMBIENT.try_with(Clone::clone).ok()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.0)
    }
}
