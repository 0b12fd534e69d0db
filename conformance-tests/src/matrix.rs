//! The matrix *case x store*, as Markdown, over all test binaries that were run.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs, io,
    path::Path,
};

use crate::{Verdict, cases, contract};

/// The directory that results and `matrix.md` are written to, if it is set.
pub const DIRECTORY: &str = "LEASEHOLD_TEST_MATRIX";

/// What ran on which store, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    /// By store, then by case: a word, then the reason if there is one.
    stores: BTreeMap<String, BTreeMap<String, String>>,
}

impl Matrix {
    pub(crate) fn note(&mut self, store: &str, case: &str, verdict: &Verdict) {
        let ended = match verdict {
            Verdict::Passed => "yes".to_owned(),
            Verdict::Skipped(reason) => format!("n/a {reason}"),
            Verdict::Failed { failure, .. } => format!("NO {}", failure.clause.unwrap_or_default()),
        };
        self.stores.entry(store.to_owned()).or_default().insert(case.to_owned(), ended);
    }

    /// Each binary knows its own stores alone: it leaves its results beside those of others and renders all of them.
    pub(crate) fn write_where_asked(&self) -> io::Result<()> {
        let Some(directory) = env::var_os(DIRECTORY) else { return Ok(()) };
        let directory = Path::new(&directory);
        fs::create_dir_all(directory)?;
        for (store, results) in &self.stores {
            let lines: String = results.iter().map(|(case, ended)| format!("{case}\t{ended}\n")).collect();
            fs::write(directory.join(format!("{store}.results")), lines)?;
        }
        fs::write(directory.join("matrix.md"), Matrix::read(directory)?.render())
    }

    fn read(directory: &Path) -> io::Result<Self> {
        let mut matrix = Matrix::default();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "results") {
                let store = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let results = fs::read_to_string(&path)?;
                let rows = results.lines().filter_map(|line| line.split_once('\t'));
                matrix.stores.insert(store, rows.map(|(case, ended)| (case.to_owned(), ended.to_owned())).collect());
            }
        }
        Ok(matrix)
    }

    fn render(&self) -> String {
        let stores: Vec<_> = self.stores.keys().collect();
        let mut reasons = BTreeSet::new();
        let mut page = String::from("| case | proves |");
        for store in &stores {
            let _ = write!(page, " {store} |");
        }
        let _ = write!(page, "\n|---|---|{}\n", "---|".repeat(stores.len()));
        for case in cases::all() {
            let _ = write!(page, "| {} | {} |", case.name(), case.clauses().join(" "));
            for results in self.stores.values() {
                let ended = results.get(case.name()).map_or("not run", String::as_str);
                let (word, reason) = ended.split_once(' ').unwrap_or((ended, ""));
                let _ = write!(page, " {} |", if word == "n/a" { "n/a" } else { ended });
                if word == "n/a" {
                    reasons.insert(format!("{}: {reason}", case.name()));
                }
            }
            page.push('\n');
        }
        page.push_str("\nNot applicable, because:\n\n");
        for reason in reasons {
            let _ = writeln!(page, "- {reason}");
        }
        page.push_str("\nThe clauses:\n\n");
        for clause in contract::CLAUSES {
            let _ = writeln!(page, "- **{}** {}", clause.id, clause.title);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_meet_in_one_table() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (store, ended) in [("a", "yes"), ("b", "n/a no server")] {
            fs::write(directory.path().join(format!("{store}.results")), format!("release::frees_at_once\t{ended}\n"))
                .expect("a file");
        }
        let page = Matrix::read(directory.path()).expect("results").render();
        let row = page.lines().find(|line| line.contains("release::frees_at_once")).expect("a row");
        assert!(row.ends_with("| yes | n/a |"), "{row}");
        assert!(page.contains("release::frees_at_once: no server"));
    }
}
