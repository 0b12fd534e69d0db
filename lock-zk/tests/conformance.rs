//! The ZooKeeper backend against the contract.

#[path = "support/mod.rs"]
mod support;

use std::process::ExitCode;

use conformance_tests::Suite;

use support::ZooKeeper;

/// The server to test against, instead of one that is started here.
const URL: &str = "LEASEHOLD_TEST_ZK";

fn main() -> ExitCode {
    let named = std::env::var(URL).map(|hosts| ZooKeeper { hosts, server: None });
    let found = named.or_else(|_| ZooKeeper::start());
    Suite::new().on_found("zookeeper", found.map_err(|error| error.to_string())).main()
}
