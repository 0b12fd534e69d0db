//! The ZooKeeper backend against the contract.

#[path = "support/mod.rs"]
mod support;

use std::process::ExitCode;

use conformance_tests::Suite;

fn main() -> ExitCode {
    Suite::new().on_found("zookeeper", support::ZooKeeper::find().map_err(|error| error.to_string())).main()
}
