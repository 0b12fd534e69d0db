//! The command line as types, and the help that explains it. The man pages are made from the same.

#![expect(clippy::doc_markdown, reason = "the doc comments are the help, which is shown without markup")]

mod help;
mod look;
mod more;
mod run;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

pub(crate) use self::{
    look::{BreakArgs, LsArgs, ShowArgs},
    more::{CheckArgs, CompletionsArgs, ManArgs, StoresArgs},
    run::RunArgs,
};

/// Locks for shell scripts and cron, over the store that your services already use.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, max_term_width = 100, after_help = help::AFTER, after_long_help = help::AFTER_LONG)]
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

    /// The configuration file, instead of $LEASEHOLD_CONFIG, ./leasehold.toml or $XDG_CONFIG_HOME/leasehold/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Ls(LsArgs),
    Show(ShowArgs),
    Break(BreakArgs),
    Stores(StoresArgs),
    Check(CheckArgs),
    /// Create what the store needs, such as a table, and say what was created
    ///
    /// Without it each store does so by itself when it is first used, if its user has the right to. Exits with 0 also
    /// when all was there.
    Init,
    Completions(CompletionsArgs),
    Man(ManArgs),
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| {
        if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
            return format!("it has no unit; did you mean {text}s?");
        }
        format!("{error}; write it as 500ms, 30s or 1h30m")
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_duration_without_a_unit_is_explained() {
        assert_eq!(duration("5"), Err("it has no unit; did you mean 5s?".to_owned()));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("soon").expect_err("no duration").contains("30s"));
    }
}
