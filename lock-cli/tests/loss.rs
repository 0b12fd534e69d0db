//! A lock that is lost while CMD runs: CMD is ended in time, and the code is 70.

mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Running, Sandbox, alive, blocked::Blocked, until};

/// Writes its pid, notes a TERM, and lets nothing but KILL end it.
const STUBBORN: &str = "trap 'echo TERM >> log' TERM; echo $$ > pid; while :; do sleep 0.02; done";

/// Writes its pid and ends on TERM.
const OBEDIENT: &str = "echo $$ > pid; exec sleep 1000";

#[test]
fn a_holder_that_was_stopped_past_its_lease_finds_its_command_ended() {
    let sandbox = Sandbox::new();
    for script in [OBEDIENT, STUBBORN] {
        let running = Running::start(sandbox.leasehold(["run", "--lease", "1s", "a", "--", "sh", "-c", script]));
        let command = sandbox.wait_for_pid("pid");
        running.signal(Signal::STOP);
        // Someone else has had the lock in between: this is what proves that the lease has run out.
        assert_eq!(sandbox.run(&["run", "a", "--", "touch", "others"]).code(), 0);
        assert!(alive(command), "nobody could end it while leasehold was stopped");
        running.signal(Signal::CONT);
        let continued_at = Instant::now();
        until("the command has ended", || !alive(command));
        assert!(continued_at.elapsed() < Duration::from_secs(1), "at once, without any grace");
        let ended = running.finish();
        assert_eq!(ended.code(), 70, "{ended:?}");
        assert!(ended.stderr.contains("KILL"), "{ended:?}");
        std::fs::remove_file(sandbox.path("pid")).expect("the next round writes it anew");
    }
}

#[test]
fn a_command_that_ended_while_its_holder_was_stopped_past_the_lease_gives_70_too() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; exit 5";
    let running = Running::start(sandbox.leasehold(["run", "--lease", "1s", "a", "--", "sh", "-c", script]));
    let command = sandbox.wait_for_pid("pid");
    running.signal(Signal::STOP);
    assert_eq!(sandbox.run(&["run", "a", "--", "touch", "go"]).code(), 0);
    until("the command has ended", || !alive(command));
    running.signal(Signal::CONT);
    let ended = running.finish();
    assert_eq!(ended.code(), 70, "{ended:?}");
    assert!(ended.stderr.contains("by itself") && ended.stderr.contains('5'), "{ended:?}");
}

#[test]
fn a_short_stop_is_no_loss() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; exit 5";
    let running = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", script]));
    sandbox.wait_for_pid("pid");
    running.signal(Signal::STOP);
    until("it is stopped", || support::state(running.pid()) == Some('T'));
    running.signal(Signal::CONT);
    std::fs::write(sandbox.path("go"), "").expect("a file");
    let ended = running.finish();
    assert_eq!((ended.code(), ended.stderr.as_str()), (5, ""));
}

#[test]
fn while_renewals_fail_the_command_gets_term_and_then_kill_before_the_lease_ends() {
    for (script, sent) in [(OBEDIENT, "TERM"), (STUBBORN, "KILL")] {
        let sandbox = Sandbox::new();
        let arguments = ["run", "--lease", "3s", "--grace", "1s", "a", "--", "sh", "-c", script];
        let running = Running::start(sandbox.leasehold(arguments));
        let command = sandbox.wait_for_pid("pid");
        let blocked = Blocked::begin(&sandbox);
        let blocked_at = Instant::now();
        until("the command has ended", || !alive(command));
        let lived = blocked_at.elapsed();
        // The last renewal came at most a lease before, so the deadline is at most one lease away.
        assert!(lived < Duration::from_secs(3), "{script}: it lived on for {lived:?}");
        let ended = running.finish();
        assert_eq!(ended.code(), 70, "{ended:?}");
        assert!(ended.stderr.contains(sent), "{ended:?}");
        assert!(!ended.stderr.contains("KILL to") || sent == "KILL", "{ended:?}");
        if script == STUBBORN {
            assert_eq!(sandbox.text("log"), "TERM\n", "TERM came first, and once");
            assert!(lived > Duration::from_millis(900), "and it had its grace: {lived:?}");
        }
        blocked.end();
    }
}

#[test]
fn a_hold_that_recovers_after_term_is_kept_and_told() {
    let sandbox = Sandbox::new();
    let script = "trap 'echo TERM >> log' TERM; echo $$ > pid; until [ -e go ]; do sleep 0.02; done; exit 5";
    let arguments = ["run", "--lease", "6s", "--grace", "2s", "a", "--", "sh", "-c", script];
    let running = Running::start(sandbox.leasehold(arguments));
    let command = sandbox.wait_for_pid("pid");
    let blocked = Blocked::begin(&sandbox);
    sandbox.wait_for_text("log", "TERM");
    blocked.end();
    let renewed = |sandbox: &Sandbox| sandbox.records("a")[0].holders[0].remaining > Some(Duration::from_secs(4));
    until("it is renewed again", || renewed(&sandbox));
    assert!(alive(command), "its deadline never came");
    std::fs::write(sandbox.path("go"), "").expect("a file");
    let ended = running.finish();
    assert_eq!(ended.code(), 70, "it was signalled for the lock's sake: {ended:?}");
    assert_eq!(sandbox.text("log"), "TERM\n");
}

#[test]
fn a_stderr_that_nobody_reads_does_not_keep_the_command_alive() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    let mut command = sandbox.leasehold(["run", "--lease", "2s", "a", "--", "sh", "-c", STUBBORN]);
    command.stderr(writer);
    let running = Running::start(command);
    let pid = sandbox.wait_for_pid("pid");
    let blocked = Blocked::begin(&sandbox);
    until("the command has ended", || !alive(pid));
    assert!(alive(running.pid()), "leasehold is still waiting to tell");
    drop(reader);
    assert_eq!(running.finish().code(), 70);
    blocked.end();
}

/// Fills a pipe to the brim.
fn fill(mut pipe: &std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::io::Write as _;
    let flags = fcntl_getfl(pipe).expect("flags");
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK).expect("non-blocking");
    while pipe.write(&[0; 4096]).is_ok() {}
    while pipe.write(&[0]).is_ok() {}
    fcntl_setfl(pipe, flags).expect("blocking again");
}

#[test]
fn what_an_obedient_command_started_does_not_outlive_the_lock() {
    let sandbox = Sandbox::new();
    let script = format!("sh -c \"{STUBBORN}\" & exec sleep 1000");
    let arguments = ["run", "--lease", "2s", "a", "--", "sh", "-c", &script];
    let running = Running::start(sandbox.leasehold(arguments));
    let grandchild = sandbox.wait_for_pid("pid");
    let blocked = Blocked::begin(&sandbox);
    let ended = running.finish();
    assert_eq!(ended.code(), 70, "{ended:?}");
    assert!(!alive(grandchild), "it is dead before leasehold is");
    blocked.end();
}

#[test]
fn a_lock_that_was_taken_away_ends_the_command() {
    for (script, sent) in [(OBEDIENT, "TERM"), (STUBBORN, "KILL")] {
        let sandbox = Sandbox::new();
        let arguments = ["run", "--lease", "2s", "--grace", "300ms", "a", "--", "sh", "-c", script];
        let running = Running::start(sandbox.leasehold(arguments));
        let command = sandbox.wait_for_pid("pid");
        sandbox.break_lock("a");
        let ended = running.finish();
        assert_eq!(ended.code(), 70, "{ended:?}");
        assert!(!alive(command));
        assert!(ended.stderr.contains("taken away") && ended.stderr.contains(sent), "{ended:?}");
        assert!(sandbox.records("a").is_empty(), "nothing was created anew");
    }
}

#[test]
fn a_command_that_ends_after_its_lock_was_taken_away_gives_70() {
    let sandbox = Sandbox::new();
    // A lease so long that no renewal finds out before the command has ended: the release does.
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done";
    let running = Running::start(sandbox.leasehold(["run", "--lease", "1h", "a", "--", "sh", "-c", script]));
    sandbox.wait_for_pid("pid");
    sandbox.break_lock("a");
    std::fs::write(sandbox.path("go"), "").expect("a file");
    let ended = running.finish();
    assert_eq!(ended.code(), 70, "{ended:?}");
    assert!(ended.stderr.contains("lost"), "{ended:?}");
}

#[test]
fn a_release_that_gets_no_answer_warns_and_keeps_the_commands_code() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; exit 6";
    let running = Running::start(sandbox.leasehold(["run", "--lease", "3s", "a", "--", "sh", "-c", script]));
    sandbox.wait_for_pid("pid");
    let blocked = Blocked::begin(&sandbox);
    std::fs::write(sandbox.path("go"), "").expect("a file");
    let ended = running.finish();
    assert_eq!(ended.code(), 6, "{ended:?}");
    assert!(ended.stderr.starts_with("leasehold: "), "{ended:?}");
    blocked.end();
}
