//! Each exit code of `leasehold run`, through the real binary.

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _};

use support::{Running, Sandbox, blocked::Blocked, finish};

#[test]
fn the_commands_own_code_is_passed_through() {
    let sandbox = Sandbox::new();
    for code in [0, 1, 2, 69, 70, 75, 126, 127, 255] {
        let ended = sandbox.run(&["run", "a", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(ended.code(), code, "{ended:?}");
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn a_command_that_a_signal_ended_gives_128_and_the_signal() {
    let sandbox = Sandbox::new();
    for signal in [1, 2, 9, 15] {
        let ended = sandbox.run(&["run", "a", "--", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(ended.code(), 128 + signal, "{ended:?}");
    }
}

#[test]
fn a_wrong_command_line_is_usage() {
    let sandbox = Sandbox::new();
    let long = "n".repeat(513);
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["frobnicate"], "frobnicate"),
        (&["run"], "Usage"),
        (&["run", "a"], "CMD"),
        (&["run", "a", "--"], "CMD"),
        (&["run", "a", "true"], "true"),
        (&["run", "--", "true"], "NAME is missing"),
        (&["run", "", "--", "true"], "1 to 512"),
        (&["run", &long, "--", "true"], "513 bytes"),
        (&["run", "-w", "5", "a", "--", "true"], "5s"),
        (&["run", "-w", "soon", "a", "--", "true"], "soon"),
        (&["run", "-w", "1s", "-n", "a", "--", "true"], "cannot be used with"),
        (&["run", "--lease", "0s", "a", "--", "true"], "0ns"),
        (&["run", "--lease", "9000years", "a", "--", "true"], "out of range"),
        (&["run", "--lease", "3s", "--grace", "2s", "a", "--", "true"], "0s to 1s"),
        (&["run", "--grace", "11s", "a", "--", "true"], "0s to 10s"),
        (&["run", "-E", "256", "a", "--", "true"], "256"),
        (&["--become-child-of"], "internal"),
        (&["--namespace", &long, "run", "a", "--", "true"], "0 to 64"),
    ];
    for (arguments, hint) in cases {
        let ended = sandbox.run(arguments);
        assert_eq!(ended.code(), 2, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.starts_with("leasehold: ") || arguments.is_empty(), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(hint), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_name_that_is_not_utf8_is_usage() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let name = std::ffi::OsStr::from_bytes(b"a\xff");
    let ended = finish(sandbox.leasehold([("run").as_ref(), name, "--".as_ref(), "true".as_ref()]));
    assert_eq!(ended.code(), 2, "{ended:?}");
    assert!(ended.stderr.contains("UTF-8"), "{ended:?}");
}

#[test]
fn a_store_that_cannot_be_opened_is_unavailable() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("directory")).expect("a directory");
    fs::write(sandbox.path("corrupt"), "this is not a database, and longer than a header".repeat(40)).expect("a file");
    for file in ["directory", "corrupt", "missing/locks.db"] {
        let url = format!("sqlite:{}", sandbox.path(file).display());
        let ended = finish(sandbox.bare(["--store", &url, "run", "a", "--", "touch", "ran"]));
        assert_eq!(ended.code(), 69, "{file}: {ended:?}");
        assert!(ended.stderr.contains(file), "{file}: {ended:?}");
        assert!(!sandbox.path("ran").exists(), "{file}");
    }
}

#[test]
fn a_busy_lock_gives_75_or_the_code_of_the_users_choice() {
    let sandbox = Sandbox::new();
    let _holder = Running::start(sandbox.leasehold([
        "run",
        "--label",
        "it is mine",
        "a",
        "--",
        "sh",
        "-c",
        "echo > held; exec sleep 1000",
    ]));
    sandbox.wait_for_text("held", "\n");
    for (options, code) in [
        (&["-n"][..], 75),
        (&["-w", "0s"], 75),
        (&["-w", "100ms"], 75),
        (&["-n", "-E", "0"], 0),
        (&["-w", "100ms", "-E", "255"], 255),
    ] {
        let arguments: Vec<&str> = ["run"].iter().chain(options).copied().chain(["a", "--", "touch", "ran"]).collect();
        let ended = sandbox.run(&arguments);
        assert_eq!(ended.code(), code, "{ended:?}");
        assert!(ended.stderr.contains("it is mine"), "{ended:?}");
        let quiet: Vec<&str> =
            ["run", "-q"].iter().chain(options).copied().chain(["a", "--", "touch", "ran"]).collect();
        let ended = sandbox.run(&quiet);
        assert_eq!((ended.code(), ended.stderr.as_str()), (code, ""));
    }
    assert!(!sandbox.path("ran").exists());
    assert_eq!(sandbox.run(&["run", "-n", "b", "--", "true"]).code(), 0, "another name is free");
    assert_eq!(sandbox.run(&["--namespace", "x", "run", "-n", "a", "--", "true"]).code(), 0, "as is another namespace");
}

#[test]
fn a_command_that_cannot_be_executed_gives_126_and_a_missing_one_127() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("plain"), "").expect("a file");
    fs::write(sandbox.path("badscript"), "#!/no/such/interpreter\n").expect("a file");
    fs::set_permissions(sandbox.path("badscript"), fs::Permissions::from_mode(0o755)).expect("a mode");
    for (program, code) in
        [("./plain", 126), (".", 126), ("no-such-command", 127), ("./missing", 127), ("", 127), ("./badscript", 127)]
    {
        let ended = sandbox.run(&["run", "a", "--", program]);
        assert_eq!(ended.code(), code, "{program}: {ended:?}");
        assert!(ended.stderr.contains(program) && ended.stderr.starts_with("leasehold: "), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert_eq!(sandbox.run(&["run", "-n", "a", "--", "true"]).code(), 0, "nothing stays locked after {program}");
    }
}

#[test]
fn a_missing_command_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let _holder = Running::start(sandbox.leasehold(["run", "a", "--", "sh", "-c", "echo > held; exec sleep 1000"]));
    sandbox.wait_for_text("held", "\n");
    assert_eq!(sandbox.run(&["run", "a", "--", "no-such-command"]).code(), 127);
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_from_a_shell() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("script"), "exit 9\n").expect("a file");
    fs::set_permissions(sandbox.path("script"), fs::Permissions::from_mode(0o755)).expect("a mode");
    assert_eq!(sandbox.run(&["run", "a", "--", "./script"]).code(), 9);
}

#[test]
fn a_store_that_does_not_answer_is_unavailable() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["run", "a", "--", "true"]).code(), 0);
    let blocked = Blocked::begin(&sandbox);
    for wait in [&["-n"][..], &["-w", "500ms"], &[]] {
        let options = ["run", "--lease", "1s"].iter().chain(wait).copied();
        let ended = sandbox.run(&options.chain(["a", "--", "touch", "ran"]).collect::<Vec<_>>());
        assert_eq!(ended.code(), 69, "{wait:?}: {ended:?}");
        assert!(ended.stderr.starts_with("leasehold: "), "{ended:?}");
    }
    blocked.end();
    assert!(sandbox.records("a").is_empty(), "and no late claim came in");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_command_whose_leasehold_died_before_it_began_does_not_begin() {
    let sandbox = Sandbox::new();
    // The step that becomes the command, with a parent that is not its own: as if that had been killed and replaced.
    let ended = sandbox.run(&["--become-child-of", "1", "touch", "ran"]);
    assert_eq!(ended.code(), 128 + 9, "{ended:?}");
    assert!(!sandbox.path("ran").exists());
}
