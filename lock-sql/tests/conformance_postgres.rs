//! PostgreSQL against the contract.

#[path = "support/postgres.rs"]
mod postgres;

use std::process::ExitCode;

use conformance_tests::Suite;

fn main() -> ExitCode {
    Suite::new().on_found("postgres", postgres::Pg::find()).main()
}
