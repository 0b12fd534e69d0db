//! Workers: other processes that do what a case tells them, as copies of the running test binary.

mod child;
mod parent;
mod workload;

use std::{env, process::ExitCode, sync::Arc};

pub use parent::Worker;
pub(crate) use workload::{Plan, work};

use crate::Fixture;

/// The argument that makes a test binary a worker. Nobody but the suite gives it.
const ARGUMENT: &str = "--conformance-worker";

/// Where a worker works.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The fixture's name.
    fixture: String,
    /// How the fixture reaches its store.
    spec: String,
    namespace: String,
    lease_ms: u64,
}

/// The task in this process's arguments, if it is a worker.
pub(crate) fn asked_for() -> Option<Task> {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() != Some(ARGUMENT) {
        return None;
    }
    let mut next = || arguments.next().unwrap_or_default();
    let (fixture, spec, namespace) = (next(), next(), next());
    Some(Task { fixture, spec, namespace, lease_ms: next().parse().unwrap_or_default() })
}

impl Task {
    fn arguments(&self) -> [String; 5] {
        let Task { fixture, spec, namespace, lease_ms } = self.clone();
        [ARGUMENT.to_owned(), fixture, spec, namespace, lease_ms.to_string()]
    }
}

/// Whether this process is a worker, which a case may kill at any moment.
///
/// A fixture that starts a server must not do so here: a worker is told where the store is ([`Fixture::open`]), and a
/// server of its own would be left behind when it is killed.
#[must_use]
pub fn is_worker() -> bool {
    asked_for().is_some()
}

/// A worker's `main`.
pub(crate) fn main(task: Task, fixtures: &[Arc<dyn Fixture>]) -> ExitCode {
    let Some(fixture) = fixtures.iter().find(|fixture| fixture.name() == task.fixture) else {
        eprintln!("this test binary has no fixture {:?}", task.fixture);
        return ExitCode::FAILURE;
    };
    match child::serve(&task, fixture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}
