//! What leasehold says: whole lines on stderr, written by a thread of their own.
//!
//! A terminal that was stopped with ^S, or a pipe that nobody reads, blocks whoever writes to it. The thread that must
//! kill CMD at the deadline may not be the one that is blocked.

use std::{
    io::{self, Write as _},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Duration,
};

/// How long the end waits for a stderr that nobody reads: the exit code must reach its caller.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The way to stderr. Dropping it waits until everything has been said, unless nobody listens.
#[derive(Debug)]
pub(crate) struct Voice {
    lines: Option<Sender<String>>,
    /// Disconnected when everything has been said.
    done: Receiver<()>,
}

impl Voice {
    /// Starts the writer.
    pub(crate) fn new() -> io::Result<Self> {
        let (lines, said) = mpsc::channel::<String>();
        let (saying, done) = mpsc::channel();
        let write = move || {
            let _saying: Sender<()> = saying;
            said.into_iter().for_each(|line| write_line(&line));
        };
        thread::Builder::new().name("stderr".to_owned()).spawn(write)?;
        Ok(Voice { lines: Some(lines), done })
    }

    /// Says one sentence. Never blocks.
    pub(crate) fn say(&self, sentence: impl Into<String>) {
        if let Some(lines) = &self.lines {
            // The writer ends only when this value does.
            let _ = lines.send(sentence.into());
        }
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.lines = None;
        // Both ends of this wait are as good: all is said, or nobody listens.
        let _ = self.done.recv_timeout(LAST_WORDS);
    }
}

/// Writes one sentence to stderr, with the command's name in front, in one piece.
pub(crate) fn write_line(sentence: &str) {
    // A closed stderr is no reason to fail: the exit code tells the rest.
    let _ = io::stderr().lock().write_all(format!("leasehold: {sentence}\n").as_bytes());
}
