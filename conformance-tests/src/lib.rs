//! The suite that proves leasehold's contract on a backend.
//!
//! One set of cases runs unchanged on every store. Each case is an async function that cites the [clauses](contract) it
//! proves, looks into the store through an [`Oracle`] rather than trusting return values, and asserts the negative too.
//! A case that a store cannot run is reported as *ignored, because ...*, never as passed.
//!
//! # Running it on a backend of your own
//!
//! Add a test without libtest's harness to the backend's crate:
//!
//! ```toml
//! [dev-dependencies]
//! conformance-tests = "0.1"
//! async-trait = "0.1"
//!
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! and in `tests/conformance.rs` name a fixture and call the suite:
//!
//! ```no_run
//! use std::{process::ExitCode, sync::Arc};
//! use conformance_tests::{Fixture, Outcome, Suite};
//! use lock_core::{Backend, MemoryBackend};
//!
//! #[derive(Debug)]
//! struct Mine(MemoryBackend);
//!
//! #[async_trait::async_trait]
//! impl Fixture for Mine {
//!     fn name(&self) -> &str {
//!         "mine"
//!     }
//!
//!     async fn connect(&self) -> Outcome<Arc<dyn Backend>> {
//!         Ok(Arc::new(self.0.clone()))
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     Suite::new().on(Mine(MemoryBackend::new())).main()
//! }
//! ```
//!
//! That runs every case that needs no more than a connection. To run more of them, fill in more of [`Fixture`]: an
//! oracle of your own ([`Fixture::oracle`]), a way for other processes to reach the store ([`Fixture::spec`] and
//! [`Fixture::open`]), a server that may be restarted ([`Fixture::server`], with [`PrivateServer`]), an address before
//! which a [`Proxy`] can be put ([`Fixture::address`]).
//!
//! `cargo test --test conformance` then takes the usual arguments: a part of a case's name, `--list`, `--exact`,
//! `--test-threads`. [`PARTIAL`] in the environment excuses missing servers, [`MATRIX`] names a directory for the table
//! *case x store*, and `LEASEHOLD_TEST_SEED` repeats a schedule of faults that failed.
//!
//! # How it is itself tested
//!
//! `tests/broken.rs` runs cases on backends and clocks that are broken on purpose, and asserts that each is caught by
//! the case that should catch it, at the clause that it breaks.

mod bounds;
mod case;
pub mod cases;
pub mod contract;
mod faults;
mod findings;
mod fixture;
mod fixtures;
pub mod history;
mod log;
mod matrix;
mod oracle;
mod outcome;
mod polls;
mod process;
mod random;
mod run;
mod suite;
mod worker;
mod world;

pub use bounds::Bounds;
pub use case::{Case, Load};
pub use faults::{Call, Fault, Faulty, Op, Proxy, Weather};
pub use findings::{assert_warns, finding};
pub use fixture::{Fixture, Server};
pub use fixtures::Memory;
pub use log::Deliberate;
pub use matrix::DIRECTORY as MATRIX;
pub use oracle::{Blind, Key, Oracle, Seen, ThroughBackend, made_up};
pub use outcome::{Failure, Outcome, Stop};
pub use polls::{Fate, Left, poll_n_then};
pub use process::{PrivateServer, Ready, Recipe, free_address};
pub use random::{SECONDS, play_randomly};
pub use run::{Verdict, run};
pub use suite::{PARTIAL, Suite};
pub use worker::{Worker, is_worker};
pub use world::{World, eventually, within};
