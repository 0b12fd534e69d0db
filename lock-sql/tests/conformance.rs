//! The SQL backends against the contract.

#[path = "support/suite.rs"]
mod suite;

use std::process::ExitCode;

use conformance_tests::Suite;

fn main() -> ExitCode {
    Suite::new().on_found("sqlite", suite::SqliteFile::new().map_err(|error| error.to_string())).main()
}
