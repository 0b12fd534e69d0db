//! `run --min-hold`: a job that is done at once keeps its lock for a while.

mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Running, Sandbox, alive, until};

const STAY: Duration = Duration::from_secs(2);

#[test]
fn the_lock_and_the_command_stay_until_the_time_has_passed() {
    let sandbox = Sandbox::new();
    let began = Instant::now();
    let job = Running::start(sandbox.leasehold(["run", "--min-hold", "2s", "job", "--", "sh", "-c", "echo $$ > pid"]));
    let pid = sandbox.wait_for_pid("pid");
    until("CMD has ended", || !alive(pid));
    // This may only be too late to see the lock held, never too early to see it free.
    let held = sandbox.records("job").len();
    assert!(held == 1 || began.elapsed() >= STAY, "free after {:?}", began.elapsed());
    let next = sandbox.run(&["run", "-n", "-E", "9", "job", "--", "true"]);
    assert!(next.code() == 9 || began.elapsed() >= STAY, "{next:?}");
    assert_eq!(job.finish().code(), 0);
    assert!(began.elapsed() >= STAY, "after {:?}", began.elapsed());
    assert!(sandbox.records("job").is_empty());
}

#[test]
fn a_signal_ends_the_stay_and_gives_the_lock_back() {
    let sandbox = Sandbox::new();
    let job = ["run", "--min-hold", "1h", "job", "--", "sh", "-c", "echo $$ > pid; exit 3"];
    let job = Running::start(sandbox.leasehold(job));
    let pid = sandbox.wait_for_pid("pid");
    until("CMD has ended", || !alive(pid));
    assert_eq!(sandbox.records("job").len(), 1);
    job.signal(Signal::TERM);
    assert_eq!(job.finish().code(), 3, "CMD's own");
    assert!(sandbox.records("job").is_empty());
}

#[test]
fn a_command_that_is_not_there_keeps_nothing() {
    let sandbox = Sandbox::new();
    let failed = sandbox.run(&["run", "--min-hold", "1h", "job", "--", "./nosuch"]);
    assert_eq!(failed.code(), 127, "{failed:?}");
    assert!(sandbox.records("job").is_empty());
}
