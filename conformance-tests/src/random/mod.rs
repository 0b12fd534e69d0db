//! Random calls of the public API, on a store that several clients share: what no case thought of.
//!
//! A play is a list of steps, drawn from a seed and shrunk by proptest when it fails. While it runs, no two claims of a
//! name may be valid at once (L1); at its end the tokens must follow the grants (L13), and nothing may be left (L20).

mod play;
mod steps;

use std::{
    env,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::Backend;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::Outcome;

/// The variable that says for how many seconds to play; 5 unless set.
pub const SECONDS: &str = "LEASEHOLD_RANDOM_SECONDS";

/// The variable that repeats the plays of a seed.
const SEED: &str = "LEASEHOLD_TEST_SEED";

/// How many plays are drawn between two looks at the clock.
const AT_ONCE: u32 = 4;

/// Plays until the time is over. `connect` opens the store anew, as another client would.
///
/// # Panics
///
/// When a play breaks the contract, with the shortest play that still does and the seed.
pub fn play_randomly<F, C>(connect: F)
where
    F: Fn() -> C + Send + Sync,
    C: Future<Output = Outcome<Arc<dyn Backend>>> + Send,
{
    let seconds = env::var(SECONDS).ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed: u64 = env::var(SEED).ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let until = Instant::now() + Duration::from_secs(seconds);
    let panics = count_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime for the plays");
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: AT_ONCE, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &key));
    let mut plays = 0_u32;
    while Instant::now() < until {
        let outcome = runner.run(&steps::play(), |steps| {
            let before = panics.load(Ordering::SeqCst);
            let outcome = runtime.block_on(play::play(&connect, &steps));
            let panicked = panics.load(Ordering::SeqCst) - before;
            match outcome {
                _ if panicked > 0 => Err(TestCaseError::fail(format!("{panicked} panics"))),
                Ok(()) => Ok(()),
                Err(stop) => Err(TestCaseError::fail(format!("{stop:?}"))),
            }
        });
        if let Err(TestError::Fail(reason, steps)) = outcome {
            panic!("{reason}\nseed {seed}, after {plays} plays; the shortest play that fails so:\n{steps:#?}");
        }
        plays += AT_ONCE;
    }
    assert!(plays > 0, "{SECONDS} gave no time for a single play");
}

/// Counts panics from here on, wherever they happen: also those in tasks that nobody awaits.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (count, report) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        count.fetch_add(1, Ordering::SeqCst);
        report(panic);
    }));
    panics
}
