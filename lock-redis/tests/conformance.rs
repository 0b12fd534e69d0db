//! The whole contract, on a Redis server.
//!
//! The server is the one that `LEASEHOLD_TEST_REDIS` names, or else a `redis-server` from the path, started for this
//! run. Cases that stop or restart a server start their own.

mod support;

use std::process::ExitCode;

use conformance_tests::Suite;

fn main() -> ExitCode {
    Suite::new().on_found("redis", support::fixture::Redis::find()).main()
}
