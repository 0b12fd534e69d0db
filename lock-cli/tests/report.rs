//! `stores`, `check`, `init`, `completions` and the manual: what they answer, and that all help comes from one place.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use support::{Sandbox, finish, schema};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

#[test]
fn stores_tells_of_each_that_is_built_in() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["stores", "--json"]);
    let listed = schema::read("stores.json", &listed.stdout);
    let names: Vec<&str> =
        listed.as_array().expect("an array").iter().filter_map(|kind| kind["store"].as_str()).collect();
    assert!(names.contains(&"sqlite") && names.contains(&"memory"), "{names:?}");
    let page = String::from_utf8(sandbox.run(&["stores"]).stdout).expect("UTF-8");
    for name in names {
        assert_eq!(page.lines().filter(|line| line.split(' ').next() == Some(name)).count(), 3, "{name}: {page}");
    }
    // Nothing is connected to, and nothing made.
    assert!(!sandbox.path("locks.db").exists());
}

#[test]
fn check_has_a_code_for_each_outcome() {
    let sandbox = Sandbox::new();
    let good = sandbox.run(&["check", "--json"]);
    assert_eq!(schema::read("check.json", &good.stdout)["store"], "sqlite");
    let worst = |text: &[u8]| schema::read("check.json", text)["findings"].to_string().contains("\"warning\"");
    assert_eq!(good.code() == 1, worst(&good.stdout));
    let warned = finish(sandbox.bare(["--store", "memory:", "check", "--json"]));
    assert_eq!(warned.code(), 1);
    assert!(worst(&warned.stdout));
    let text = finish(sandbox.bare(["--store", "memory:", "check"]));
    let text = String::from_utf8(text.stdout).expect("UTF-8");
    assert!(text.contains("warning  memory  ") && text.ends_with("1 warning\n"), "{text}");
    assert_eq!(finish(sandbox.bare(["--store", "sqlite:/no/such/directory/x.db", "check"])).code(), 69);
    assert_eq!(finish(sandbox.bare(["--store", "nosuch:x", "check"])).code(), 78);
    assert_eq!(finish(sandbox.bare(["check", "extra"])).code(), 2);
}

#[test]
fn a_store_in_memory_is_said_to_exclude_nobody() {
    let sandbox = Sandbox::new();
    let loud = finish(sandbox.bare(["--store", "memory:", "run", "a", "--", "true"]));
    assert_eq!(loud.code(), 0);
    assert!(loud.stderr.contains("excludes nobody"), "{loud:?}");
    let quiet = finish(sandbox.bare(["--store", "memory:", "run", "-q", "a", "--", "true"]));
    assert_eq!((quiet.code(), quiet.stderr.as_str()), (0, ""));
}

#[test]
fn a_forgotten_dash_dash_is_explained() {
    let sandbox = Sandbox::new();
    let wrong = sandbox.run(&["run", "a", "echo", "x"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("leasehold run NAME -- CMD"), "{wrong:?}");
}

#[test]
fn completions_are_sound() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = sandbox.run(&["completions", shell]);
        assert_eq!(script.code(), 0);
        for word in ["run", "ls", "break", "older-than"] {
            assert!(String::from_utf8_lossy(&script.stdout).contains(word), "{shell}: {word}");
        }
        fs::write(sandbox.path(shell), script.stdout).expect("a file");
    }
    assert!(finish(sandbox.any("bash", ["-n", "bash"])).status.success());
    assert_eq!(sandbox.run(&["completions", "tcsh"]).code(), 2);
}

/// `LEASEHOLD_BLESS=1` writes the pages anew.
#[test]
fn the_manual_pages_in_the_repository_are_those_of_this_command() {
    let sandbox = Sandbox::new();
    let made = sandbox.path("man");
    fs::create_dir(&made).expect("a directory");
    assert_eq!(sandbox.run(&["man", "--dir", made.to_str().expect("UTF-8")]).code(), 0);
    let kept = root().join("docs/man");
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        fs::create_dir_all(&kept).expect("a directory");
        for page in fs::read_dir(&made).expect("pages").flatten() {
            fs::copy(page.path(), kept.join(page.file_name())).expect("copied");
        }
    }
    let names = |dir: &Path| -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(dir).expect("pages").flatten().map(|page| page.file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&made), names(&kept));
    assert!(names(&made).contains(&"leasehold-run.1".into()));
    for name in names(&made) {
        let (made, kept) = (made.join(&name), kept.join(&name));
        let same = fs::read(&made).expect("a page") == fs::read(&kept).expect("a page");
        assert!(same, "docs/man/{} is not what this command makes; LEASEHOLD_BLESS=1 writes it anew", name.display());
    }
    let one = sandbox.run(&["man", "run"]);
    assert_eq!(one.stdout, fs::read(kept.join("leasehold-run.1")).expect("a page"));
    assert_eq!(sandbox.run(&["man", "nosuch"]).code(), 2);
}

#[test]
fn readme_shows_the_commands_as_the_help_does() {
    let sandbox = Sandbox::new();
    let help = String::from_utf8(sandbox.run(&["-h"]).stdout).expect("UTF-8");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.trim_start().starts_with("help "))
        .collect();
    assert!(commands.len() > 5, "{help}");
    let readme = fs::read_to_string(root().join("README.md")).expect("README");
    for line in commands {
        assert!(readme.contains(line), "README.md lacks this line of `leasehold -h`:\n{line}");
    }
}
