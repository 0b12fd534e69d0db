//! Writes a client's events down as they happen, so that a killed process leaves what it had seen.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lock_core::{Clock as _, LockGuard, SystemClock};

use crate::history::{Event, What};

/// Where one client's events go. Clones write to the same file.
#[derive(Clone, Debug)]
pub struct Recorder {
    file: Arc<Mutex<File>>,
    client: u64,
}

impl Recorder {
    /// A recorder for this client, with a file of its own in the directory.
    ///
    /// # Errors
    ///
    /// When the file cannot be made.
    pub fn new(directory: &Path, client: u64) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(directory.join(format!("{client}.history")))?;
        Ok(Recorder { file: Arc::new(Mutex::new(file)), client })
    }

    /// The moment of the machine's clock that all processes share.
    #[must_use]
    pub fn now() -> Duration {
        SystemClock.now()
    }

    /// Notes what this client did or saw at a moment.
    ///
    /// # Panics
    ///
    /// When the file cannot be written: a history with holes proves nothing.
    pub fn note(&self, at: Duration, attempt: u64, name: &str, what: What) {
        self.note_of(self.client, at, attempt, name, what);
    }

    /// Notes what was done to another client.
    ///
    /// # Panics
    ///
    /// As [`note`](Recorder::note).
    pub fn note_of(&self, client: u64, at: Duration, attempt: u64, name: &str, what: What) {
        let line = format!("{}\n", Event { at, client, attempt, name: name.to_owned(), what });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write per line: a kill cuts the file between lines, or in the last one.
        file.write_all(line.as_bytes()).expect("the history can be written");
    }

    /// Looks at a guard and notes what it says of itself.
    pub fn look(&self, attempt: u64, guard: &LockGuard) -> bool {
        let at = Self::now();
        let held = guard.is_held();
        let until = at.saturating_add(guard.remaining());
        self.note(at, attempt, guard.name(), if held { What::Held { until } } else { What::NotHeld });
        held
    }
}
