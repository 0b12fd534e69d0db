//! `leasehold man` and `completions`: made from the definition of the command line, as the help is.

use std::{fs, io, path::Path};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::{
    cli::{Cli, CompletionsArgs, ManArgs},
    exit::{Exit, Failure},
    out,
};

/// Writes the page that is asked for, or all of them.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let mut whole = definition();
    if let Some(directory) = &args.dir {
        return write_all(&whole, directory);
    }
    let page = match &args.command {
        None => page(whole.clone()),
        Some(name) => match whole.find_subcommand_mut(name) {
            Some(command) => page(command.clone()),
            None => {
                let known: Vec<&str> = whole.get_subcommands().map(Command::get_name).collect();
                return Err(Failure::usage(format!("there is no command {name:?}; there are {}", known.join(", "))));
            }
        },
    };
    out::write_raw(&page.map_err(|error| unwritten(&error))?)?;
    Ok(Exit::Done)
}

/// Writes a shell's completions.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "leasehold", &mut script);
    out::write_raw(&script)?;
    Ok(Exit::Done)
}

/// The command line with each subcommand named as its page is.
fn definition() -> Command {
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    let names: Vec<String> = whole.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        // `leasehold run` is the usage, `leasehold-run` the page.
        whole = whole.mut_subcommand(&name, |command| command.display_name(format!("leasehold-{name}")));
    }
    whole
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).manual("leasehold").source(concat!("leasehold ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    Ok(page)
}

fn write_all(whole: &Command, directory: &Path) -> Result<Exit, Failure> {
    let pages = std::iter::once(whole).chain(whole.get_subcommands());
    for command in pages {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = directory.join(format!("{name}.1"));
        let written = page(command.clone()).and_then(|page| fs::write(&file, page));
        written.map_err(|error| {
            Failure::new(Exit::Output, format!("the manual page {} cannot be written: {error}", file.display()))
        })?;
    }
    Ok(Exit::Done)
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::new(Exit::Output, format!("the manual page cannot be written: {error}"))
}
