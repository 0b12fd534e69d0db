//! The memory backend against the contract, in each of its modes.

use std::process::ExitCode;

use conformance_tests::{Memory, Suite};

fn main() -> ExitCode {
    Suite::new().on(Memory::pushing()).on(Memory::polling()).on(Memory::queueing()).main()
}
