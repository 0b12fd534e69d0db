//! Leases across the hours that a zone with daylight-saving time leaves out in spring and has twice in autumn.
//!
//! The servers are started with a clock of their own, some seconds before the change, in such a zone.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use conformance_tests::{PrivateServer, Recipe};
use lock_core::{Backend as _, Extension, Selector};
use lock_sql::{ServerConfig, SqlBackend};

use crate::{
    LEASE, claim,
    db::Admin,
    granted, is_busy, mysql, postgres,
    programs::{as_postgres, give_to_postgres, output},
};

/// In seconds since 1970: 2026-03-29 at 02:00, which is followed by 03:00, and 2026-10-25 at 03:00, which is followed by
/// 02:00.
const CHANGES: [i64; 2] = [1_774_746_000, 1_792_890_000];
const ZONE: &str = "Europe/Berlin";

/// Enough for a server to be ready before the change.
const LEAD_S: i64 = 20;

/// The one file of this name in a directory of each version or machine.
fn installed(base: &str, rest: &str) -> PathBuf {
    let found = fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path().join(rest));
    let found = found.filter(|path| path.exists()).max();
    found.unwrap_or_else(|| panic!("no {rest} in {base}; scripts/install.sh installs it"))
}

/// What a program's environment must have for its wall clock to begin shortly before the change. It is not to be that of
/// the program which only changes the user.
fn clock(change: i64) -> [String; 5] {
    let library = installed("/usr/lib", "faketime/libfaketime.so.1");
    [
        format!("LD_PRELOAD={}", library.display()),
        "FAKETIME_FMT=%s".to_owned(),
        format!("FAKETIME=@{}", change - LEAD_S),
        "DONT_FAKE_MONOTONIC=1".to_owned(),
        format!("TZ={ZONE}"),
    ]
}

/// A PostgreSQL server. Killing it alone would leave its shared memory.
struct Pg(PrivateServer);

impl Drop for Pg {
    fn drop(&mut self) {
        let mut stop = as_postgres(&installed("/usr/lib/postgresql", "bin/pg_ctl"));
        let _ = stop.args(["stop", "-m", "immediate", "-w", "-D"]).arg(self.0.directory().join("data")).output();
    }
}

fn start_postgres(change: i64) -> Pg {
    let program = |name| as_postgres(&installed("/usr/lib/postgresql", name));
    let recipe: Recipe = Box::new(move |directory: &Path, address: SocketAddr| {
        let data = directory.join("data");
        give_to_postgres(directory);
        output(program("bin/initdb").args(["-N", "-A", "trust", "-U", "postgres", "--no-locale", "-D"]).arg(&data));
        let mut command = as_postgres(Path::new("env"));
        command.args(clock(change)).arg(installed("/usr/lib/postgresql", "bin/postgres"));
        command.arg("-D").arg(data).arg("-k").arg(directory).args([
            "-c",
            &format!("timezone={ZONE}"),
            "-c",
            "fsync=off",
        ]);
        command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
        command
    });
    let ready = Box::new(move |address: SocketAddr| {
        let mut ask = program("bin/pg_isready");
        ask.args(["-q", "-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
        ask.status().is_ok_and(|status| status.success())
    });
    Pg(PrivateServer::start(recipe, ready).expect("PostgreSQL starts"))
}

fn start_mariadb(change: i64) -> PrivateServer {
    let recipe: Recipe = Box::new(move |directory: &Path, address: SocketAddr| {
        let path = |name: &str| directory.join(name).display().to_string();
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        output(install.arg(format!("--datadir={}", path("data"))));
        fs::write(path("init.sql"), "CREATE DATABASE leasehold;\n").expect("the directory is there");
        let mut command = Command::new("env");
        command.args(clock(change)).arg("mariadbd");
        // Its zone is the system's.
        command.args(["--no-defaults", "--user=root", "--innodb-buffer-pool-size=64M", "--default-time-zone=SYSTEM"]);
        command.arg(format!("--datadir={}", path("data"))).arg(format!("--socket={}", path("s.sock")));
        command.arg(format!("--init-file={}", path("init.sql")));
        command.arg(format!("--bind-address={}", address.ip())).arg(format!("--port={}", address.port()));
        command
    });
    let ready = Box::new(|address: SocketAddr| {
        let mut ask = Command::new("mariadb");
        ask.args(["--no-defaults", "--protocol=tcp", "-u", "root", "-h", &address.ip().to_string()]);
        ask.args(["-P", &address.port().to_string(), "-e", "SELECT 1", "leasehold"]);
        ask.output().is_ok_and(|output| output.status.success())
    });
    PrivateServer::start(recipe, ready).expect("MariaDB starts")
}

/// Holds a lock while the server's clocks on the wall are changed.
async fn a_lease_is_as_long_as_ever(url: &str, admin: &mut dyn Admin, now: &str, change: i64) {
    let now = format!("SELECT {now}");
    let change = change * 1_000_000;
    let lease_us = i64::try_from(LEASE.as_micros()).expect("small");
    let backend = SqlBackend::server(&ServerConfig::new(url).expect("a good URL")).await.expect("the server takes us");
    let held = claim("job");
    let first = granted(&backend, &held).await;
    let expires = admin.number("SELECT expires FROM leasehold_locks").await;
    let left = expires - admin.number(&now).await;
    assert!(left <= lease_us && left > lease_us - 10_000_000, "{left} us");
    assert!(admin.number(&now).await < change, "the server took longer to start than the test has");

    while admin.number(&now).await < change + 500_000 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(is_busy(&backend, &claim("job")).await, "the claim is in force");
    let seen = backend.inspect(&Selector::name("job")).await.expect("inspect").remove(0).holders.remove(0);
    let left = Duration::from_micros((expires - admin.number(&now).await).unsigned_abs());
    assert!(seen.remaining.is_some_and(|told| told >= left && told < left + Duration::from_secs(10)), "{seen:?}");
    let clock = backend.wall_clock().await.expect("an answer").expect("a clock");
    let clock = clock.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_micros();
    let clock = i64::try_from(clock).expect("small");
    assert!(clock >= change && clock < change + 60_000_000, "{clock}");

    assert!(matches!(backend.extend(&held, LEASE).await.expect("extend"), Extension::Extended(d) if d <= LEASE));
    let left = admin.number("SELECT expires FROM leasehold_locks").await - admin.number(&now).await;
    assert!(left <= lease_us && left > lease_us - 10_000_000, "{left} us");
    backend.release(&held).await.expect("release");
    let mut short = claim("job");
    short.lease = Duration::from_millis(300);
    assert!(granted(&backend, &short).await.token > first.token);
    let after = async {
        while is_busy(&backend, &claim("job")).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), after).await.expect("a lease ends after the change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hours_of_the_change_are_like_others_on_postgres() {
    let across = async |change| {
        let server = tokio::task::spawn_blocking(move || start_postgres(change)).await.expect("no panic");
        let url = format!("postgres://postgres@{}/postgres", server.0.address());
        let mut admin = postgres::connect(&url).await.expect("a connection");
        let now = "(extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint";
        a_lease_is_as_long_as_ever(&url, &mut admin, now, change).await;
    };
    tokio::join!(across(CHANGES[0]), across(CHANGES[1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hours_of_the_change_are_like_others_on_mysql() {
    let across = async |change| {
        let server = tokio::task::spawn_blocking(move || start_mariadb(change)).await.expect("no panic");
        let url = format!("mysql://root@{}/leasehold", server.address());
        let mut admin = mysql::connect(&url).await.expect("a connection");
        let now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
        a_lease_is_as_long_as_ever(&url, &mut admin, now, change).await;
        // That the zone is one whose clocks were changed, so that the test shows something.
        let hours = admin
            .number("SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))")
            .await;
        assert_eq!(hours, if change == CHANGES[0] { 2 } else { 1 });
    };
    tokio::join!(across(CHANGES[0]), across(CHANGES[1]));
}
