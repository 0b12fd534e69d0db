//! One run of one case: a runtime of its own, a hard limit, and a look at what it left behind.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};

use crate::{Case, Failure, Fixture, Outcome, Stop, World, eventually, log};

/// How long a case's leftovers may take to go: the longest lease that a case lets run out, and the machine's noise.
const SETTLE: Duration = Duration::from_secs(5);

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Everything that the case cites was proved.
    Passed,
    /// The store cannot run the case, for this reason.
    Skipped(String),
    /// The contract does not hold, or the case could not find out.
    Failed {
        /// What was seen.
        failure: Failure,
        /// The last that the libraries logged.
        log: String,
    },
}

/// Runs a case on a fixture's store, to its end or its limit. Blocks.
///
/// # Panics
///
/// When the system refuses a thread.
#[must_use]
pub fn run(case: &Case, fixture: &Arc<dyn Fixture>) -> Verdict {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    log::install();
    let thread = log::thread_name(RUNS.fetch_add(1, Ordering::Relaxed), case.name());
    let (sender, receiver) = mpsc::channel();
    let job = {
        let (case, fixture, thread) = (case.clone(), Arc::clone(fixture), thread.clone());
        move || {
            // Nobody listens any more once the limit has passed.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(|| in_runtime(&case, fixture, &thread))));
        }
    };
    // A hung case keeps its thread: it cannot be ended from outside, only left behind and reported.
    thread::Builder::new().name(thread.clone()).spawn(job).expect("the system gives a thread to each case");
    let ended = receiver.recv_timeout(case.limit());
    let (log, panics) = log::take(&thread);
    let outcome = match ended {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(Stop::broken(format!("panicked: {}", words(&*panic)))),
        Err(_) => Err(Stop::broken(format!("hung: no end within {:?}", case.limit()))),
    };
    verdict(outcome, &panics, log)
}

fn in_runtime(case: &Case, fixture: Arc<dyn Fixture>, thread: &str) -> Outcome {
    let runtime = runtime(thread)?;
    let outcome = runtime.block_on(async {
        let world = World::of(fixture.of_one_case().await?.unwrap_or(fixture)).await?;
        case.run(world.clone()).await?;
        left_behind(&world).await
    });
    // What still blocks after this is left to the process.
    runtime.shutdown_timeout(Duration::from_secs(2));
    outcome
}

/// A runtime whose threads tell the log which run they work for.
pub(crate) fn runtime(thread: &str) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).thread_name(thread).enable_all().build()
}

/// Whatever a case did, its clients and guards are gone now, and so must be their claims (L20).
async fn left_behind(world: &World) -> Outcome {
    let mut left = 0;
    let result = eventually("L20.a", SETTLE, "no claim is left in the case's namespace", async || {
        left = world.oracle().claims(world.namespace()).await?;
        Ok(left == 0)
    })
    .await;
    match result {
        Err(Stop::Skipped(_)) => Ok(()),
        other => other,
    }
}

fn verdict(outcome: Outcome, panics: &[String], log: String) -> Verdict {
    match outcome {
        Ok(()) if panics.is_empty() => Verdict::Passed,
        Ok(()) => {
            let Stop::Failed(failure) = Stop::failed("L11.b", format!("library code panicked: {}", panics.join("; ")))
            else {
                return Verdict::Passed;
            };
            Verdict::Failed { failure, log }
        }
        Err(Stop::Skipped(reason)) => Verdict::Skipped(reason),
        Err(Stop::Failed(mut failure)) => {
            if !panics.is_empty() {
                failure.message.push_str(&format!("\npanics: {}", panics.join("; ")));
            }
            Verdict::Failed { failure, log }
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}
