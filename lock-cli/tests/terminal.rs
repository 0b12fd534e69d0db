//! `leasehold run` on a terminal: who reads it, what `^C` and `^Z` do, and the line that shows the wait.

mod support;

use std::fs;

use rustix::process::Signal;
use support::{Running, Sandbox, alive, state, terminal::Terminal, until};

/// Notes INT and USR1, shares its group with its parent, and ends when told to.
const NOTES: &str = r#"
    trap 'echo INT >> log' INT
    trap 'echo USR1 >> log' USR1
    echo $$ > pid
    until [ -e go ]; do sleep 0.02; done
    exit 4
"#;

#[test]
fn the_command_reads_the_terminal() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::open();
    let running = terminal.leasehold(&sandbox, &["run", "a", "--", "sh", "-c", "read line; echo \"got $line\" > log"]);
    terminal.press("hello\n");
    assert_eq!(running.finish().code(), 0);
    assert_eq!(sandbox.text("log"), "got hello\n");
}

#[test]
fn an_interrupt_from_the_keyboard_arrives_once() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::open();
    let running = terminal.leasehold(&sandbox, &["run", "a", "--", "sh", "-c", NOTES]);
    sandbox.wait_for_pid("pid");
    // leasehold gets its own after CMD has dealt with the first: two that come together would look like one.
    running.signal(Signal::STOP);
    until("leasehold is stopped", || state(running.pid()) == Some('T'));
    terminal.press("\x03");
    sandbox.wait_for_text("log", "INT");
    running.signal(Signal::CONT);
    // What leasehold gets from a process is passed on, in order: an INT passed on would have come before this.
    running.signal(Signal::USR1);
    sandbox.wait_for_text("log", "USR1");
    fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(running.finish().code(), 4);
    assert_eq!(sandbox.text("log"), "INT\nUSR1\n");
}

#[test]
fn an_interrupt_from_a_process_is_passed_on() {
    let sandbox = Sandbox::new();
    let terminal = Terminal::open();
    let running = terminal.leasehold(&sandbox, &["run", "a", "--", "sh", "-c", NOTES]);
    sandbox.wait_for_pid("pid");
    running.signal(Signal::INT);
    sandbox.wait_for_text("log", "INT");
    fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(running.finish().code(), 4);
    assert_eq!(sandbox.text("log"), "INT\n");
}

#[test]
fn an_interrupt_while_waiting_ends_the_wait() {
    let sandbox = Sandbox::new();
    let _holder = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", "echo $$ > pid; exec sleep 1000"]));
    sandbox.wait_for_pid("pid");
    let mut terminal = Terminal::open();
    let waiter = terminal.leasehold(&sandbox, &["run", "a", "--", "touch", "ran"]);
    terminal.wait_for("waiting");
    terminal.press("\x03");
    assert_eq!(waiter.finish().code(), 130);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_hung_up_terminal_ends_the_command() {
    let sandbox = Sandbox::new();
    let terminal = Terminal::open();
    let running = terminal.leasehold(&sandbox, &["run", "a", "--", "sh", "-c", "echo $$ > pid; exec sleep 1000"]);
    let command = sandbox.wait_for_pid("pid");
    terminal.hang_up();
    until("the command has ended", || !alive(command));
    assert_eq!(running.finish().code(), 128 + 1);
    assert!(sandbox.records("a").is_empty(), "and the lock was given back");
}

/// A shell with job control that runs leasehold in the foreground, and takes it there again after a line was typed. CMD
/// forks nothing while it waits, since a shell that is stopped in the middle of a vfork does not look stopped.
const JOBS: &str = r#"
    mkfifo go
    set -m
    "$BIN" run --lease "$LEASE" a -- sh -c 'echo $$ > pid; echo $PPID > parent; read line < go; exit 4'
    echo stopped > shell
    read line
    fg
    echo $? > code
"#;

#[test]
fn a_suspended_command_goes_on_if_its_lock_lasted() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::open();
    let shell = terminal.start(&sandbox, "env", &["LEASE=1h", "bash", "-c", JOBS]);
    let command = sandbox.wait_for_pid("pid");
    let leasehold = sandbox.wait_for_pid("parent");
    terminal.press("\x1a");
    sandbox.wait_for_text("shell", "stopped");
    until("both are stopped", || state(command) == Some('T') && state(leasehold) == Some('T'));
    terminal.press("\n");
    until("both run again", || state(command) != Some('T') && state(leasehold) != Some('T'));
    fs::write(sandbox.path("go"), "\n").expect("read by the command");
    assert_eq!(shell.finish().code(), 0);
    assert_eq!(sandbox.text("code"), "4\n");
}

#[test]
fn a_command_that_was_suspended_past_its_lease_is_ended() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::open();
    let shell = terminal.start(&sandbox, "env", &["LEASE=1s", "bash", "-c", JOBS]);
    let command = sandbox.wait_for_pid("pid");
    terminal.press("\x1a");
    sandbox.wait_for_text("shell", "stopped");
    // That someone else had the lock in between proves that the lease has run out.
    assert_eq!(sandbox.run(&["run", "a", "--", "true"]).code(), 0);
    assert_eq!(state(command), Some('T'));
    terminal.press("\n");
    assert_eq!(shell.finish().code(), 0);
    assert_eq!(sandbox.text("code"), "70\n");
    assert!(!alive(command));
    terminal.wait_for("KILL");
}

#[test]
fn the_wait_line_shows_who_holds_the_lock_and_goes_when_the_wait_ends() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done";
    let holder = Running::start(sandbox.leasehold(["run", "--label", "nightly", "a", "--", "sh", "-c", script]));
    sandbox.wait_for_pid("pid");
    let terminal = Terminal::open();
    let waiter = terminal.leasehold(&sandbox, &["run", "a", "--", "echo", "in", "turn"]);
    terminal.wait_for("waiting for \"a\"");
    terminal.wait_for(&format!(":{} \"nightly\"", holder.pid().as_raw_nonzero()));
    terminal.wait_for("its lease");
    fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(waiter.finish().code(), 0);
    terminal.wait_for("in turn");
    let shown = terminal.shown();
    let last = shown.rfind("waiting").expect("the line");
    assert!(shown[last..].contains("\x1b[2K"), "the line was cleared before CMD wrote: {shown:?}");
}

#[test]
fn a_quiet_wait_shows_nothing() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done";
    let _holder = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", script]));
    sandbox.wait_for_pid("pid");
    let terminal = Terminal::open();
    // Longer than it takes for the line to appear, which is what there is to see.
    let waiter = terminal.leasehold(&sandbox, &["run", "-q", "-w", "1s", "a", "--", "true"]);
    assert_eq!(waiter.finish().code(), 75);
    assert_eq!(terminal.shown(), "");
}
