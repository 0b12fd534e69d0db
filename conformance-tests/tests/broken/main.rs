//! The suite is tested too: each backend and clock here breaks one promise, and the case that proves the promise must
//! find it, at the clause that is broken. The same case passes on the backend that was not broken.

mod clocks;
mod requests;
mod twist;
mod waits;

use std::sync::Arc;

use conformance_tests::{Fixture, Memory, Verdict, cases, run};

/// Asserts that a case finds the fixture broken, at one of these clauses, and says so.
fn caught_by(case: &str, clauses: &[&str], broken: impl Fixture) {
    let case = cases::find(case).expect("the case exists");
    let name = broken.name().to_owned();
    match run(&case, &(Arc::new(broken) as Arc<dyn Fixture>)) {
        Verdict::Failed { failure, .. } => {
            let clause = failure.clause.unwrap_or("no clause");
            assert!(clauses.contains(&clause), "{name} was caught by {}, but at {clause}:\n{failure}", case.name());
            assert!(failure.to_string().contains(clause), "the message does not name {clause}: {failure}");
            assert!(case.clauses().contains(&clause), "{} does not cite {clause}", case.name());
        }
        other => panic!("{name} was not caught by {}: {other:?}", case.name()),
    }
}

/// Asserts that a case finds nothing wrong with a backend that is not broken.
fn passes(case: &str, good: Memory) {
    let case = cases::find(case).expect("the case exists");
    match run(&case, &(Arc::new(good) as Arc<dyn Fixture>)) {
        Verdict::Passed => {}
        other => panic!("{} did not pass on a good backend: {other:#?}", case.name()),
    }
}
