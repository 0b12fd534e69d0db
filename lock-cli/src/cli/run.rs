//! `leasehold run`: its options.

use std::{ffi::OsString, time::Duration};

use clap::Args;

use super::{duration, help};

/// Run a command while holding a lock
///
/// Waits until the lock NAME is free, holds it while CMD runs, and exits with CMD's exit code. The lock is renewed in
/// the background for as long as CMD runs, and given back when it ends, also when leasehold or the host crashes: then
/// after what is left of the lease.
#[derive(Debug, Args)]
#[command(
    override_usage = "leasehold run [OPTIONS] NAME -- CMD [ARG...]",
    after_long_help = help::RUN_AFTER,
)]
pub(crate) struct RunArgs {
    /// Wait for the lock at most this long, such as 90s or 1h30m (default: without limit)
    #[arg(short, long, value_name = "DUR", value_parser = duration, conflicts_with = "no_wait")]
    pub(crate) wait: Option<Duration>,

    /// Do not wait: try once, and exit with 75 if someone holds the lock
    #[arg(short, long)]
    pub(crate) no_wait: bool,

    /// How long the lock outlives a crash of this host (default: 30s)
    ///
    /// The lock is renewed every third of it. If renewals fail for that long, because the store or the network is down,
    /// the lock is lost, and CMD is ended before someone else can have it.
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) lease: Option<Duration>,

    /// How long CMD gets to end by itself when the lock is about to be lost (default: lease/6, at most 5s)
    ///
    /// TERM is sent when this much is left of the lease, KILL at its end. At most a third of the lease.
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) grace: Option<Duration>,

    /// Keep the lock for at least this long, even if CMD ends sooner
    ///
    /// For a job that several hosts start at the same minute by their own clocks: one that is done in a second would
    /// otherwise leave the lock free for the host whose clock is behind. leasehold exits only when the time has passed;
    /// if it is killed, the lock is free when its lease has run out.
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) min_hold: Option<Duration>,

    /// A text that others see beside the lock while you hold it
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Exit with N instead of 75 if the lock is busy or the wait timed out (0 to 255)
    #[arg(short = 'E', long, value_name = "N")]
    pub(crate) busy_exit_code: Option<u8>,

    /// Write nothing to stderr unless something failed; a busy lock is not a failure
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The lock: 1 to 512 bytes of UTF-8, any characters
    ///
    /// A name that begins with '-' comes after a '--' of its own: leasehold run -- -NAME -- CMD.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The command and its arguments, any bytes
    #[arg(value_name = "CMD", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// Takes NAME apart from CMD, also where both came behind the first `--`.
    pub(crate) fn into_operands(mut self) -> Result<(String, Self), String> {
        if let Some(name) = self.name.take() {
            return Ok((name, self));
        }
        if self.command.get(1).is_none_or(|word| word != "--") || self.command.len() < 3 {
            return Err("NAME is missing; use `leasehold run NAME -- CMD [ARG...]`".to_owned());
        }
        let name = self.command.remove(0).into_string();
        self.command.remove(0);
        name.map(|name| (name, self)).map_err(|raw| format!("lock name {raw:?} is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let words = ["leasehold", "run"].iter().chain(words);
        Cli::try_parse_from(words).map(|cli| match cli.command {
            Command::Run(args) => *args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn operands_are_told_apart() {
        let operands = |words: &[&str]| {
            let (name, args) = run(words).expect("a command line").into_operands().expect("operands");
            (name, args.command)
        };
        assert_eq!(operands(&["a", "--", "true"]), ("a".to_owned(), vec!["true".into()]));
        assert_eq!(operands(&["a", "--", "x", "--", "y"]).1.len(), 3);
        assert_eq!(
            operands(&["-n", "--", "-x", "--", "true", "-n"]),
            ("-x".to_owned(), vec!["true".into(), "-n".into()])
        );
        assert!(run(&["--", "true"]).expect("parsed").into_operands().is_err());
        assert!(run(&["a"]).is_err());
        assert!(run(&["a", "--"]).is_err());
        assert!(run(&["a", "true"]).is_err());
    }

    #[test]
    fn waiting_and_not_waiting_exclude_each_other() {
        assert!(run(&["-w", "1s", "-n", "a", "--", "true"]).is_err());
    }
}
