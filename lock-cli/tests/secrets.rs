//! Passwords that are in no configuration: in a file, or in the environment.
#![cfg(feature = "redis")]

mod support;

use std::fs;

use support::{Ended, Sandbox, finish, servers};

const PASSWORD: &str = "p@ss/word: %41";

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ended {
    let mut command = sandbox.bare(arguments.iter().chain(&["run", "x", "--", "true"]));
    command.env("LOCK_PASSWORD", PASSWORD);
    let ended = finish(command);
    assert!(!format!("{ended:?}").contains("word: "), "{ended:?}");
    ended
}

#[test]
fn a_password_comes_from_a_file_or_a_variable() {
    let (sandbox, server) = (Sandbox::new(), servers::redis());
    let address = server.address();
    let port = address.port().to_string();
    let set = sandbox.any("redis-cli", ["-p", &port, "CONFIG", "SET", "requirepass", PASSWORD]);
    assert!(finish(set).status.success());
    fs::write(sandbox.path("secret"), format!("{PASSWORD}\n")).expect("a file");
    let secret = sandbox.path("secret").display().to_string();

    assert_eq!(run(&sandbox, &["--store", &format!("redis://{address}")]).code(), 78, "the server wants a password");
    assert_eq!(run(&sandbox, &["--store", &format!("redis://{address}?password_file={secret}")]).code(), 0);
    assert_eq!(run(&sandbox, &["--store", &format!("redis://{address}?password_env=LOCK_PASSWORD")]).code(), 0);

    let url = format!("redis://:{}@{address}", "p%40ss%2Fword%3A%20%2541");
    fs::write(sandbox.path("url"), url).expect("a file");
    let tables = format!(
        "[stores.file]\nstore = 'redis://{address}'\npassword_file = '{secret}'\n\
         [stores.env]\nstore = 'redis://{address}'\npassword_env = 'LOCK_PASSWORD'\n\
         [stores.url]\nstore_file = '{}'\n",
        sandbox.path("url").display()
    );
    fs::write(sandbox.path("named.toml"), &tables).expect("a file");
    for store in ["file", "env", "url"] {
        let ended = run(&sandbox, &["--config", "named.toml", "--store", store]);
        assert_eq!(ended.code(), 0, "{store}: {ended:?}");
    }

    // The same file, only found: it could be anyone's.
    fs::write(sandbox.path("leasehold.toml"), &tables).expect("a file");
    for store in ["file", "env", "url"] {
        let ended = run(&sandbox, &["--store", store]);
        assert_eq!(ended.code(), 78, "{store}: {ended:?}");
        assert!(ended.stderr.contains("--config"), "{ended:?}");
    }
}

#[test]
fn what_is_missing_or_too_much_is_told() {
    let sandbox = Sandbox::new();
    for (options, expected) in [
        ("password_file=/no/such/file", "cannot be read"),
        ("password_env=NO_SUCH_VARIABLE", "is not set"),
        ("password_env=A%3DB", "no name of a variable"),
        ("password_env=LOCK_PASSWORD&password_file=x", "kept in one place"),
    ] {
        let ended = run(&sandbox, &["--store", &format!("redis://127.0.0.1:1?{options}")]);
        assert_eq!(ended.code(), 78, "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
    let twice = run(&sandbox, &["--store", "redis://:other@127.0.0.1:1?password_env=LOCK_PASSWORD"]);
    assert!(twice.code() == 78 && twice.stderr.contains("already") && !twice.stderr.contains("other"), "{twice:?}");
}
