//! The command line as types, and the help that explains it.

#![expect(clippy::doc_markdown, reason = "the doc comments are the help, which is shown without markup")]

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

/// Locks for shell scripts and cron, over the store that your services already use.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, max_term_width = 100, after_long_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which store keeps the locks.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The store: a URL, or the name of a [stores.NAME] table of the configuration file
    ///
    /// Without it: $LEASEHOLD_STORE, else the [lock] table of the configuration file, else an SQLite file of your own
    /// ($XDG_STATE_HOME/leasehold/locks.db, ~/.local/state where that is unset), which serves the processes of one
    /// user on one host. A value without ':' is a name. A URL stands for itself: nothing of the file is added to it.
    #[arg(long, global = true, value_name = "URL|NAME")]
    pub(crate) store: Option<String>,

    /// The namespace of the lock's name; names of different namespaces never meet
    #[arg(long, global = true, value_name = "NS")]
    pub(crate) namespace: Option<String>,

    /// The configuration file, instead of ./leasehold.toml or $XDG_CONFIG_HOME/leasehold/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
}

/// Run a command while holding a lock
///
/// Waits until the lock NAME is free, holds it while CMD runs, and exits with CMD's exit code. The lock is renewed in
/// the background for as long as CMD runs, and given back when it ends, also when leasehold or the host crashes: then
/// after what is left of the lease.
#[derive(Debug, Args)]
#[command(
    override_usage = "leasehold run [OPTIONS] NAME -- CMD [ARG...]",
    after_long_help = RUN_AFTER_HELP,
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

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| {
        if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
            return format!("it has no unit; did you mean {text}s?");
        }
        format!("{error}; write it as 500ms, 30s or 1h30m")
    })
}

const AFTER_HELP: &str = "\
Examples:
  leasehold run backup -- ./backup.sh
  leasehold --store redis://127.0.0.1:6379 run -n nightly -- ./report.sh

`leasehold run --help` has the exit codes, what CMD sees, and what happens when things go wrong.";

const RUN_AFTER_HELP: &str = "\
Examples:
  Take turns, whoever comes first:
    leasehold run deploy -- ./deploy.sh
  Give up after ten minutes:
    leasehold run -w 10m deploy -- ./deploy.sh
  In a crontab, on several hosts at once, the job runs on one of them, and those that came too late are silent:
    */5 * * * *  leasehold run -n -q -E 0 report -- /usr/local/bin/report
  Locks of a team on a shared store:
    export LEASEHOLD_STORE='redis://locks.example.net/0?namespace=shop'
    leasehold run --label \"$USER\" migrate -- ./migrate.sh
  Let the resource refuse a holder that was paused too long:
    leasehold run ledger -- sh -c './post --fence \"$LEASEHOLD_FENCING_TOKEN\"'

Coming from flock(1): NAME is a name, not a file; -n, -w and -E mean the same (durations have a unit, and 75 is the
default of -E); CMD follows a `--`; the lock is CMD's for as long as CMD itself runs. Children that CMD leaves behind
are left alone and run on without the lock.

Exit codes:
  CMD's own, or 128+N if signal N ended it (or leasehold while it waited)
    2  wrong usage: an option, NAME, or a duration that is out of range
   69  the store cannot be reached, or refused
   70  the lock was lost while CMD ran; CMD was ended, or had ended already
   75  the lock is busy, or the wait timed out (see -E); also a nested run of a lock that an enclosing run holds
   78  wrong configuration: the URL, the file, the environment, or a store that is not built in
  126  CMD cannot be executed
  127  CMD was not found

What CMD sees:
  LEASEHOLD_NAME, LEASEHOLD_NAMESPACE  the lock
  LEASEHOLD_FENCING_TOKEN              a number that grows with each holder of the lock
  LEASEHOLD_HELD                       what enclosing runs hold, for leasehold itself
  stdin, stdout, stderr and other open files are CMD's, untouched. leasehold writes to stderr only.

Signals: TERM, INT, HUP, QUIT, USR1 and USR2 are passed on to CMD and everything in its process group. CMD is in a group
of its own, unless stdin is a terminal: there ^C and ^Z reach CMD by themselves, and what others send to leasehold is
passed on to CMD alone. While leasehold waits for the lock, TERM, INT, HUP and QUIT end it and leave nothing behind.
A signal that the caller ignores, as under nohup, stays ignored.

When the lock is about to be lost: CMD gets TERM when --grace is all that is left of the lease, and KILL at its end. If
someone removed the lock by hand, it gets TERM at once, and KILL after --grace. A CMD that was stopped or suspended
together with leasehold past its lease is killed when they continue.

If leasehold itself is killed (kill -9), CMD is killed with it on Linux; not so a set-user-ID CMD, nor the children that
CMD has started. A fencing token protects against those.

Configuration file (TOML), ./leasehold.toml or $XDG_CONFIG_HOME/leasehold/config.toml, the first that exists:
  [lock]                          # used when no store is named
  store = \"redis://127.0.0.1:6379\"
  namespace = \"shop\"
  lease = \"30s\"
  [stores.prod]                   # used with --store prod; the same keys
  store = \"postgres://shop@db/locks\"";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let words = ["leasehold", "run"].iter().chain(words);
        Cli::try_parse_from(words).map(|cli| match cli.command {
            Command::Run(args) => args,
        })
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
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
    fn a_duration_without_a_unit_is_explained() {
        assert_eq!(duration("5"), Err("it has no unit; did you mean 5s?".to_owned()));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("soon").expect_err("no duration").contains("30s"));
        assert!(run(&["-w", "1s", "-n", "a", "--", "true"]).is_err());
    }
}
