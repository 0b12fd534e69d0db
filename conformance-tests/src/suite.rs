//! The suite as a test binary's `main`: every case on every fixture, a line each, and the matrix at the end.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::{Case, Fixture, Verdict, case::Load, cases, matrix::Matrix, run, worker};

/// Set this to anything to have missing servers reported as ignored instead of failed.
pub const PARTIAL: &str = "LEASEHOLD_TEST_PARTIAL";

/// The stores that one test binary runs the suite on.
#[derive(Debug, Default)]
pub struct Suite {
    fixtures: Vec<Arc<dyn Fixture>>,
    missing: Vec<(String, String)>,
}

impl Suite {
    /// A suite without stores.
    #[must_use]
    pub fn new() -> Self {
        Suite::default()
    }

    /// Also runs on this store.
    #[must_use]
    pub fn on(mut self, fixture: impl Fixture) -> Self {
        self.fixtures.push(Arc::new(fixture));
        self
    }

    /// Also runs on this store, which may not be on this machine.
    ///
    /// A missing server is a failure, so that a run that proves nothing is not green, unless [`PARTIAL`] is set.
    #[must_use]
    pub fn on_found(mut self, name: &str, found: Result<impl Fixture, String>) -> Self {
        match found {
            Ok(fixture) => self.fixtures.push(Arc::new(fixture)),
            Err(reason) => self.missing.push((name.to_owned(), reason)),
        }
        self
    }

    /// Runs what the command line asks for, as `cargo test` would.
    #[must_use]
    pub fn main(self) -> ExitCode {
        if let Some(task) = worker::asked_for() {
            return worker::main(task, &self.fixtures);
        }
        let mut arguments = Arguments::from_args();
        // Cases wait more than they work: many of them fit on few processors.
        let processors = thread::available_parallelism().map_or(2, usize::from);
        arguments.test_threads.get_or_insert(4 * processors);
        let matrix = Arc::new(Mutex::new(Matrix::default()));
        let conclusion = libtest_mimic::run(&arguments, self.trials(&matrix));
        let matrix = matrix.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = matrix.write_where_asked() {
            eprintln!("the matrix could not be written: {error}");
            return ExitCode::FAILURE;
        }
        conclusion.exit_code()
    }

    fn trials(&self, matrix: &Arc<Mutex<Matrix>>) -> Vec<Trial> {
        let heavy = Arc::new(Mutex::new(()));
        let all = spread(cases::all());
        let mut trials = Vec::new();
        for fixture in &self.fixtures {
            for case in &all {
                let name = format!("{}::{}", fixture.name(), case.name());
                let (case, fixture) = (case.clone(), Arc::clone(fixture));
                let (heavy, matrix) = (Arc::clone(&heavy), Arc::clone(matrix));
                trials.push(Trial::ignorable_test(name, move || one(&case, &fixture, &heavy, &matrix)));
            }
        }
        for (store, reason) in self.missing.clone() {
            trials.push(Trial::ignorable_test(format!("{store}::is_here"), move || match std::env::var_os(PARTIAL) {
                Some(_) => Ok(Completion::ignored_with(reason)),
                None => Err(Failed::from(format!("{reason} (set {PARTIAL}=1 to run without it)"))),
            }));
        }
        trials
    }
}

fn one(
    case: &Case,
    fixture: &Arc<dyn Fixture>,
    heavy: &Mutex<()>,
    matrix: &Mutex<Matrix>,
) -> Result<Completion, Failed> {
    let _turn = (case.load() == Load::Heavy).then(|| heavy.lock().unwrap_or_else(PoisonError::into_inner));
    let verdict = run(case, fixture);
    matrix.lock().unwrap_or_else(PoisonError::into_inner).note(fixture.name(), case.name(), &verdict);
    match verdict {
        Verdict::Passed => Ok(Completion::Completed),
        Verdict::Skipped(reason) => Ok(Completion::ignored_with(format!("because {reason}"))),
        Verdict::Failed { failure, log } => {
            let cited = case.clauses().join(", ");
            Err(Failed::from(format!("{failure}\n  in a case that proves {cited}\n{}", tail(&log))))
        }
    }
}

/// The end of a log, where a failure's cause is.
fn tail(log: &str) -> String {
    const SHOWN: usize = 40;
    let lines: Vec<_> = log.lines().collect();
    let skipped = lines.len().saturating_sub(SHOWN);
    if lines.is_empty() { String::new() } else { format!("the last it logged:\n{}", lines[skipped..].join("\n")) }
}

/// Puts the heavy cases at even distances, so that they do not queue for their turn while threads stand idle.
fn spread(cases: Vec<Case>) -> Vec<Case> {
    let (heavy, light): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.load() == Load::Heavy);
    let stride = light.len() / (heavy.len() + 1) + 1;
    let mut heavy = heavy.into_iter();
    let mut spread = Vec::new();
    for group in light.chunks(stride) {
        spread.extend(heavy.next());
        spread.extend_from_slice(group);
    }
    spread.extend(heavy);
    spread
}
