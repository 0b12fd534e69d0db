//! A pseudo-terminal for a command, as a person would have it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::{Running, Sandbox, until};

/// A terminal with what was shown on it so far.
#[derive(Debug)]
pub(crate) struct Terminal {
    keyboard: File,
    peer: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// A terminal of 80 columns.
    pub(crate) fn open() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pseudo-terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let peer = ioctl_tiocgptpeer(&master, flags).expect("the other side");
        tcsetwinsize(&peer, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().expect("a second handle");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let (seen, ended) = (Arc::clone(&shown), Arc::clone(&closing));
        let reader = thread::spawn(move || {
            let mut part = [0; 4096];
            let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !ended.load(Ordering::Relaxed) {
                let mut ready = [PollFd::new(&screen, PollFlags::IN)];
                if !matches!(poll(&mut ready, Some(&pause)), Ok(1..)) {
                    continue;
                }
                // The end is an error (EIO), when the last process has closed the other side.
                let Ok(length @ 1..) = screen.read(&mut part) else { return };
                seen.lock().expect("seen").extend(&part[..length]);
            }
        });
        Terminal { keyboard, peer, shown, closing, reader: Some(reader) }
    }

    /// Takes the terminal away, as when a connection is cut.
    pub(crate) fn hang_up(mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.reader.take().expect("a reader").join().expect("it has ended");
    }

    /// Starts a program as the leader of a session whose terminal this is.
    pub(crate) fn start(&self, sandbox: &Sandbox, program: &str, arguments: &[&str]) -> Running {
        let mut command = sandbox.any("setsid", ["--ctty", "--wait", program].iter().chain(arguments));
        command.env("LEASEHOLD_STORE", sandbox.url()).env("TERM", "xterm").stdin(self.side());
        command.stdout(self.side()).stderr(self.side());
        Running::start(command)
    }

    /// Starts the command on this terminal, without a shell in between.
    pub(crate) fn leasehold(&self, sandbox: &Sandbox, arguments: &[&str]) -> Running {
        self.start(sandbox, env!("CARGO_BIN_EXE_leasehold"), arguments)
    }

    /// One more handle on the side that programs see.
    pub(crate) fn side(&self) -> Stdio {
        self.peer.try_clone().expect("a handle").into()
    }

    /// Types these keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// What was shown so far, with all control sequences.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("shown")).into_owned()
    }

    /// Waits until this was shown.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        until(&format!("the terminal shows {text:?}"), || self.shown().contains(text));
    }
}
