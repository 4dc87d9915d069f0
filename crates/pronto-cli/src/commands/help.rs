//! `help`: print the list of native commands, or show the manual page of one.

use std::io::{IsTerminal, Write};

use clap::Command as Definition;
use pronto_config::similar::most_similar;

use crate::commands::{self, ArgumentStyle, COMMANDS, NativeCommand, native_part};
use crate::manual::{ManualArchive, PageLook, render};
use crate::terminal::pager;
use crate::{CliError, Context, ExitCode, fallback, git_names};

/// Arguments of `help`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// List all commands, including those that are handed to git
    #[arg(short, long)]
    all: bool,
    /// Show the manual of this command, or of this subcommand of it
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    // A user who types `git help` expects the documentation of git.
    if context.called_as_git && !fallback::is_forbidden() {
        return Err(CliError::unsupported("the manual of git"));
    }
    let Some((name, below)) = args.command.split_first() else {
        return list(args.all, context);
    };
    let page = match commands::find(name) {
        Some(command) => page_of(command, below)?,
        None if name == "pronto" => name.clone(),
        None => return Err(unknown(name, context)),
    };
    show(&page, context)
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
            write!(out, "   {:<16} {}", command.name, command.summary)?;
            match native_part(command.name) {
                Some(part) => writeln!(out, " [{part}]")?,
                None => writeln!(out)?,
            }
        }
    }
    writeln!(
        out,
        "\nEvery other command, and every option that is not in the manual of a command,"
    )?;
    writeln!(
        out,
        "is run by the installed git, unchanged. So do commands with a part in brackets,"
    )?;
    writeln!(
        out,
        "outside of that part. With PRONTO_NO_FALLBACK=1 such a call is refused instead."
    )?;
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

/// Returns the name of the manual page of `command`, or of the subcommand of it that `below` names.
/// Commands without definitions of their subcommands have one page.
fn page_of(command: &NativeCommand, below: &[String]) -> Result<String, CliError> {
    let mut page = format!("pronto-{}", command.name);
    if command.style != ArgumentStyle::Nested {
        return Ok(page);
    }
    let mut definition = command.definition();
    for word in below {
        if !definition.has_subcommands() {
            break;
        }
        let Some(found) = definition.find_subcommand(word) else {
            let names = definition.get_subcommands().map(Definition::get_name);
            return Err(unknown_command(word, most_similar(word, names)));
        };
        page.push('-');
        page.push_str(found.get_name());
        definition = found.clone();
    }
    Ok(page)
}

/// Shows a manual page in the pager if standard output is a terminal; prints it otherwise.
fn show(page: &str, context: &mut Context) -> Result<ExitCode, CliError> {
    let archive = ManualArchive::open();
    let Some(source) = archive.page(page) else {
        return Err(CliError::fatal(format!("no manual page '{page}'")));
    };
    let is_terminal = std::io::stdout().is_terminal();
    let pager = match is_terminal {
        true => pager::command_line(
            |name| context.globals.variable(name),
            || configured_pager(context),
        ),
        false => None,
    };
    let text = render(
        source,
        PageLook {
            columns: columns(is_terminal, context),
            overstrike: pager.is_some(),
        },
    );
    if let Some(pager) = pager {
        context.trace_exec();
        let variable = |name: &str| context.globals.variable(name);
        let error = pager::become_pager(&pager, text.as_bytes(), variable);
        let reason = pronto_io::error::reason(&error);
        context.warn(&format!("cannot run the pager: {reason}"));
    }
    context.out.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the value of `core.pager`. Help must work where the configuration is malformed.
fn configured_pager(context: &Context) -> Option<std::ffi::OsString> {
    use std::os::unix::ffi::OsStringExt;
    let config = context.configuration().ok()?;
    let value = config.raw("core.pager")?;
    Some(std::ffi::OsString::from_vec(value.to_vec()))
}

/// The width of a page that no terminal shows.
const USUAL_COLUMNS: usize = 80;
/// The largest width of a page. Longer lines are hard to read.
const MOST_COLUMNS: usize = 100;

fn columns(is_terminal: bool, context: &Context) -> usize {
    if !is_terminal {
        return USUAL_COLUMNS;
    }
    let variable = context.globals.variable("COLUMNS");
    let wanted = variable.and_then(|text| text.to_str()?.parse().ok());
    let of_terminal = || {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
        Some(usize::from(size.ws_col))
    };
    let columns = wanted
        .or_else(of_terminal)
        .filter(|&columns: &usize| columns > 0);
    columns.unwrap_or(USUAL_COLUMNS).min(MOST_COLUMNS)
}

/// Guides of git: names that `git help` knows besides commands.
const GUIDES: &str = "attributes cli core-tutorial credentials cvs-migration datamodel diffcore everyday faq \
    glossary hooks ignore mailmap modules namespaces remote-helpers repository-layout \
    revisions submodules tutorial tutorial-2 workflows";

/// Returns the error for a `name` that is no native command. git shows the pages of its commands and
/// guides, and reports names that are similar to none.
fn unknown(name: &str, context: &mut Context) -> CliError {
    let for_git = CliError::unsupported(format!("a manual for '{name}'"));
    let is_of_git = git_names::is_command(name.as_ref())
        || name.starts_with("git")
        || GUIDES.split(' ').any(|guide| guide == name)
        || git_names::is_meant(name.as_ref(), context);
    if is_of_git {
        return for_git;
    }
    let own = COMMANDS.iter().map(|command| command.name);
    match most_similar(name, own.chain(git_names::commands())) {
        None => for_git,
        similar => unknown_command(name, similar),
    }
}

/// Returns the error for an unknown command with the exit code of git.
fn unknown_command(name: &str, similar: Option<&str>) -> CliError {
    let error = CliError::error(format!("unknown command '{name}'"));
    match similar {
        Some(similar) => error.with_hint(format!("did you mean '{similar}'?")),
        None => error,
    }
}
