//! Taking turns: contention between processes, and what a killed one leaves behind.

mod support;

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use support::{Running, Sandbox, alive, until};

/// Reads a number, gives others every chance to do the same, and writes it back raised by one.
const READ_MODIFY_WRITE: &str = "read n < counter; : $(true); echo $((n + 1)) > counter";

#[test]
fn two_shells_take_turns() {
    let sandbox = Sandbox::new();
    let script = "echo begin $0 >> log; sleep 0.1; echo end $0 >> log";
    let shells: Vec<Running> = ["one", "two", "three"]
        .iter()
        .map(|name| Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", script, name])))
        .collect();
    for shell in shells {
        assert_eq!(shell.finish().code(), 0);
    }
    let log = sandbox.text("log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 6);
    for turn in lines.chunks(2) {
        assert_eq!(turn[0].strip_prefix("begin "), turn[1].strip_prefix("end "), "{log}");
    }
}

#[test]
fn eight_processes_of_a_hundred_rounds_lose_no_update() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("counter"), "0\n").expect("a counter");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let ended = sandbox.run(&["run", "counter", "--", "sh", "-c", READ_MODIFY_WRITE]);
                    assert_eq!(ended.code(), 0, "{ended:?}");
                }
            });
        }
    });
    assert_eq!(sandbox.text("counter"), "800\n");
    assert!(sandbox.records("counter").is_empty(), "nobody holds it in the end");
}

#[test]
fn the_next_comes_in_within_the_lease_when_the_holder_is_killed() {
    let sandbox = Sandbox::new();
    let lease = Duration::from_secs(2);
    let holder = Running::start(sandbox.leasehold([
        "run",
        "--lease",
        "2s",
        "a",
        "--",
        "sh",
        "-c",
        "echo $$ > pid; exec sleep 1000",
    ]));
    let command = sandbox.wait_for_pid("pid");
    let waiter = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", "echo > in"]));
    assert!(alive(command));
    holder.signal(Signal::KILL);
    let killed_at = Instant::now();
    until("the command has died with leasehold", || !alive(command));
    assert!(killed_at.elapsed() < lease, "it did not live on until its lock was free");
    assert!(!sandbox.path("in").exists(), "and the lock is still its own");
    assert_eq!(waiter.finish().code(), 0);
    // The store's slack and the waiter's longest poll come on top of the lease; the rest is for a busy machine.
    assert!(killed_at.elapsed() < lease + Duration::from_secs(2), "{:?}", killed_at.elapsed());
}

#[test]
fn a_killed_waiter_leaves_nothing_in_the_way() {
    let sandbox = Sandbox::new();
    let holder = Running::start(sandbox.leasehold([
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "echo > held; until [ -e go ]; do sleep 0.02; done",
    ]));
    sandbox.wait_for_text("held", "\n");
    let waiter = Running::start(sandbox.leasehold(["run", "a", "--", "touch", "ran"]));
    until("the waiter waits", || {
        fs::read_dir(format!("/proc/{}/task", waiter.pid().as_raw_nonzero())).is_ok_and(|tasks| tasks.count() > 2)
    });
    waiter.signal(Signal::KILL);
    fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(holder.finish().code(), 0);
    assert_eq!(sandbox.run(&["run", "-w", "2s", "a", "--", "true"]).code(), 0);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn killed_at_any_moment_it_leaves_no_command_running() {
    let sandbox = Sandbox::new();
    for round in 0..60_u64 {
        let name = format!("lock {round}");
        let running = Running::start(sandbox.leasehold(["run", "--lease", "1s", &name, "--", "sleep", "1000"]));
        // Not a proof of anything: it moves the moment of the kill over the start of the command.
        thread::sleep(Duration::from_micros(round * 700));
        running.signal(Signal::KILL);
        let ended = running.finish();
        assert_eq!(ended.status.signal(), Some(9), "and all that had its stdout has ended, too: {ended:?}");
    }
}
