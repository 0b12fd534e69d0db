//! MariaDB against the contract, with statements that MySQL takes too.

#[path = "support/mysql.rs"]
mod mysql;

use std::process::ExitCode;

use conformance_tests::Suite;

fn main() -> ExitCode {
    Suite::new().on_found("mysql", mysql::Maria::find()).main()
}
