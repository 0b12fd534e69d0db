//! Locks for threads: the promises of guards without a runtime in sight.
#![cfg(feature = "blocking")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use leasehold::{ErrorKind, LockClient, LossReason, MemoryBackend, Owner, blocking::Client};

const SOON: Duration = Duration::from_secs(10);

fn client(store: &MemoryBackend) -> Client {
    Client::new(LockClient::builder(store.clone()).lease(Duration::from_secs(60))).expect("a client")
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < end, "not within {SOON:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_lock_is_free_then_taken_then_free() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    let guard = one.lock("x").acquire().expect("free");
    assert!(guard.is_held() && guard.remaining() > Duration::ZERO && guard.hold_count() == 1);
    assert!(other.lock("x").try_acquire().expect("an answer").is_none());
    let error = other.lock("x").wait(Duration::from_millis(50)).acquire().expect_err("held");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    guard.extend(Duration::from_secs(90)).expect("held");
    assert!(guard.remaining() > Duration::from_secs(60));
    let token = guard.fencing_token();
    guard.release().expect("held");
    assert!(one.inspect("").expect("an answer").is_empty());
    assert!(other.lock("x").try_acquire().expect("an answer").expect("free").fencing_token() > token);
}

#[test]
fn eight_threads_count_under_one_lock() {
    let store = MemoryBackend::new();
    let (shared, inside, count) = (client(&store), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..8)
        .map(|n| {
            // Half of them share a client, half have one of their own.
            let client = if n % 2 == 0 { shared.clone() } else { client(&store) };
            let (inside, count) = (Arc::clone(&inside), Arc::clone(&count));
            thread::spawn(move || {
                for _ in 0..50 {
                    let counted = client.lock("count").run(|_| {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                        let before = count.load(Ordering::SeqCst);
                        thread::yield_now();
                        count.store(before + 1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    });
                    counted.expect("a turn");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(count.load(Ordering::SeqCst), 400);
}

#[test]
fn a_drop_and_a_panic_release() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    drop(one.lock("x").acquire().expect("free"));
    other.lock("x").wait(SOON).acquire().expect("free again").release().expect("held");
    let panicked = catch_unwind(AssertUnwindSafe(|| one.lock("x").run(|_| panic!("in the body"))));
    assert!(panicked.is_err());
    other.lock("x").wait(SOON).acquire().expect("free again").release().expect("held");
}

#[test]
fn the_last_handle_leaves_nothing_behind() {
    let store = MemoryBackend::new();
    let other = client(&store);
    let one = client(&store);
    let guard = one.lock("x").acquire().expect("free");
    // The guard keeps its client alive, and goes on being renewed without it.
    drop(one);
    assert!(guard.is_held());
    assert_eq!(other.inspect("x").expect("an answer").len(), 1);
    drop(guard);
    assert!(other.inspect("x").expect("an answer").is_empty(), "that drop was the last, and waited");
}

#[test]
fn a_loss_is_told_to_who_waits_for_it() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    let guard = one.lock("x").acquire().expect("free");
    assert_eq!(guard.wait_lost(Duration::from_millis(20)), None);
    other.break_lock("x", None).expect("broken");
    assert_eq!(guard.wait_lost(SOON), Some(LossReason::Gone));
    assert_eq!(guard.release().expect_err("lost").kind(), ErrorKind::Lost);
    let lost = one.lock("x").run(|guard| {
        other.break_lock("x", None).expect("broken");
        guard.wait_lost(SOON)
    });
    assert_eq!(lost.expect_err("lost").kind(), ErrorKind::Lost);
}

#[test]
fn an_owner_re_enters_and_a_close_ends_it_all() {
    let store = MemoryBackend::new();
    let (one, other) = (client(&store), client(&store));
    let owner = Owner::new();
    let outer = one.lock("x").owner(&owner).acquire().expect("free");
    let inner = one.lock("x").owner(&owner).acquire().expect("re-entered");
    assert_eq!((inner.hold_count(), inner.fencing_token()), (2, outer.fencing_token()));
    let waiting = {
        let one = one.clone();
        thread::spawn(move || one.lock("x").acquire().map(drop))
    };
    eventually("it waits", || one.inspect("x").is_ok_and(|records| records.len() == 1));
    one.close().expect("closed");
    assert_eq!(waiting.join().expect("no panic").expect_err("closed").kind(), ErrorKind::Closed);
    assert!(!outer.is_held() && !inner.is_held());
    assert_eq!(one.lock("y").try_acquire().expect_err("closed").kind(), ErrorKind::Closed);
    assert!(other.inspect("").expect("an answer").is_empty());
}

#[test]
fn nothing_panics_in_a_task() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // It holds the thread up, which is why it is not for tasks; but it answers, and its drop does not panic.
        let client = leasehold::blocking::connect("memory:?namespace=task").expect("connected");
        let guard = client.lock("x").acquire().expect("free");
        drop(client);
        drop(guard);
    });
}
