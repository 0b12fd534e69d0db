//! Signals: what reaches CMD, once and whole, and what ends a wait without a trace.

mod support;

use std::{fs, os::unix::process::CommandExt as _};

use rustix::process::Signal;
use support::{Running, Sandbox, alive, state, until};

/// Notes each signal in `log`, and ends on TERM with 3. Its child, in the same group, does so in `child`; shells make
/// background processes ignore INT and QUIT.
const NOTES: &str = r#"
    (
        for s in HUP USR1 USR2; do trap "echo $s >> child" $s; done
        trap 'echo TERM >> child; exit' TERM
        echo ready >> child
        while :; do sleep 0.02; done
    ) &
    for s in INT HUP QUIT USR1 USR2; do trap "echo $s >> log" $s; done
    trap 'echo TERM >> log; wait $!; exit 3' TERM
    echo $$ > pid
    while :; do sleep 0.02; done
"#;

#[test]
fn signals_reach_the_whole_group_once_each() {
    let sandbox = Sandbox::new();
    let running = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", NOTES]));
    sandbox.wait_for_pid("pid");
    sandbox.wait_for_text("child", "ready");
    let signals = [Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2];
    for (signal, name) in signals.into_iter().zip(["INT", "QUIT", "HUP", "USR1", "USR2"]) {
        running.signal(signal);
        sandbox.wait_for_text("log", name);
        if !["INT", "QUIT"].contains(&name) {
            sandbox.wait_for_text("child", name);
        }
    }
    running.signal(Signal::TERM);
    let ended = running.finish();
    assert_eq!(ended.code(), 3, "{ended:?}");
    assert_eq!(sandbox.text("log"), "INT\nQUIT\nHUP\nUSR1\nUSR2\nTERM\n");
    assert_eq!(sandbox.text("child"), "ready\nHUP\nUSR1\nUSR2\nTERM\n");
    assert!(sandbox.records("a").is_empty(), "and the lock was given back");
}

#[test]
fn a_wait_that_a_signal_ends_leaves_no_trace() {
    let sandbox = Sandbox::new();
    let holder = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", "echo > held; exec sleep 1000"]));
    sandbox.wait_for_text("held", "\n");
    let before = sandbox.records("a");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let waiter = Running::start(sandbox.leasehold(["run", "a", "--", "touch", "ran"]));
        until("the waiter catches signals", || catches(waiter.pid().as_raw_nonzero().get(), signal));
        waiter.signal(signal);
        let ended = waiter.finish();
        assert_eq!(ended.code(), 128 + signal.as_raw(), "{ended:?}");
        let now = sandbox.records("a");
        assert_eq!(now.len(), 1);
        assert_eq!(now[0].holders[0].claim, before[0].holders[0].claim, "only the holder is there");
        assert!(matches!(now[0].waiters, None | Some(0)), "{now:?}");
    }
    holder.signal(Signal::TERM);
    assert_eq!(holder.finish().code(), 128 + 15);
    assert!(sandbox.records("a").is_empty(), "no late claim of a waiter came in");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_reload_signal_does_not_end_a_wait() {
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
    until("the waiter catches signals", || catches(waiter.pid().as_raw_nonzero().get(), Signal::USR1));
    waiter.signal(Signal::USR1);
    fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(holder.finish().code(), 0);
    assert_eq!(waiter.finish().code(), 0);
    assert!(sandbox.path("ran").exists());
}

#[test]
fn a_signal_that_the_caller_ignores_stays_ignored() {
    let sandbox = Sandbox::new();
    let script = r#"trap '' HUP; exec "$BIN" run a -- sh -c 'echo $$ > pid; until [ -e go ]; do sleep 0.02; done; kill -HUP $$; exit 4'"#;
    let mut command = sandbox.any("sh", ["-c", script]);
    command.env("LEASEHOLD_STORE", sandbox.url());
    let running = Running::start(command);
    sandbox.wait_for_pid("pid");
    running.signal(Signal::HUP);
    fs::write(sandbox.path("go"), "").expect("a file");
    let ended = running.finish();
    assert_eq!(ended.code(), 4, "neither leasehold nor its command ended from HUP: {ended:?}");
}

#[test]
fn what_a_command_leaves_behind_is_left_alone() {
    let sandbox = Sandbox::new();
    let script = "(echo $(exec sh -c 'echo $PPID') > left; until [ -e go ]; do sleep 0.02; done; echo done > end) > /dev/null 2>&1 & until [ -s left ]; do sleep 0.02; done";
    let ended = sandbox.run(&["run", "a", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    fs::write(sandbox.path("go"), "").expect("a file");
    sandbox.wait_for_text("end", "done");
}

#[test]
fn a_command_in_a_group_of_its_own_stops_and_continues_with_leasehold() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.leasehold(["run", "a", "--", "sh", "-c", "mkfifo go; echo $$ > pid; read line < go"]);
    command.process_group(0);
    let running = Running::start(command);
    let pid = sandbox.wait_for_pid("pid");
    running.signal(Signal::TSTP);
    until("both are stopped", || state(pid) == Some('T') && state(running.pid()) == Some('T'));
    running.signal(Signal::CONT);
    until("both run", || state(pid) != Some('T') && state(running.pid()) != Some('T'));
    fs::write(sandbox.path("go"), "\n").expect("read by the command");
    let ended = running.finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(!alive(pid));
}

/// Whether a process has a handler for a signal (proc(5), `SigCgt`).
fn catches(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap_or("0");
    u64::from_str_radix(mask, 16).unwrap_or(0) & (1 << (signal.as_raw() - 1)) != 0
}
