//! What a client counts, read from the text that a scraper would get.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use conformance_tests::{Fault, Faulty, Op};
use lock_core::{ErrorKind, LockClient, MemoryBackend, MetricGroup, Owner, Renew};
use metrics::LocalRecorderGuard;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Long enough for whatever a loaded machine makes slow.
const LIMIT: Duration = Duration::from_secs(10);

/// A recorder of one test: the runtime of a `tokio::test` has one thread, so all that is recorded arrives here.
struct Scrape {
    handle: PrometheusHandle,
    _installed: LocalRecorderGuard<'static>,
}

impl Scrape {
    fn install() -> Self {
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        Scrape { handle: recorder.handle(), _installed: metrics::set_default_local_recorder(recorder) }
    }

    /// The sum of the series of this name that have all these labels; None where there is no such series.
    fn read(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let text = self.handle.render();
        let has = |line: &str| labels.iter().all(|(key, value)| line.contains(&format!("{key}=\"{value}\"")));
        let lines = text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
        let values = lines.filter(|line| has(line)).map(|line| {
            line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a series ends in its value")
        });
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    fn is(&self, name: &str, labels: &[(&str, &str)], value: f64) -> bool {
        self.read(name, labels).is_some_and(|read| (read - value).abs() < 0.5)
    }

    #[track_caller]
    fn assert(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        assert!(self.is(name, labels, value), "{name}{labels:?} is not {value}:\n{}", self.handle.render());
    }

    /// For what happens in the background.
    async fn becomes(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        let end = Instant::now() + LIMIT;
        while !self.is(name, labels, value) {
            assert!(Instant::now() < end, "{name}{labels:?} never was {value}:\n{}", self.handle.render());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn client(store: &MemoryBackend) -> LockClient {
    LockClient::builder(store.clone()).namespace("shop").build().expect("a client")
}

#[tokio::test]
async fn every_way_that_an_acquisition_ends_is_counted_once() {
    let scrape = Scrape::install();
    let (store, owner) = (MemoryBackend::new(), Owner::new());
    let (ours, theirs) = (client(&store), client(&store));
    let guard = ours.lock("x").owner(&owner).acquire().await.expect("free");
    let inner = ours.lock("x").owner(&owner).acquire().await.expect("ours");
    assert!(theirs.lock("x").try_acquire().await.expect("answered").is_none());
    let late = theirs.lock("x").wait(Duration::from_millis(20)).acquire().await.expect_err("held");
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    let cancelled = tokio::time::timeout(Duration::from_millis(20), theirs.lock("x").acquire()).await;
    assert!(cancelled.is_err(), "held");
    let refused = theirs.lock("").acquire().await.expect_err("no name");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    theirs.break_lock("x", None).await.expect("answered");
    let lost = async { ours.lock("x").owner(&owner).acquire().await.expect_err("lost").kind() };
    guard.lost().await;
    assert_eq!(lost.await, ErrorKind::Lost);
    drop((guard, inner));
    theirs.close().await.expect("memory answers");
    let closed = theirs.lock("x").acquire().await.expect_err("closed");
    assert_eq!(closed.kind(), ErrorKind::Closed);

    let common = [("store", "memory"), ("namespace", "shop")];
    for outcome in ["granted", "reentered", "busy", "timed_out", "cancelled", "refused", "lost", "closed"] {
        let labels = [common[0], common[1], ("outcome", outcome)];
        scrape.assert("leasehold_acquisitions_total", &labels, 1.0);
        scrape.assert("leasehold_wait_seconds_count", &labels, 1.0);
    }
    scrape.assert("leasehold_acquisitions_total", &[("outcome", "unavailable")], 0.0);
    scrape.assert("leasehold_waiters", &common, 0.0);
    scrape.assert("leasehold_open_guards", &common, 0.0);
}

#[tokio::test]
async fn a_silent_store_is_unavailable_and_its_calls_are_unknown() {
    let scrape = Scrape::install();
    let faulty = Faulty::over(Arc::new(MemoryBackend::new()));
    let ours =
        LockClient::builder(faulty.clone()).request_timeout(Duration::from_millis(50)).build().expect("a client");
    faulty.all(Op::Attempt, Fault::Refuse);
    let silent = ours.lock("x").try_acquire().await.expect_err("unreachable");
    assert_eq!(silent.kind(), ErrorKind::Unavailable);
    scrape.assert("leasehold_acquisitions_total", &[("outcome", "unavailable")], 1.0);
    let asked = faulty.count(Op::Attempt) as f64;
    scrape.assert("leasehold_call_seconds_count", &[("call", "attempt"), ("outcome", "unknown")], asked);
    scrape.assert("leasehold_call_seconds_count", &[("call", "attempt"), ("outcome", "answered")], 0.0);
}

#[tokio::test]
async fn a_loss_is_counted_once_by_its_reason_and_the_hold_by_its_end() {
    let scrape = Scrape::install();
    let store = MemoryBackend::new();
    let (ours, theirs) = (client(&store), client(&store));
    let short = Duration::from_millis(60);

    let expired = ours.lock("a").lease(short).renew(Renew::Off).acquire().await.expect("free");
    expired.lost().await;
    assert_eq!(expired.release().await.expect_err("lost").kind(), ErrorKind::Lost);

    let aged = ours.lock("b").max_hold(short).acquire().await.expect("free");
    aged.lost().await;
    drop(aged);

    let gone = ours.lock("c").acquire().await.expect("free");
    theirs.break_lock("c", None).await.expect("answered");
    gone.lost().await;
    drop(gone);

    let released = ours.lock("d").acquire().await.expect("free");
    released.release().await.expect("held");
    drop(ours.lock("e").acquire().await.expect("free"));

    let open = ours.lock("f").acquire().await.expect("free");
    ours.close().await.expect("memory answers");
    assert!(!open.is_held());
    drop(open);

    for reason in ["expired", "max_hold", "gone", "closed"] {
        scrape.becomes("leasehold_losses_total", &[("reason", reason)], 1.0).await;
        scrape.assert("leasehold_hold_seconds_count", &[("end", reason)], 1.0);
    }
    for end in ["released", "dropped"] {
        scrape.assert("leasehold_hold_seconds_count", &[("end", end)], 1.0);
    }
    scrape.assert("leasehold_losses_total", &[], 4.0);
    let held = scrape.read("leasehold_hold_seconds_sum", &[("end", "max_hold")]).expect("counted");
    assert!(held >= short.as_secs_f64(), "{held} s");
    scrape.assert("leasehold_open_guards", &[], 0.0);
}

#[tokio::test]
async fn a_renewal_that_comes_after_the_release_is_no_loss() {
    let scrape = Scrape::install();
    let faulty = Faulty::over(Arc::new(MemoryBackend::new()));
    let ours = LockClient::builder(faulty.clone()).build().expect("a client");
    faulty.next(Op::Extend, Fault::DelayRequest(Duration::from_millis(150)));
    let guard = ours.lock("x").lease(Duration::from_millis(600)).acquire().await.expect("free");
    let end = Instant::now() + LIMIT;
    while faulty.count(Op::Extend) == 0 {
        assert!(Instant::now() < end, "never renewed");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    guard.release().await.expect("held");
    scrape.becomes("leasehold_renewals_total", &[("outcome", "not_held")], 1.0).await;
    scrape.assert("leasehold_hold_seconds_count", &[("end", "released")], 1.0);
    scrape.assert("leasehold_losses_total", &[], 0.0);
}

#[tokio::test]
async fn a_lease_that_ran_out_before_the_close_has_run_out() {
    let scrape = Scrape::install();
    let ours = client(&MemoryBackend::new());
    let guard = ours.lock("x").lease(Duration::from_millis(60)).renew(Renew::Off).acquire().await.expect("free");
    // Blocks on purpose: the engine must not have told it.
    std::thread::sleep(Duration::from_millis(150));
    assert!(!guard.is_held());
    ours.close().await.expect("memory answers");
    scrape.assert("leasehold_losses_total", &[("reason", "expired")], 1.0);
    scrape.assert("leasehold_losses_total", &[], 1.0);
}

#[tokio::test]
async fn guards_waiters_and_renewals_are_seen_while_they_last() {
    let scrape = Scrape::install();
    let store = MemoryBackend::new();
    let ours = client(&store);
    let guard = ours.lock("x").lease(Duration::from_millis(200)).acquire().await.expect("free");
    scrape.assert("leasehold_open_guards", &[("store", "memory")], 1.0);
    let waiter = tokio::spawn(ours.lock("x").acquire());
    scrape.becomes("leasehold_waiters", &[("store", "memory")], 1.0).await;
    let end = Instant::now() + LIMIT;
    while scrape.read("leasehold_renewals_total", &[("outcome", "extended")]) < Some(3.0) {
        assert!(Instant::now() < end, "never renewed:\n{}", scrape.handle.render());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    guard.release().await.expect("held");
    let next = waiter.await.expect("no panic").expect("its turn");
    scrape.assert("leasehold_waiters", &[], 0.0);
    scrape.assert("leasehold_open_guards", &[], 1.0);
    drop(next);
    scrape.assert("leasehold_open_guards", &[], 0.0);
}

#[tokio::test]
async fn clean_ups_pile_up_while_the_store_refuses_them() {
    let scrape = Scrape::install();
    let faulty = Faulty::over(Arc::new(MemoryBackend::new()));
    let ours = LockClient::builder(faulty.clone()).build().expect("a client");
    faulty.all(Op::Release, Fault::Refuse);
    for name in ["a", "b", "c"] {
        drop(ours.lock(name).acquire().await.expect("free"));
    }
    scrape.becomes("leasehold_cleanups_total", &[("outcome", "failed")], 3.0).await;
    scrape.assert("leasehold_pending_cleanups", &[], 3.0);
    faulty.heal();
    scrape.becomes("leasehold_cleanups_total", &[("outcome", "removed")], 3.0).await;
    scrape.becomes("leasehold_pending_cleanups", &[], 0.0).await;
}

#[tokio::test]
async fn no_name_is_told_unless_it_is_asked_for() {
    let scrape = Scrape::install();
    let store = MemoryBackend::new();
    let plain = client(&store);
    plain.lock("order:1001").acquire().await.expect("free").release().await.expect("held");
    assert!(!scrape.handle.render().contains("order"), "{}", scrape.handle.render());

    let by_prefix = LockClient::builder(store.clone()).metric_group(MetricGroup::Prefix).build().expect("a client");
    for name in ["order:1001", "order:1002", "nightly"] {
        by_prefix.lock(name).acquire().await.expect("free").release().await.expect("held");
    }
    scrape.assert("leasehold_acquisitions_total", &[("group", "order"), ("outcome", "granted")], 2.0);
    scrape.assert("leasehold_hold_seconds_count", &[("group", ""), ("end", "released")], 1.0);
    assert!(!scrape.handle.render().contains("1001"), "{}", scrape.handle.render());

    let by_name = LockClient::builder(store).metric_group(MetricGroup::Name).build().expect("a client");
    by_name.lock("order:1001").acquire().await.expect("free").release().await.expect("held");
    scrape.assert("leasehold_acquisitions_total", &[("group", "order:1001"), ("outcome", "granted")], 1.0);
}

#[tokio::test]
async fn the_oldest_hold_of_all_clients_is_told_while_it_lasts() {
    let scrape = Scrape::install();
    let store = MemoryBackend::new();
    let of = || LockClient::builder(store.clone()).namespace("aged").build().expect("a client");
    let (ours, theirs) = (of(), of());
    let oldest = || scrape.read("leasehold_oldest_hold_timestamp_seconds", &[("namespace", "aged")]);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    assert_eq!(oldest(), Some(0.0), "nothing is held");
    let began = now();
    let first = ours.lock("a").acquire().await.expect("free");
    let since = oldest().expect("a series");
    assert!((began - 0.001..=now()).contains(&since), "{since} is not {began}");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let second = theirs.lock("b").acquire().await.expect("free");
    assert_eq!(oldest(), Some(since), "the first is older");
    first.release().await.expect("held");
    let next = oldest().expect("a series");
    assert!(next > since && next <= now(), "{next} is not the second's, which came after {since}");
    theirs.break_lock("b", None).await.expect("answered");
    second.lost().await;
    assert_eq!(oldest(), Some(0.0), "a lost lock is not held");
    let forgotten = ours.lock("c").acquire().await.expect("free");
    std::mem::forget(forgotten);
    assert!(oldest() > Some(next), "a guard that is forgotten shows");
}

#[tokio::test]
async fn calls_that_panic_are_counted_and_so_is_their_hold() {
    let scrape = Scrape::install();
    let faulty = Faulty::over(Arc::new(MemoryBackend::new()));
    let builder = LockClient::builder(faulty.clone()).namespace("panics");
    let ours = builder.request_timeout(Duration::from_millis(100)).build().expect("a client");
    let guard = ours.lock("x").acquire().await.expect("free");
    faulty.all(Op::Release, Fault::Panic);
    assert_eq!(guard.release().await.expect_err("no answer").kind(), ErrorKind::Unavailable);
    scrape.becomes("leasehold_hold_seconds_count", &[("namespace", "panics"), ("end", "unconfirmed")], 1.0).await;
    let asked = faulty.count(Op::Release) as f64;
    scrape.assert("leasehold_call_seconds_count", &[("call", "release"), ("outcome", "unknown")], asked);
    faulty.heal();
    scrape.becomes("leasehold_pending_cleanups", &[("namespace", "panics")], 0.0).await;
}
