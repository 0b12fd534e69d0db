//! Programs that these tests run beside the servers of the suite.

use std::{fs, os::unix::fs::chown, path::Path, process::Command};

/// Runs a command that must succeed, and gives what it printed.
pub(crate) fn output(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; scripts/install.sh installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn id(arguments: &[&str]) -> u32 {
    output(Command::new("id").args(arguments)).parse().expect("a number")
}

pub(crate) fn is_root() -> bool {
    id(&["-u"]) == 0
}

/// A program that refuses root, as PostgreSQL's user where the tests are root.
pub(crate) fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

/// Gives a directory and the files in it to that user.
pub(crate) fn give_to_postgres(directory: &Path) {
    if !is_root() {
        return;
    }
    let (user, group) = (Some(id(&["-u", "postgres"])), Some(id(&["-g", "postgres"])));
    let files = fs::read_dir(directory).expect("it is ours").map(|file| file.expect("it is ours").path());
    for path in files.chain([directory.to_owned()]) {
        chown(&path, user, group).expect("root may");
    }
}

/// Settings of a server, for as long as the test's process lives.
pub(crate) fn leaked(settings: Vec<String>) -> &'static [&'static str] {
    settings.into_iter().map(|setting| &*setting.leak()).collect::<Vec<&'static str>>().leak()
}
