//! Every command on every store that is built in, against its real server.

mod support;

use support::{Ended, Running, Sandbox, finish, schema, servers};

/// One way through all commands, as a person would go it.
struct Tour {
    sandbox: Sandbox,
    url: String,
}

impl Tour {
    fn command(&self, arguments: &[&str]) -> std::process::Command {
        self.sandbox.bare(["--store", &self.url, "--namespace", "shop"].iter().chain(arguments))
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments))
    }

    #[track_caller]
    fn code(&self, arguments: &[&str], code: i32) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code(), code, "{arguments:?}: {ended:?}");
        assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
        String::from_utf8(ended.stdout).expect("UTF-8")
    }

    fn go(url: String) {
        let tour = Tour { sandbox: Sandbox::new(), url };
        tour.code(&["init"], 0);
        assert_eq!(tour.code(&["init"], 0), "nothing to create: all is there\n");
        let checked = tour.run(&["check", "--json"]);
        assert!([0, 1].contains(&checked.code()), "{checked:?}");
        let checked = schema::read("check.json", &checked.stdout);
        assert_eq!(checked["namespace"], "shop");
        assert!(tour.run(&["check"]).stdout.starts_with(checked["store"].as_str().expect("a name").as_bytes()));
        assert_eq!(tour.code(&["ls"], 0), "");
        assert_eq!(tour.code(&["ls", "--json"], 0).trim(), "[]");
        tour.code(&["show", "report:1"], 1);
        tour.code(&["break", "report:1", "--yes"], 1);
        tour.code(&["break", "report:1"], 2);

        let wait = ["run", "--label", "nightly", "report:1", "--", "sh", "-c", "echo $$ > pid; exec sleep 60"];
        let holder = Running::start(tour.command(&wait));
        tour.sandbox.wait_for_pid("pid");
        let told = schema::read("lock.json", tour.code(&["show", "report:1", "--json"], 0).as_bytes());
        let token = told["holders"][0]["token"].as_u64().expect("a token");
        assert_eq!(told["holders"][0]["label"], "nightly");
        assert_eq!(told["holders"][0]["pid"], holder.pid().as_raw_nonzero().get());
        assert!(told["holders"][0]["remaining_ms"].as_u64().is_none_or(|left| left <= 60_000), "{told}");
        let listed = schema::read("locks.json", tour.code(&["ls", "rep", "--json"], 0).as_bytes());
        assert_eq!(listed[0]["holders"][0]["claim"], told["holders"][0]["claim"]);
        assert_eq!(tour.code(&["ls", "rep%"], 0), "", "a prefix is literal");
        assert_eq!(tour.code(&["ls", "--older-than", "1h"], 0), "");
        let page = tour.code(&["ls"], 0);
        assert!(page.contains("report:1") && page.contains(&token.to_string()) && page.contains("nightly"), "{page}");
        assert!(tour.code(&["show", "report:1"], 0).contains(&format!("token       {token}\n")));

        tour.code(&["run", "-n", "report:1", "--", "true"], 75);
        tour.code(&["break", "report:1", "--yes", "--token", &(token + 1).to_string()], 1);
        tour.code(&["show", "report:1"], 0);
        let broken = tour.code(&["break", "report:1", "--yes", "--token", &token.to_string()], 0);
        assert!(broken.contains(&format!("token {token}")), "{broken}");
        tour.code(&["show", "report:1"], 1);
        let next = tour.code(&["run", "report:1", "--", "sh", "-c", "echo $LEASEHOLD_FENCING_TOKEN"], 0);
        assert!(next.trim().parse::<u64>().expect("a token") > token, "{next}");
        assert_eq!(tour.code(&["ls"], 0), "");
        // The holder is told at its next renewal at the latest, and CMD does not outlive that by much.
        assert_eq!(holder.finish().code(), 70);
    }
}

#[test]
fn sqlite() {
    let dir = tempfile::tempdir().expect("a directory");
    Tour::go(format!("sqlite:{}?lease=3s", dir.path().join("locks.db").display()));
}

#[cfg(feature = "redis")]
#[test]
fn redis() {
    let server = servers::redis();
    Tour::go(format!("redis://{}?lease=3s", server.address()));
}

#[cfg(feature = "postgres")]
#[test]
fn postgres() {
    let server = servers::postgres();
    Tour::go(format!("postgres://postgres:hunter2@{}/postgres?lease=3s", server.address()));
}

#[cfg(feature = "mysql")]
#[test]
fn mysql() {
    let server = servers::mariadb();
    Tour::go(format!("mysql://root@{}/leasehold?lease=3s", server.address()));
}

#[cfg(feature = "etcd")]
#[test]
fn etcd() {
    let server = servers::etcd();
    Tour::go(format!("etcd://{}?lease=3s", server.address()));
}

#[cfg(feature = "zookeeper")]
#[test]
fn zookeeper() {
    let server = servers::zookeeper();
    Tour::go(format!("zk://{}?lease=3s", server.address()));
}

#[cfg(feature = "zookeeper")]
#[test]
fn a_person_who_waits_sees_the_place_in_the_line() {
    use support::terminal::Terminal;

    let server = servers::zookeeper();
    let tour = Tour { sandbox: Sandbox::new(), url: format!("zk://{}", server.address()) };
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done";
    let holder = Running::start(tour.command(&["run", "deploy", "--", "sh", "-c", script]));
    tour.sandbox.wait_for_pid("pid");
    let run = ["--store", &tour.url, "--namespace", "shop", "run", "--label", "me", "deploy", "--", "true"];
    let (first, second) = (Terminal::open(), Terminal::open());
    let one = first.leasehold(&tour.sandbox, &run);
    first.wait_for("place 1 of 1 in line");
    let other = second.leasehold(&tour.sandbox, &run);
    second.wait_for("place 2 of 2 in line");
    std::fs::write(tour.sandbox.path("go"), "").expect("a file");
    for ended in [holder.finish(), one.finish(), other.finish()] {
        assert_eq!(ended.code(), 0, "{ended:?}");
    }
}
