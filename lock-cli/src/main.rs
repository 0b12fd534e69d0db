//! The `leasehold` command: locks for shell scripts and cron.

mod check;
mod cli;
mod exit;
mod init;
mod look;
mod manual;
mod out;
mod run;
mod session;
mod store;
mod stores;
mod table;
mod voice;
mod words;

use std::process::ExitCode;

use clap::{Parser as _, error::ErrorKind};

use crate::{
    cli::{Cli, Command},
    exit::{Exit, Failure},
};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == run::shim::FLAG) {
        return fail(&run::shim::become_command(arguments));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let done = match cli.command {
        Command::Run(arguments) => run::run(&cli.store, *arguments),
        Command::Ls(arguments) => look::ls(&cli.store, &arguments),
        Command::Show(arguments) => look::show(&cli.store, &arguments),
        Command::Break(arguments) => look::break_lock(&cli.store, &arguments),
        Command::Stores(arguments) => stores::stores(&arguments),
        Command::Check(arguments) => check::check(&cli.store, &arguments),
        Command::Init => init::init(&cli.store),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    if !failure.message.is_empty() {
        voice::write_line(&failure.message);
    }
    failure.exit.into()
}

/// Help and version go to stdout; a wrong command line is told like any other failure.
fn explain(error: &clap::Error) -> ExitCode {
    let asked_for = !error.use_stderr();
    if asked_for || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed stdout is no reason to fail.
        let _ = error.print();
        return if asked_for { ExitCode::SUCCESS } else { Exit::Usage.into() };
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    let words: Vec<_> = std::env::args_os().collect();
    let unparted = error.kind() == ErrorKind::UnknownArgument
        && words.iter().any(|word| word == "run")
        && words.iter().all(|word| word != "--");
    let hint = if unparted { "\n\nCMD comes behind a `--`: leasehold run NAME -- CMD [ARG...]" } else { "" };
    voice::write_line(&format!("{text}{hint}"));
    Exit::Usage.into()
}
