//! The ZooKeeper backend against the contract.

#[path = "support/mod.rs"]
mod support;

use std::process::ExitCode;

use conformance_tests::{Suite, is_worker};

use support::ZooKeeper;

/// The server to test against, instead of one that is started here.
const URL: &str = "LEASEHOLD_TEST_ZK";

fn main() -> ExitCode {
    Suite::new().on_found("zookeeper", find().map_err(|error| error.to_string())).main()
}

fn find() -> std::io::Result<ZooKeeper> {
    match std::env::var(URL) {
        Ok(hosts) => Ok(ZooKeeper { hosts, server: None }),
        // A worker is told where the server is, and is killed: one that it started would be left behind.
        Err(_) if is_worker() => Ok(ZooKeeper { hosts: String::new(), server: None }),
        Err(_) => ZooKeeper::start(),
    }
}
