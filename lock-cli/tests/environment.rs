//! What CMD sees: its variables, its files, its arguments, and the runs around it.

mod support;

use std::{ffi::OsStr, io::Write as _, os::unix::ffi::OsStrExt as _, process::Stdio};

use support::{Running, Sandbox, finish};

#[test]
fn the_variables_name_the_lock() {
    let sandbox = Sandbox::new();
    let show = "printf '%s|%s|%s|%s' \"$LEASEHOLD_NAME\" \"$LEASEHOLD_NAMESPACE\" \"$LEASEHOLD_FENCING_TOKEN\" \"$LEASEHOLD_HELD\"";
    let token = |ended: support::Ended| -> (u64, String) {
        assert_eq!(ended.code(), 0, "{ended:?}");
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        let parts: Vec<&str> = text.split('|').collect();
        assert_eq!((parts[0], parts[1]), ("a b/é", "shop"));
        assert!(!parts[3].contains("shop"), "the digest tells nothing: {text}");
        (parts[2].parse().expect("a number"), parts[3].to_owned())
    };
    let arguments = ["--namespace", "shop", "run", "a b/é", "--", "sh", "-c", show];
    let (first, held) = token(sandbox.run(&arguments));
    let (second, held_again) = token(sandbox.run(&arguments));
    assert!(second > first, "each holder has a larger token: {first}, {second}");
    assert_ne!(held, held_again);
}

#[test]
fn no_password_is_handed_down_and_inherited_variables_stay() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.bare(["--store", &format!("{}?namespace=x", sandbox.url()), "run", "a", "--", "env"]);
    command.env("PGPASSWORD", "mine").env("LEASEHOLD_STORE", "redis://:secret@127.0.0.1/0");
    let ended = finish(command);
    assert_eq!(ended.code(), 0, "{ended:?}");
    let text = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(text.contains("PGPASSWORD=mine\n") && text.contains("LEASEHOLD_NAMESPACE=x\n"), "{text}");
    let ours: Vec<&str> = text.lines().filter(|line| line.starts_with("LEASEHOLD_")).collect();
    assert_eq!(ours.len(), 5, "the four and the inherited one: {ours:?}");
}

#[test]
fn stdin_and_stdout_carry_any_bytes_untouched() {
    let sandbox = Sandbox::new();
    // Every byte, and more than any pipe holds.
    let data: Vec<u8> = (0..=u8::MAX).cycle().take(3 << 20).collect();
    let mut command = sandbox.leasehold(["run", "a", "--", "cat"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let sent = data.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().expect("output");
    writer.join().expect("a writer").expect("written");
    assert!(output.status.success());
    assert!(output.stdout == data, "stdout is what cat wrote");
    assert!(output.stderr.is_empty());
}

#[test]
fn arguments_may_be_any_bytes() {
    let sandbox = Sandbox::new();
    let odd = OsStr::from_bytes(b"\xff -n --\n\x01");
    let ended = finish(sandbox.leasehold([
        "run".as_ref(),
        "a".as_ref(),
        "--".as_ref(),
        "printf".as_ref(),
        "%s|".as_ref(),
        odd,
        "--wait".as_ref(),
    ]));
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(ended.stdout, [odd.as_bytes(), b"|--wait|"].concat());
}

#[test]
fn odd_names_are_names() {
    let sandbox = Sandbox::new();
    for name in ["..", "a/b", " ", "é", "e\u{301}", "%41", "{x}", "a\nb", "\u{1F512}"] {
        let ended = sandbox.run(&["run", name, "--", "printenv", "LEASEHOLD_NAME"]);
        assert_eq!(String::from_utf8_lossy(&ended.stdout), format!("{name}\n"), "{ended:?}");
    }
    let ended = sandbox.run(&["run", "--", "-n", "--", "printenv", "LEASEHOLD_NAME"]);
    assert_eq!(ended.stdout, b"-n\n", "{ended:?}");
}

#[test]
fn no_file_descriptor_of_ours_leaks() {
    let sandbox = Sandbox::new();
    let list = ["sh", "-c", "for fd in /proc/$$/fd/*; do readlink \"$fd\" || :; done"];
    let with = sandbox.run(&[&["run", "a", "--"], &list[..]].concat());
    let without = finish(sandbox.any(list[0], &list[1..]));
    assert_eq!(with.code(), 0, "{with:?}");
    // The same number of them, and none that is the store or a socket. Their pipes have other numbers.
    let kinds = |stdout: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(stdout).into_owned();
        text.lines().map(|line| line.split(':').next().unwrap_or("").replace(char::is_numeric, "")).collect()
    };
    assert_eq!(kinds(&with.stdout), kinds(&without.stdout), "{}", String::from_utf8_lossy(&with.stdout));
}

#[test]
fn a_file_descriptor_of_the_caller_is_handed_on() {
    let sandbox = Sandbox::new();
    let script = "exec 7> file; \"$BIN\" run a -- sh -c 'echo through >&7'";
    let mut command = sandbox.any("sh", ["-c", script]);
    command.env("LEASEHOLD_STORE", sandbox.url());
    assert_eq!(finish(command).code(), 0);
    assert_eq!(sandbox.text("file"), "through\n");
}

#[test]
fn signal_handling_begins_afresh_for_the_command() {
    let sandbox = Sandbox::new();
    // `yes` ends from SIGPIPE, which Rust programs ignore: a command that inherits this would complain or go on.
    let ended = sandbox.run(&["run", "a", "--", "bash", "-c", "yes | head -n 1; exit ${PIPESTATUS[0]}"]);
    assert_eq!((ended.code(), ended.stdout.as_slice(), ended.stderr.as_str()), (141, &b"y\n"[..], ""));
    let masks = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    // The standard signals only: the C library's spawn leaves its own two real-time signals ignored.
    let standard = |stdout: &[u8]| -> Vec<u64> {
        let text = String::from_utf8_lossy(stdout).into_owned();
        let masks = text.lines().filter_map(|line| line.split('\t').nth(1));
        masks.map(|mask| u64::from_str_radix(mask, 16).expect("a mask") & 0x7fff_ffff).collect()
    };
    let with = sandbox.run(&["run", "a", "--", "sh", "-c", masks]);
    let without = finish(sandbox.any("sh", ["-c", masks]));
    assert_eq!(standard(&with.stdout).len(), 3, "{with:?}");
    assert_eq!(standard(&with.stdout), standard(&without.stdout));
}

#[test]
fn a_nested_run_of_the_same_lock_says_so() {
    let sandbox = Sandbox::new();
    for options in ["", "-n", "-E 9", "-w 1h", "-q"] {
        let inner = format!("\"$BIN\" run {options} a -- true");
        let ended = sandbox.run(&["run", "a", "--", "sh", "-c", &inner]);
        assert_eq!(ended.code(), 75, "{options}: {ended:?}");
        assert!(ended.stderr.contains("enclosing"), "{options}: {ended:?}");
    }
    let between = "\"$BIN\" run b -- \"$BIN\" run c -- \"$BIN\" run a -- true";
    let ended = sandbox.run(&["run", "a", "--", "sh", "-c", between]);
    assert_eq!(ended.code(), 75, "also with others in between: {ended:?}");
    assert!(ended.stderr.contains("enclosing"), "{ended:?}");
}

#[test]
fn a_nested_run_of_another_lock_is_fine() {
    let sandbox = Sandbox::new();
    let inner = "\"$BIN\" run -n b -- \"$BIN\" --namespace x run -n a -- echo in";
    let ended = sandbox.run(&["run", "a", "--", "sh", "-c", inner]);
    assert_eq!((ended.code(), ended.stdout.as_slice()), (0, &b"in\n"[..]), "{ended:?}");
}

#[test]
fn a_lock_that_the_enclosing_run_has_lost_can_be_taken() {
    let sandbox = Sandbox::new();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; \"$BIN\" run -n a -- touch ran";
    let outer = Running::start(sandbox.leasehold(["run", "--lease", "1h", "a", "--", "sh", "-c", script]));
    sandbox.wait_for_pid("pid");
    sandbox.break_lock("a");
    std::fs::write(sandbox.path("go"), "").expect("a file");
    assert_eq!(outer.finish().code(), 70, "the outer one has lost it");
    assert!(sandbox.path("ran").exists());
}
