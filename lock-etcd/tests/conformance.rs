//! The whole contract, on an etcd server.
//!
//! The server is the one that `LEASEHOLD_TEST_ETCD` names as `HOST:PORT`, or else an `etcd` from the path, started for
//! this run. Cases that stop or restart a server start their own.

mod support;

#[path = "support/fixture.rs"]
mod fixture;

use std::process::ExitCode;

use conformance_tests::Suite;

fn main() -> ExitCode {
    Suite::new().on_found("etcd", fixture::Etcd::find()).main()
}
