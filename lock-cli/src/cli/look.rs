//! `leasehold ls`, `show` and `break`: their options.

use std::time::Duration;

use clap::Args;

use super::duration;

/// List the locks that are held or waited for
///
/// In the order of their names: who holds each, since when, and how much is left of its lease. A lock that is held
/// again and again by the same claim for hours may have leaked: see --older-than.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Only names that begin with this text, taken literally
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,

    /// Only locks that one holder has held for longer than this, such as 1h: they may have leaked
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) older_than: Option<Duration>,

    /// Write JSON: an array of locks, as `show --json` writes one
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show who holds a lock, since when, and for how much longer
///
/// Exits with 1 if nobody holds it.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The lock's name; one that begins with '-' comes after a '--'
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a lock away from whoever holds it
///
/// For a holder that is known to be dead or beyond control. One that lives learns of it at its next renewal, or at once
/// where the store tells it, and works on until then: that its late writes are refused is up to the fencing token.
/// Shows whom it would hurt, and asks on a terminal. Exits with 1 if nobody held the lock, or nobody with that token.
#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    /// The lock's name; one that begins with '-' comes after a '--'
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Break only the hold with this fencing token, as `show` tells it
    ///
    /// So that a holder who came in the meantime keeps the lock.
    #[arg(long, value_name = "N")]
    pub(crate) token: Option<u64>,

    /// Do not ask; needed where there is no terminal to ask on
    #[arg(short, long)]
    pub(crate) yes: bool,
}
