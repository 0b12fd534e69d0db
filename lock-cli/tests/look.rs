//! `ls`, `show` and `break` in their corners, on SQLite, and on a terminal where one matters.

mod support;

use std::{
    fs::{self, File},
    time::Duration,
};

use support::{Running, Sandbox, finish, schema, terminal::Terminal, until};

/// A holder that lives until it is told to go, or its test ends.
fn holder(sandbox: &Sandbox, name: &str) -> Running {
    let script = "echo $$ > \"$0\"; until [ -e go ]; do sleep 0.02; done";
    let file = "pid";
    // From the holder before, if there was one.
    let _ = fs::remove_file(sandbox.path(file));
    let holder = Running::start(sandbox.leasehold(["run", "--", name, "--", "sh", "-c", script, file]));
    sandbox.wait_for_pid(file);
    holder
}

fn let_go(sandbox: &Sandbox, holder: Running) {
    fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(holder.finish().code(), 0);
}

#[test]
fn a_question_is_asked_on_a_terminal_and_only_a_yes_breaks() {
    let sandbox = Sandbox::new();
    let held = holder(&sandbox, "deploy");
    for (typed, code) in [("n\n", 1), ("\n", 1), ("\x04", 1), ("yes\n", 0)] {
        let mut terminal = Terminal::open();
        let asking = terminal.leasehold(&sandbox, &["break", "deploy"]);
        terminal.wait_for("Break the lock? [y/N]");
        let shown = terminal.shown();
        assert!(shown.contains(&format!(":{}", held.pid().as_raw_nonzero())), "whom it would hurt: {shown}");
        assert_eq!(sandbox.records("deploy").len(), 1, "nothing is broken before the answer");
        terminal.press(typed);
        assert_eq!(asking.finish().code(), code, "{typed:?}: {}", terminal.shown());
        assert_eq!(sandbox.records("deploy").is_empty(), code == 0);
    }
    // CMD is told at the next renewal, which this test does not wait for.
    fs::write(sandbox.path("go"), "").expect("a file");
    assert!([0, 70].contains(&held.finish().code()));
}

#[test]
fn without_a_terminal_nothing_is_broken_unless_told() {
    let sandbox = Sandbox::new();
    let held = holder(&sandbox, "deploy");
    let refused = sandbox.run(&["break", "deploy"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert_eq!(sandbox.records("deploy").len(), 1);
    let_go(&sandbox, held);
}

#[test]
fn a_table_fits_the_terminal_and_a_pipe_gets_whole_lines() {
    let sandbox = Sandbox::new();
    let long = "a".repeat(200);
    let held = holder(&sandbox, &long);
    let terminal = Terminal::open();
    assert_eq!(terminal.leasehold(&sandbox, &["ls"]).finish().code(), 0);
    let widest = terminal.shown().lines().map(str::len).max();
    assert!(widest <= Some(80), "{}", terminal.shown());
    let piped = sandbox.run(&["ls"]);
    let text = String::from_utf8(piped.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains(&long), "{text}");
    let_go(&sandbox, held);
}

#[test]
fn any_name_can_be_shown_and_none_moves_the_cursor() {
    let sandbox = Sandbox::new();
    for name in ["-n", "a\u{1b}[2J\nb", "ü \u{202e}x"] {
        let held = holder(&sandbox, name);
        let shown = sandbox.run(&["show", "--json", "--", name]);
        assert_eq!(shown.code(), 0, "{shown:?}");
        assert_eq!(schema::read("lock.json", &shown.stdout)["name"], *name);
        let listed = String::from_utf8(sandbox.run(&["ls"]).stdout).expect("UTF-8");
        assert_eq!(listed.lines().count(), 2, "{listed}");
        assert!(!listed.contains('\u{1b}'), "{listed}");
        let_go(&sandbox, held);
        fs::remove_file(sandbox.path("go")).expect("removed");
    }
    assert_eq!(sandbox.run(&["show", ""]).code(), 2);
    assert_eq!(sandbox.run(&["break", "-y", &"n".repeat(513)]).code(), 2);
}

#[test]
fn an_old_hold_is_found_by_its_age() {
    let sandbox = Sandbox::new();
    let held = holder(&sandbox, "leaked");
    let age = || {
        let records = sandbox.records("leaked");
        let since = records[0].holders[0].since.expect("SQLite tells");
        since.elapsed().unwrap_or_default()
    };
    until("it is a second old", || age() > Duration::from_secs(1));
    let found = sandbox.run(&["ls", "--json", "--older-than", "1s"]);
    assert_eq!(schema::read("locks.json", &found.stdout).as_array().map(Vec::len), Some(1));
    let none = sandbox.run(&["ls", "--json", "--older-than", "1h"]);
    assert_eq!(schema::read("locks.json", &none.stdout).as_array().map(Vec::len), Some(0));
    assert_eq!(sandbox.run(&["ls", "--older-than", "1"]).code(), 2);
    let_go(&sandbox, held);
}

#[test]
fn an_answer_that_cannot_be_written_is_told_and_one_that_nobody_reads_is_not() {
    let sandbox = Sandbox::new();
    let mut full = sandbox.leasehold(["stores"]);
    full.stdout(File::options().write(true).open("/dev/full").expect("a full device"));
    let failed = finish(full);
    assert_eq!(failed.code(), 74, "{failed:?}");
    assert!(failed.stderr.contains("cannot be written"), "{failed:?}");
    let script = "\"$BIN\" stores | true; echo ${PIPESTATUS[0]}";
    let piped = finish(sandbox.any("bash", ["-c", script]));
    assert_eq!(String::from_utf8_lossy(&piped.stdout).trim(), "0", "{piped:?}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let sandbox = Sandbox::new();
    let plain = sandbox.run(&["check"]);
    assert!(!plain.stdout.contains(&0x1b));
    let terminal = Terminal::open();
    terminal.leasehold(&sandbox, &["check"]).finish();
    assert!(terminal.shown().contains("\u{1b}[32m"), "{}", terminal.shown());
    let terminal = Terminal::open();
    let without = ["-c", "NO_COLOR=1 exec \"$BIN\" check"];
    terminal.start(&sandbox, "sh", &without).finish();
    let shown = terminal.shown();
    assert!(shown.contains("round-trip") && !shown.contains('\u{1b}'), "{shown}");
}
