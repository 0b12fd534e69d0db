//! Rides that end in every way: each call comes to its end once, and each caller that waits has its answer.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use tokio::{runtime::Builder, task::JoinSet};

use super::*;

const CALLS: usize = 1_200;
const LIMIT: Duration = Duration::from_secs(20);

/// What becomes of a caller.
#[derive(Clone, Copy, Debug)]
enum Caller {
    Waits,
    RidesFirst,
    /// It polls once, and then not for longer than a ride.
    Starves,
    NeverPolls,
    Leaves,
    Forgets,
}

const CALLERS: [Caller; 6] =
    [Caller::Waits, Caller::RidesFirst, Caller::Starves, Caller::NeverPolls, Caller::Leaves, Caller::Forgets];

/// A call that is ready at once, or after some sleeps of less and of more than a ride.
async fn call(number: usize, ended: Arc<AtomicUsize>) -> usize {
    for _ in 0..fastrand::u8(..3) {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..18))).await;
    }
    ended.fetch_add(1, Ordering::SeqCst);
    number
}

async fn poll_once<T: Send + 'static>(carried: &mut Carried<T>) -> Poll<Option<T>> {
    poll_fn(|cx| Poll::Ready(carried.poll_unpin(cx))).await
}

async fn call_as(caller: Caller, carrier: Arc<Carrier>, number: usize, ended: Arc<AtomicUsize>) {
    let mut carried = carrier.carry(call(number, ended));
    let answer = match caller {
        Caller::Waits => carried.await,
        Caller::RidesFirst => match carried.ride().await {
            Some(answer) => answer,
            None => carried.await,
        },
        Caller::Starves => match poll_once(&mut carried).await {
            Poll::Ready(answer) => answer,
            Poll::Pending => {
                tokio::time::sleep(RIDE * 2).await;
                carried.await
            }
        },
        Caller::NeverPolls => return drop(carried),
        Caller::Leaves => {
            let _ = poll_once(&mut carried).await;
            return;
        }
        Caller::Forgets => {
            let _ = poll_once(&mut carried).await;
            return mem::forget(carried);
        }
    };
    assert_eq!(answer, Some(number), "{caller:?}");
}

async fn eventually(what: &str, met: impl Fn() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < LIMIT, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_once_and_every_caller_has_its_answer() {
    let carrier = Arc::new(Carrier::new(Handle::current()));
    let ended = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for number in 0..CALLS {
        let caller = CALLERS[number % CALLERS.len()];
        callers.spawn(call_as(caller, Arc::clone(&carrier), number, Arc::clone(&ended)));
        if number % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let all = tokio::time::timeout(LIMIT, callers.join_all()).await;
    assert!(all.is_ok(), "a caller waits for ever");
    eventually("all calls have ended", || ended.load(Ordering::SeqCst) == CALLS).await;
    eventually("nobody looks at rides that are over", || !carrier.rides.lock().minded).await;
    let rides = carrier.rides.lock();
    assert!(rides.young.is_empty() && rides.old.is_empty(), "rides that are over are kept");
}

#[tokio::test]
async fn a_call_that_panics_ends_without_an_answer() {
    let carrier = Carrier::new(Handle::current());
    let early = carrier.carry(async { std::panic::panic_any("on purpose, during the ride") });
    assert_eq!(early.await, None::<()>);
    let late = carrier.carry(async {
        tokio::time::sleep(RIDE * 2).await;
        std::panic::panic_any("on purpose, in a task")
    });
    assert_eq!(late.await, None::<()>);
}

#[test]
fn the_end_of_the_runtime_ends_every_call_without_an_answer() {
    let theirs = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let ours = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let carrier = Carrier::new(theirs.handle().clone());
    let mut riding = carrier.carry(std::future::pending::<()>());
    let mut away = carrier.carry(std::future::pending::<()>());
    ours.block_on(async {
        assert!(poll_once(&mut away).await.is_pending());
        eventually("the ride is over", || away.is_away()).await;
        assert!(poll_once(&mut riding).await.is_pending() || riding.is_away());
    });
    theirs.shutdown_background();
    ours.block_on(async {
        let both = tokio::time::timeout(LIMIT, async { (riding.await, away.await) }).await;
        assert_eq!(both.ok(), Some((None, None)), "a caller on another runtime waits for ever");
        let late = carrier.carry(std::future::pending::<()>());
        assert_eq!(tokio::time::timeout(LIMIT, late).await.ok(), Some(None), "nobody looks after a later ride");
    });
}
