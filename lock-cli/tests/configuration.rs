//! Which store is used: the flag before the environment, that before the file, that before the default.

mod support;

use std::fs;

use support::{Ended, Running, Sandbox, finish};

/// Prints the namespace that CMD sees, which tells from where the settings came.
const SHOW: [&str; 6] = ["run", "-n", "a", "--", "printenv", "LEASEHOLD_NAMESPACE"];

fn namespace(ended: &Ended) -> String {
    assert_eq!(ended.code(), 0, "{ended:?}");
    String::from_utf8_lossy(&ended.stdout).trim().to_owned()
}

/// A sandbox where each place that may name a store names another one.
fn all_places() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path(".config/leasehold")).expect("a directory");
    let file = |namespace: &str| {
        let url = sandbox.url();
        format!(
            "[lock]\nstore = \"{url}\"\nnamespace = \"{namespace}\"\n\
             [stores.prod]\nstore = \"{url}\"\nnamespace = \"{namespace}-prod\"\n"
        )
    };
    fs::write(sandbox.path("leasehold.toml"), file("here")).expect("a file");
    fs::write(sandbox.path(".config/leasehold/config.toml"), file("home")).expect("a file");
    fs::write(sandbox.path("other.toml"), file("other")).expect("a file");
    sandbox
}

#[test]
fn the_flag_comes_before_the_environment_and_the_files() {
    let sandbox = all_places();
    let url = |namespace: &str| format!("{}?namespace={namespace}", sandbox.url());
    let with = |store: Option<&str>, environment: Option<&str>, more: &[&str]| {
        let flags: Vec<&str> =
            store.map(|store| ["--store", store]).into_iter().flatten().chain(more.iter().copied()).collect();
        let mut command = sandbox.bare(flags.into_iter().chain(SHOW));
        if let Some(value) = environment {
            command.env("LEASEHOLD_STORE", value);
        }
        namespace(&finish(command))
    };
    assert_eq!(with(Some(&url("flag")), Some(&url("environment")), &[]), "flag");
    assert_eq!(with(None, Some(&url("environment")), &[]), "environment");
    assert_eq!(with(None, None, &[]), "here");
    assert_eq!(with(None, None, &["--config", "other.toml"]), "other");
    assert_eq!(with(Some("prod"), Some(&url("environment")), &[]), "here-prod");
    assert_eq!(with(None, Some("prod"), &[]), "here-prod");
    assert_eq!(with(Some("prod"), None, &["--config", "other.toml"]), "other-prod");
    assert_eq!(with(Some(&url("flag")), None, &["--namespace", "mine"]), "mine");
    assert_eq!(with(Some("prod"), None, &["--namespace", "mine"]), "mine");
    assert_eq!(with(None, None, &["--namespace", ""]), "", "an empty namespace is one, too");
    fs::remove_file(sandbox.path("leasehold.toml")).expect("removed");
    assert_eq!(with(None, None, &[]), "home");
    fs::remove_file(sandbox.path(".config/leasehold/config.toml")).expect("removed");
    assert_eq!(with(None, None, &[]), "", "the default store has no namespace");
}

#[test]
fn the_users_file_may_be_elsewhere() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("etc/leasehold")).expect("a directory");
    let text = format!("[lock]\nstore = \"{}\"\nnamespace = \"xdg\"\n", sandbox.url());
    fs::write(sandbox.path("etc/leasehold/config.toml"), text).expect("a file");
    let mut command = sandbox.bare(SHOW);
    command.env("XDG_CONFIG_HOME", sandbox.path("etc"));
    assert_eq!(namespace(&finish(command)), "xdg");
}

#[test]
fn the_default_store_is_a_file_of_the_users() {
    let sandbox = Sandbox::new();
    assert_eq!(finish(sandbox.bare(["run", "a", "--", "true"])).code(), 0);
    assert!(sandbox.path(".local/state/leasehold/locks.db").exists());
    let mut elsewhere = sandbox.bare(["run", "a", "--", "true"]);
    elsewhere.env("XDG_STATE_HOME", sandbox.path("odd ?#%41 name"));
    let ended = finish(elsewhere);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(sandbox.path("odd ?#%41 name/leasehold/locks.db").exists());
}

#[test]
fn without_a_home_the_remedy_is_named() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.bare(["run", "a", "--", "true"]);
    command.env_remove("HOME");
    let ended = finish(command);
    assert_eq!(ended.code(), 78, "{ended:?}");
    assert!(ended.stderr.contains("HOME") && ended.stderr.contains("LEASEHOLD_STORE"), "{ended:?}");
}

#[test]
fn settings_of_the_file_take_effect() {
    let sandbox = Sandbox::new();
    let text = format!("[lock]\nstore = \"{}\"\nwait = \"50ms\"\nlease = \"3s\"\n", sandbox.url());
    fs::write(sandbox.path("leasehold.toml"), text).expect("a file");
    let _holder = Running::start(sandbox.bare(["run", "a", "--", "sh", "-c", "echo > held; exec sleep 1000"]));
    sandbox.wait_for_text("held", "\n");
    assert_eq!(finish(sandbox.bare(["run", "a", "--", "true"])).code(), 75, "the file's wait");
    let ended = finish(sandbox.bare(["run", "--grace", "1001ms", "b", "--", "true"]));
    assert_eq!(ended.code(), 2, "a third of the file's lease bounds the grace: {ended:?}");
    assert!(ended.stderr.contains("3s"), "{ended:?}");
    assert_eq!(finish(sandbox.bare(["run", "--grace", "1s", "b", "--", "true"])).code(), 0);
}

#[test]
fn wrong_settings_are_named_with_code_78_and_without_a_password() {
    let sandbox = Sandbox::new();
    let url = sandbox.url();
    let files = [
        ("[lock]\nstore = \"sqlite:x\"\nleese = \"3s\"\n", "leese"),
        ("[lok]\nstore = \"sqlite:x\"\n", "lok"),
        ("[lock]\nstore = \"sqlite:x\"\nlease = \"soon\"\n", "soon"),
        ("[lock]\nstore = \"sqlite:x\"\nlease = \"0s\"\n", "lease"),
        ("[lock]\nnamespace = \"x\"\n", "store"),
        ("[lock]\nstore = \"nosuch://user:secret@host/\"\n", "nosuch"),
        ("[lock]\nstore = \"nosuch://user:secret@host/\" = 1\n", "line 2"),
        ("this is not TOML", "line 1"),
    ];
    for (text, hint) in files {
        fs::write(sandbox.path("leasehold.toml"), text).expect("a file");
        let ended = finish(sandbox.bare(["run", "a", "--", "touch", "ran"]));
        assert_eq!(ended.code(), 78, "{text:?}: {ended:?}");
        assert!(ended.stderr.contains(hint), "{text:?}: {ended:?}");
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
        assert!(ended.stderr.starts_with("leasehold: ") && ended.stdout.is_empty(), "{ended:?}");
    }
    fs::remove_file(sandbox.path("leasehold.toml")).expect("removed");
    let stores = [
        ("nosuch://user:secret@host/", "nosuch"),
        (&format!("{url}?leese=3s"), "leese"),
        (&format!("{url}?lease=soon"), "soon"),
        ("prod", "prod"),
    ];
    for (store, hint) in stores {
        for by_flag in [true, false] {
            let mut command = sandbox.bare(["run", "a", "--", "touch", "ran"]);
            if by_flag {
                command = sandbox.bare(["--store", store, "run", "a", "--", "touch", "ran"]);
            } else {
                command.env("LEASEHOLD_STORE", store);
            }
            let ended = finish(command);
            assert_eq!(ended.code(), 78, "{store}: {ended:?}");
            assert!(ended.stderr.contains(hint) && !ended.stderr.contains("secret"), "{store}: {ended:?}");
        }
    }
    let ended = finish(sandbox.bare(["--config", "missing.toml", "run", "a", "--", "touch", "ran"]));
    assert_eq!(ended.code(), 78, "{ended:?}");
    assert!(ended.stderr.contains("missing.toml"), "{ended:?}");
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_named_store_that_the_file_lacks_is_told_with_those_it_has() {
    let sandbox = all_places();
    let ended = finish(sandbox.bare(["--store", "prd", "run", "a", "--", "true"]));
    assert_eq!(ended.code(), 78, "{ended:?}");
    assert!(ended.stderr.contains("prd") && ended.stderr.contains("prod"), "{ended:?}");
}

#[test]
fn the_help_has_the_exit_codes_and_examples() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["run", "--help"]);
    assert_eq!(ended.code(), 0);
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    for part in ["69", "70", "75", "78", "126", "127", "crontab", "flock", "LEASEHOLD_FENCING_TOKEN"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let short = sandbox.run(&["run", "-h"]);
    assert!(short.stdout.len() < text.len() / 2, "-h is short");
    assert_eq!(sandbox.run(&["--version"]).code(), 0);
}

#[test]
fn the_environment_names_a_file_and_an_empty_variable_names_none() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("other.toml"), format!("[lock]\nstore = '{}'\n", sandbox.url())).expect("a file");
    let run = |config: &str| {
        let mut command = sandbox.bare(["run", "-n", "x", "--", "true"]);
        command.env("LEASEHOLD_CONFIG", config);
        finish(command)
    };
    assert_eq!(run("other.toml").code(), 0);
    assert!(sandbox.path("locks.db").exists(), "it is the store of that file");
    let missing = run("nosuch.toml");
    assert!(missing.code() == 78 && missing.stderr.contains("nosuch.toml"), "{missing:?}");
    fs::remove_file(sandbox.path("locks.db")).expect("removed");
    assert_eq!(run("").code(), 0);
    assert!(!sandbox.path("locks.db").exists(), "it is the default store");
}
