//! What a command answers: on stdout, in one piece.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Writes an answer. Colours in it are shown on a terminal, unless `NO_COLOR` is set, and left out elsewhere.
pub(crate) fn write(answer: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    told(stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes bytes as they are.
pub(crate) fn write_raw(answer: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    told(stdout.write_all(answer).and_then(|()| stdout.flush()))
}

/// Writes an answer as JSON, with a newline behind it.
pub(crate) fn write_json(answer: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(answer);
    let text = text.map_err(|error| Failure::new(Exit::Output, format!("the answer cannot be written: {error}")))?;
    write_raw(format!("{text}\n").as_bytes())
}

/// How wide the terminal on stdout is; None where there is none.
pub(crate) fn terminal_width() -> Option<u16> {
    if !io::stdout().is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

fn told(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        // Whoever has read enough closes the pipe, as `head` does.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Output, format!("the answer cannot be written to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
