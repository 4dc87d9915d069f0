//! `help`: print the list of native commands, or the manual of one command.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use clap::Command as Definition;

use crate::commands::{self, COMMANDS, NativeCommand};
use crate::{CliError, Context, ExitCode, fallback};

/// Arguments of `help`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// List all commands, including those that are handed to git
    #[arg(short, long)]
    all: bool,
    /// Show the manual of this command
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    // A user who types `git help` expects the documentation of git.
    if context.called_as_git && !fallback::is_forbidden() {
        return Err(CliError::unsupported("the manual of git"));
    }
    // Subcommands share the manual page of their command.
    match args.command.first() {
        Some(name) => match commands::find(name) {
            Some(command) => manual(command, context),
            None => Err(CliError::unsupported(format!("a manual for '{name}'"))),
        },
        None => list(args.all, context),
    }
}

fn list(all: bool, context: &mut Context) -> Result<ExitCode, CliError> {
    let out = &mut context.out;
    if !all {
        writeln!(
            out,
            "usage: pronto [-C <path>] [-c <name>=<value>] [<options>] <command> [<args>]\n"
        )?;
    }
    writeln!(out, "These are the commands that pronto runs itself:")?;
    let mut groups: Vec<_> = COMMANDS.iter().map(|command| command.group).collect();
    groups.sort();
    groups.dedup();
    for group in groups {
        writeln!(out, "\n{}", group.title())?;
        for command in COMMANDS.iter().filter(|command| command.group == group) {
            writeln!(out, "   {:<16} {}", command.name, command.summary)?;
        }
    }
    writeln!(
        out,
        "\nEvery other command, and every option that is not in the manual of a command,"
    )?;
    writeln!(
        out,
        "is run by the installed git, unchanged. With PRONTO_NO_FALLBACK=1 it is"
    )?;
    writeln!(out, "refused instead.")?;
    if all {
        writeln!(out, "\n'git help -a' lists the commands of git.")?;
    } else {
        writeln!(
            out,
            "\nSee 'pronto help <command>' to read about a command."
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the manual page if it is installed, and its source text otherwise.
fn manual(command: &NativeCommand, context: &mut Context) -> Result<ExitCode, CliError> {
    let page = format!("pronto-{}", command.name);
    let is_installed = pronto_io::child::command("man")
        .args(["-w", &page])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if is_installed {
        let error = pronto_io::child::command("man").arg(&page).exec();
        context.warn(&format!("cannot run 'man': {error}"));
    }
    write_help(command.definition(), context)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the help of a command and of its subcommands.
fn write_help(mut definition: Definition, context: &mut Context) -> Result<(), CliError> {
    write!(context.out, "{}", definition.render_long_help())?;
    for below in definition.get_subcommands() {
        let path = below.get_bin_name().unwrap_or(below.get_name());
        writeln!(context.out, "\n{path}\n")?;
        write_help(below.clone(), context)?;
    }
    Ok(())
}
