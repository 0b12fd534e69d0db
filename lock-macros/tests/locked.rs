//! Functions under locks, seen through a second client of the same store.
#![deny(warnings)]

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{Error, ErrorKind, LockClient, LockRecord, MemoryBackend, Owner, Selector, locked};

fn client(store: &MemoryBackend) -> LockClient {
    LockClient::builder(store.clone()).build().expect("a client")
}

async fn record(client: &LockClient, name: &str) -> Option<LockRecord> {
    client.inspect(Selector::name(name)).await.expect("memory answers").pop()
}

/// A service's own error.
#[derive(Debug, PartialEq)]
enum Failed {
    Lock(ErrorKind),
    Empty,
    Parse,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Lock(error.kind())
    }
}

impl From<std::num::ParseIntError> for Failed {
    fn from(_: std::num::ParseIntError) -> Self {
        Failed::Parse
    }
}

struct Order {
    id: u64,
    lines: (u32, u32),
}

#[locked(name = "order:{order.id:04}:{order.lines.0}{{x}}", label = "by {who}", lease = "20s", guard = held)]
async fn pay(client: &LockClient, other: &LockClient, order: Order, who: &str) -> Result<(u64, LockRecord), Failed> {
    let seen = record(other, "order:0007:3{x}").await.ok_or(Failed::Empty)?;
    assert!(held.is_held());
    Ok((held.fencing_token().get() + u64::from(order.lines.1), seen))
}

#[tokio::test]
async fn the_lock_is_held_while_the_body_runs_and_free_after_it() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let order = Order { id: 7, lines: (3, 0) };
    let (token, seen) = pay(&ours, &theirs, order, "nightly").await.expect("it is free");
    let holder = &seen.holders[0];
    assert_eq!((holder.token.get(), holder.label.as_deref()), (token, Some("by nightly")));
    let left = holder.remaining.expect("memory tells");
    assert!(
        left > Duration::from_secs(15) && left <= Duration::from_secs(20),
        "the lease is 20 s, and {left:?} is left"
    );
    assert!(record(&theirs, "order:0007:3{x}").await.is_none(), "it is released");
}

#[locked(name = "parse")]
async fn parse(client: &LockClient, text: &str, early: bool) -> Result<u32, Failed> {
    if early {
        return Err(Failed::Empty);
    }
    let number = text.parse::<u32>()?;
    Ok(number)
}

#[tokio::test]
async fn the_bodys_own_errors_pass_and_release() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    for (text, early, expected) in
        [("12", false, Ok(12)), ("x", false, Err(Failed::Parse)), ("12", true, Err(Failed::Empty))]
    {
        assert_eq!(parse(&ours, text, early).await, expected);
        assert!(record(&theirs, "parse").await.is_none(), "released after {expected:?}");
    }
}

#[locked(name = "busy", wait = "20ms")]
async fn impatient(client: &LockClient) -> Result<(), Failed> {
    Ok(())
}

#[locked(name = "busy", wait = "0s")]
async fn at_once(client: &LockClient) -> Result<(), Failed> {
    Ok(())
}

#[locked(name = "busy", wait = limit)]
async fn for_as_long_as(client: &LockClient, limit: Duration) -> Result<(), Failed> {
    Ok(())
}

#[tokio::test]
async fn errors_of_the_lock_are_converted() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let guard = theirs.lock("busy").acquire().await.expect("free");
    let timed_out = Err(Failed::Lock(ErrorKind::TimedOut));
    assert_eq!(impatient(&ours).await, timed_out);
    assert_eq!(at_once(&ours).await, timed_out);
    assert_eq!(for_as_long_as(&ours, Duration::from_millis(5)).await, timed_out);
    guard.release().await.expect("held");
    assert_eq!(at_once(&ours).await, Ok(()));
}

/// Notes that it was dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[locked(name = "endless")]
async fn endless(client: &LockClient, flag: Flag) -> Result<(), Failed> {
    let _flag = flag;
    std::future::pending().await
}

#[tokio::test]
async fn a_loss_drops_the_body() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let dropped = Arc::new(AtomicBool::new(false));
    let running = tokio::spawn({
        let (ours, flag) = (ours.clone(), Flag(Arc::clone(&dropped)));
        async move { endless(&ours, flag).await }
    });
    let end = Instant::now() + Duration::from_secs(10);
    while record(&theirs, "endless").await.is_none() {
        assert!(Instant::now() < end, "never acquired");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!dropped.load(Ordering::SeqCst));
    theirs.break_lock("endless", None).await.expect("memory answers");
    assert_eq!(running.await.expect("no panic"), Err(Failed::Lock(ErrorKind::Lost)));
    assert!(dropped.load(Ordering::SeqCst));
}

#[locked(name = "own", guard = held)]
async fn releases_what_was_broken(client: &LockClient, other: &LockClient, fails: bool) -> Result<(), Failed> {
    // No await after this: the loss is found by the release and not before.
    other.break_lock(held.name(), None).await?;
    if fails { Err(Failed::Empty) } else { Ok(()) }
}

#[tokio::test]
async fn a_release_that_finds_the_lock_gone_is_an_error_unless_the_body_has_one() {
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    assert_eq!(releases_what_was_broken(&ours, &theirs, false).await, Err(Failed::Lock(ErrorKind::Lost)));
    let told = releases_what_was_broken(&ours, &theirs, true).await;
    // The store may tell the loss while the body still awaits its own call.
    assert!(matches!(told, Err(Failed::Empty | Failed::Lock(ErrorKind::Lost))), "{told:?}");
}

#[locked(name = "account:{account}", guard = held, wait = "0s")]
async fn inner(client: &LockClient, account: u64) -> Result<u32, Failed> {
    Ok(held.hold_count())
}

#[locked(name = "account:{account}", wait = "0s")]
async fn outer(client: &LockClient, account: u64) -> Result<u32, Failed> {
    inner(client, account).await
}

#[locked(name = "account:{account}", wait = "0s", owner = owner)]
async fn owned(client: &LockClient, account: u64, owner: &Owner) -> Result<u32, Failed> {
    inner(client, account).await
}

#[locked(name = "account:{account}", wait = "0s")]
async fn spawns(client: &LockClient, account: u64) -> Result<u32, Failed> {
    let client = client.clone();
    tokio::spawn(async move { inner(&client, account).await }).await.expect("no panic")
}

#[tokio::test]
async fn a_nested_function_of_the_same_name_re_enters() {
    let store = MemoryBackend::new();
    let ours = client(&store);
    assert_eq!(inner(&ours, 7).await, Ok(1));
    assert_eq!(outer(&ours, 7).await, Ok(2));
    let owner = Owner::new();
    let guard = ours.lock("account:7").owner(&owner).acquire().await.expect("free");
    assert_eq!(owned(&ours, 7, &owner).await, Ok(3));
    assert_eq!(owner.scope(outer(&ours, 7)).await, Ok(3), "the ambient owner counts where none is given");
    assert_eq!(outer(&ours, 7).await, Err(Failed::Lock(ErrorKind::TimedOut)), "another owner");
    guard.release().await.expect("held");
    assert_eq!(spawns(&ours, 7).await, Err(Failed::Lock(ErrorKind::TimedOut)), "a spawned task is no part of it");
    assert!(record(&ours, "account:7").await.is_none(), "the last guard has released");
}

struct Shop<T> {
    client: Arc<LockClient>,
    shard: String,
    sold: Vec<T>,
}

impl<T: Clone + fmt::Display + Send> Shop<T> {
    /// A method keeps its documentation, its generics and its mutable self.
    #[locked(name = "{self.shard}:{item}", max_hold = Duration::from_secs(60))]
    pub(crate) async fn sell<'a>(&'a mut self, item: T, mut times: usize, (a, _): (u8, u8)) -> Result<&'a [T], Failed>
    where
        T: Sync,
    {
        while times > 0 {
            times -= 1;
            self.sold.push(item.clone());
        }
        assert_eq!(a, 1);
        Ok(&self.sold)
    }

    #[locked(name = name_of(&self.shard), client = self.client.as_ref(), min_hold = "1ms")]
    async fn close(self, note: impl Into<String> + Send) -> Result<String, Failed> {
        let owner = "a local of the same name as one of the attribute's";
        let guard: String = note.into();
        Ok(format!("{guard}, {}, {owner}", self.sold.len()))
    }
}

fn name_of(shard: &str) -> String {
    format!("close:{shard}")
}

#[tokio::test]
async fn methods_lock_by_the_fields_of_self() {
    let store = MemoryBackend::new();
    let mut shop = Shop { client: Arc::new(client(&store)), shard: "eu".to_owned(), sold: Vec::new() };
    assert_eq!(shop.sell("pear", 2, (1, 2)).await.expect("free"), ["pear", "pear"]);
    let closed = shop.close("done").await.expect("free");
    assert_eq!(closed, "done, 2, a local of the same name as one of the attribute's");
}

#[tokio::test]
async fn the_future_is_send_and_waits_for_its_first_poll() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let future = send(parse(&ours, "1", false));
    assert!(record(&theirs, "parse").await.is_none(), "nothing is asked before the first poll");
    assert_eq!(future.await, Ok(1));
}

mod renamed {
    pub(super) use leasehold as locks;
}

#[locked(crate = crate::renamed::locks, name = "x")]
async fn by_another_path(client: &LockClient) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn leasehold_may_have_another_path() {
    by_another_path(&client(&MemoryBackend::new())).await.expect("free");
}
