//! `leasehold stores`, `check`, `completions` and `man`: their options.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// List the kinds of store that this build can use, and what each guarantees
///
/// Connects to nothing.
#[derive(Debug, Args)]
pub(crate) struct StoresArgs {
    /// Write JSON: an array of stores
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reach the store, and tell which of its settings endanger locks
///
/// Measures the round trip and compares the clocks, then goes through the rules for this store: each says what it saw
/// and, where that is no good, what to do. Nothing is locked and no setting is changed. Exits with 0 if all is well,
/// with 1 if there are warnings, and with 69 if the store cannot be reached.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the completions of a shell to stdout
///
/// For bash, for example:
/// leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Write the manual page to stdout, or all pages into a directory
///
/// To read one: leasehold man run | man -l -
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The page of this subcommand, instead of that of the whole
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub(crate) command: Option<String>,

    /// Write leasehold.1, leasehold-run.1 and so on into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
