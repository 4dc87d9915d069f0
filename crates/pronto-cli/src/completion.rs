//! `completion-candidates`: print what a shell offers at the cursor. The scripts in `docs/completions`
//! call this hidden command, which never hands its call to git.
//!
//! `pronto completion-candidates SHELL WORD...` takes the words of the command line up to the cursor:
//! the name of the program first, the word at the cursor last. The first line of the output has the
//! requests to the shell, each further line a candidate, a tab and a description.

mod command_names;
mod definition;
mod operands;
mod paths;
mod shell_words;
mod values;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};

use crate::commands::{self, ArgumentStyle};
use crate::context::Context;
use crate::error::{CliError, ExitCode};
use crate::globals::{Globals, Rest};
use crate::{alias, globals};
use definition::WordsBefore;
use operands::OperandPlace;

/// The name of the hidden command.
pub(crate) const NAME: &str = "completion-candidates";

/// The shells that have scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// The candidates at the cursor, and what the shell adds to them.
#[derive(Debug, Default)]
struct CompletionReply {
    candidates: Vec<CompletionCandidate>,
    /// Ask the completion of git, too.
    git: bool,
    /// Add files and directories.
    files: bool,
    /// Add directories.
    directories: bool,
    /// The candidates are paths.
    paths: bool,
}

/// A word that may stand at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CompletionCandidate {
    value: BString,
    /// The description; it may be empty.
    about: String,
}

impl CompletionReply {
    /// Creates a reply that asks the completion of git.
    fn of_git() -> Self {
        CompletionReply {
            git: true,
            ..Self::default()
        }
    }

    /// Creates a reply that asks the shell for files.
    fn of_files() -> Self {
        CompletionReply {
            files: true,
            ..Self::default()
        }
    }

    /// Creates a reply that asks the shell for directories.
    fn of_directories() -> Self {
        CompletionReply {
            directories: true,
            ..Self::default()
        }
    }

    fn add(&mut self, value: impl Into<BString>, about: impl Into<String>) {
        self.candidates.push(CompletionCandidate {
            value: value.into(),
            about: about.into(),
        });
    }

    /// Puts `prefix` before each candidate.
    fn prefixed(mut self, prefix: &[u8]) -> Self {
        for candidate in &mut self.candidates {
            let value = [prefix, candidate.value.as_bytes()].concat();
            candidate.value = value.into();
        }
        self
    }

    fn print(&self, out: &mut impl Write) -> Result<(), CliError> {
        let flags = [
            (self.git, "git"),
            (self.files, "files"),
            (self.directories, "directories"),
            (self.paths, "paths"),
        ];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set);
        let names: Vec<&str> = set.map(|(_, name)| name).collect();
        writeln!(out, "{}", names.join(" "))?;
        for CompletionCandidate { value, about } in &self.candidates {
            // A word with a control character would break the line.
            if !value.iter().any(u8::is_ascii_control) {
                out.write_all(value)?;
                writeln!(out, "\t{}", about.replace(['\t', '\n'], " "))?;
            }
        }
        Ok(())
    }
}

/// Prints the candidates for the words in `arguments`. Nothing is printed for a command line or a
/// repository that cannot be read.
pub(crate) fn run(arguments: &[OsString], context: &mut Context) -> Result<ExitCode, CliError> {
    let Some((shell, words)) = arguments.split_first() else {
        return Err(CliError::usage("the name of a shell is missing"));
    };
    let shell = match shell.as_bytes() {
        b"bash" => CompletionShell::Bash,
        b"zsh" => CompletionShell::Zsh,
        b"fish" => CompletionShell::Fish,
        _ => return Err(CliError::usage("the shell is not 'bash', 'zsh' or 'fish'")),
    };
    let home = context.globals.variable("HOME");
    let words: Vec<OsString> = match shell {
        CompletionShell::Bash => words
            .iter()
            .map(|word| shell_words::unquoted(word, home.as_deref()))
            .collect(),
        _ => words.to_vec(),
    };
    let Some((current, before)) = words.split_last() else {
        return Ok(ExitCode::SUCCESS);
    };
    let current = current.as_bytes().as_bstr();
    let mut reply = of_line(before, current, context).unwrap_or_default();
    if shell == CompletionShell::Bash {
        // The other shells compare in their own ways.
        let candidates = &mut reply.candidates;
        candidates.retain(|candidate| candidate.value.starts_with(current));
    }
    reply.print(&mut context.out)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the candidates for the word `current` after `before`, which begins with the program.
fn of_line(
    before: &[OsString],
    current: &BStr,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    let (found, rest) = match Globals::read(before) {
        Ok(read) => read,
        Err(_) => return of_global_value(before.last().map(OsString::as_os_str), context),
    };
    context.globals = found;
    match rest {
        Rest::Command(at) => of_command(&before[at], &before[at + 1..], current, context),
        Rest::Nothing if current.starts_with(b"-") => {
            let definition = globals::define(clap::Command::new("pronto"));
            Ok(definition::options(&definition, current))
        }
        Rest::Nothing => Ok(command_names::commands(current, context)),
        Rest::Help(_) => Ok(command_names::all(context)),
        Rest::Version | Rest::ListNative | Rest::Unknown(_) => Ok(CompletionReply::default()),
    }
}

/// Returns the candidates for the value of the option before the command `option`.
fn of_global_value(
    option: Option<&OsStr>,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    let option = option.map(OsStr::as_bytes).unwrap_or_default();
    match option {
        b"-c" => {
            let mut keys = values::configuration_keys(context);
            for key in &mut keys.candidates {
                key.value.push(b'=');
            }
            Ok(keys)
        }
        b"-C" | b"--git-dir" | b"--work-tree" => Ok(CompletionReply::of_directories()),
        b"--trace-chrome" => Ok(CompletionReply::of_files()),
        _ => Ok(CompletionReply::default()),
    }
}

/// Returns the candidates for an argument of the command `name`.
fn of_command(
    name: &OsStr,
    before: &[OsString],
    current: &BStr,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    let Some(command) = name.to_str().and_then(commands::find) else {
        return match alias::expand(name, before, context)? {
            Some(words) => of_command(&words[0], &words[1..], current, context),
            None => Ok(CompletionReply::of_git()),
        };
    };
    let has = |option: &str| before.iter().any(|word| word == option);
    let is_gits = match command.name {
        // git runs nearly all of the calls.
        "commit" => true,
        "pull" => !has("--netsync"),
        // The definitions of these commands have no options.
        "config" | "update-index" => current.starts_with(b"-"),
        _ => command.style == ArgumentStyle::Raw,
    };
    let mut root = command.definition();
    root.build();
    let (definition, words) = definition::innermost(root, before);
    let mut reply = match &words {
        // git completes these calls. The own options are added.
        _ if is_gits && !current.starts_with(b"-") => CompletionReply::of_git(),
        WordsBefore {
            value_of: Some(option),
            ..
        } => values::of_option(command.name, option, context)?,
        _ if !words.options_ended && current.starts_with(b"-") => {
            of_option_word(command.name, &definition, current, context)?
        }
        _ => {
            let place = OperandPlace {
                command: command.name,
                definition: &definition,
                words: &words,
                current,
            };
            operands::of(&place, context)?
        }
    };
    reply.git = is_gits;
    Ok(reply)
}

/// Returns the candidates for a word that begins with a dash: options, or values after `=`.
fn of_option_word(
    command: &str,
    definition: &clap::Command,
    current: &BStr,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    let Some(equals) = current.find_byte(b'=') else {
        return Ok(definition::options(definition, current));
    };
    let (name, prefix) = (&current[..equals], &current[..=equals]);
    let Some(option) = definition::find_long(definition, name) else {
        return Ok(CompletionReply::default());
    };
    let reply = values::of_option(command, option, context)?;
    Ok(reply.prefixed(prefix))
}
