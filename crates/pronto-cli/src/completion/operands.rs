//! Candidates for the plain arguments of each command.

use bstr::{BStr, ByteSlice};
use clap::Command as Definition;
use std::os::unix::ffi::OsStrExt;

use super::definition::WordsBefore;
use super::paths::{PathChoice, of_choice};
use super::{CompletionReply, command_names, values};
use crate::context::Context;
use crate::error::CliError;

/// The place of a plain argument.
pub(super) struct OperandPlace<'a> {
    pub(super) command: &'a str,
    /// The definition of the innermost subcommand.
    pub(super) definition: &'a Definition,
    pub(super) words: &'a WordsBefore,
    pub(super) current: &'a BStr,
}

impl OperandPlace<'_> {
    /// Returns the number of plain arguments before the cursor.
    fn count(&self) -> usize {
        self.words.operands.len()
    }

    /// Returns the plain argument at `at`.
    fn operand(&self, at: usize) -> &BStr {
        let operand = self.words.operands.get(at);
        operand
            .map(|word| word.as_bytes())
            .unwrap_or_default()
            .as_bstr()
    }

    fn has(&self, names: &[&str]) -> bool {
        self.words.has(names)
    }
}

/// Returns the candidates at `place`.
pub(super) fn of(
    place: &OperandPlace<'_>,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    if place.definition.has_subcommands() {
        return Ok(subcommands(place));
    }
    let names = parsed_subcommands(place.command);
    match (names.candidates.is_empty(), place.count()) {
        (true, _) => {}
        (false, 0) => return Ok(names),
        (false, _) => return below(place, context),
    }
    let current = place.current;
    match place.command {
        "add" => of_choice(PathChoice::ToAdd, current, context),
        "clean" => of_choice(PathChoice::Untracked, current, context),
        "checkout" => checkout(place, context),
        "clone" if place.count() > 0 => Ok(CompletionReply::of_directories()),
        "clone" | "init" | "store" | "serve" => Ok(CompletionReply::of_directories()),
        "restore" => restore(place, context),
        "reset" if place.words.options_ended || place.count() > 0 => {
            of_choice(PathChoice::Staged, current, context)
        }
        "switch" => switch(place, context),
        "cat-file" | "ls-tree" | "diff-tree" | "read-tree" | "reset" => {
            values::revisions(context.repository()?.as_ref())
        }
        "diff-index" if place.count() == 0 => values::revisions(context.repository()?.as_ref()),
        "diff-files" | "diff-index" | "ls-files" | "checkout-index" | "status" | "update-index" => {
            of_choice(PathChoice::Tracked, current, context)
        }
        "show-ref" | "symbolic-ref" => values::references(context.repository()?.as_ref()),
        "fetch" | "pull" | "push" | "ls-remote" | "sync" | "fetch-pack" | "send-pack" => {
            exchange(place, context)
        }
        "help" => help(place, context),
        "bugreport" if place.count() == 0 => Ok(command_names::all(context)),
        "bugreport" => Ok(CompletionReply::default()),
        _ => Ok(CompletionReply::of_files()),
    }
}

/// Returns the subcommands in the definition.
fn subcommands(place: &OperandPlace<'_>) -> CompletionReply {
    let mut reply = CompletionReply::default();
    if place.count() > 0 {
        return reply;
    }
    for below in place
        .definition
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
    {
        let about = below.get_about().map(ToString::to_string);
        reply.add(below.get_name(), about.unwrap_or_default());
    }
    // `serve` also takes a directory.
    reply.directories = place.definition.get_positionals().next().is_some();
    reply
}

/// Returns revisions for the word at `current`, also behind `..` and `^`.
fn revisions(current: &BStr, context: &mut Context) -> Result<CompletionReply, CliError> {
    let start = match current.rfind(b"..") {
        Some(at) => at + 2,
        None => usize::from(current.starts_with(b"^")),
    };
    Ok(values::revisions(context.repository()?.as_ref())?.prefixed(&current[..start]))
}

fn switch(place: &OperandPlace<'_>, context: &mut Context) -> Result<CompletionReply, CliError> {
    if place.count() > 0 {
        return Ok(CompletionReply::default());
    }
    let takes_any = [
        "c",
        "create",
        "C",
        "force-create",
        "d",
        "detach",
        "t",
        "track",
    ];
    if place.has(&takes_any) {
        return revisions(place.current, context);
    }
    let repository = context.repository()?;
    match place.has(&["no-guess"]) {
        true => values::branches(&repository),
        false => values::branches_to_switch(&repository),
    }
}

fn checkout(place: &OperandPlace<'_>, context: &mut Context) -> Result<CompletionReply, CliError> {
    if place.words.options_ended || place.count() > 0 {
        return of_choice(PathChoice::ToRestore, place.current, context);
    }
    let repository = context.repository()?;
    let mut reply = revisions(place.current, context)?;
    if !place.has(&["b", "B", "d", "detach"]) {
        let known: Vec<_> = reply
            .candidates
            .iter()
            .map(|one| one.value.clone())
            .collect();
        let guessed = values::branches_to_switch(&repository)?
            .candidates
            .into_iter();
        let new = guessed.filter(|one| !known.contains(&one.value));
        reply.candidates.extend(new);
    }
    Ok(reply)
}

fn restore(place: &OperandPlace<'_>, context: &mut Context) -> Result<CompletionReply, CliError> {
    let choice = if place.has(&["source", "s"]) {
        PathChoice::Tracked
    } else if place.has(&["staged", "S"]) {
        PathChoice::Staged
    } else {
        PathChoice::ToRestore
    };
    of_choice(choice, place.current, context)
}

/// Returns remotes, and then branches: the own ones for a push, those of the remote otherwise.
fn exchange(place: &OperandPlace<'_>, context: &mut Context) -> Result<CompletionReply, CliError> {
    let repository = context.repository()?;
    if place.count() == 0 {
        let mut reply = values::remotes(&repository);
        reply.directories = true;
        return Ok(reply);
    }
    let current = place.current;
    let remote = place.operand(0);
    let colon = current.find_byte(b':').map(|at| at + 1);
    let plus = usize::from(current.starts_with(b"+"));
    let reply = match (place.command, colon) {
        ("push", None) if place.has(&["delete", "d"]) => {
            values::branches_of_remote(&repository, remote)?
        }
        ("push" | "send-pack", None) => values::revisions(&repository)?,
        ("push" | "send-pack", Some(_)) => values::branches_of_remote(&repository, remote)?,
        ("fetch" | "pull", Some(_)) => values::branches(&repository)?,
        _ => values::branches_of_remote(&repository, remote)?,
    };
    Ok(reply.prefixed(&current[..colon.unwrap_or(plus)]))
}

fn help(place: &OperandPlace<'_>, context: &mut Context) -> Result<CompletionReply, CliError> {
    let name = place.operand(0).to_str().unwrap_or_default();
    if place.count() == 0 {
        return Ok(command_names::all(context));
    }
    let Some(command) = crate::commands::find(name) else {
        return Ok(CompletionReply::default());
    };
    let mut definition = command.definition();
    for word in &place.words.operands[1..] {
        match definition.find_subcommand(word) {
            Some(below) => definition = below.clone(),
            None => return Ok(CompletionReply::default()),
        }
    }
    let place = OperandPlace {
        definition: &definition,
        words: &WordsBefore::default(),
        ..*place
    };
    let mut reply = subcommands(&place);
    reply.directories = false;
    Ok(reply)
}

/// Returns the candidates for the words behind the name of a subcommand that the command parses
/// itself.
fn below(place: &OperandPlace<'_>, context: &mut Context) -> Result<CompletionReply, CliError> {
    let subcommand = place.operand(0).to_str().unwrap_or_default();
    match (place.command, subcommand) {
        ("remote", "add") => Ok(CompletionReply::of_directories()),
        ("remote", "set-head" | "set-branches") if place.count() > 1 => {
            values::branches_of_remote(context.repository()?.as_ref(), place.operand(1))
        }
        ("remote", _)
            if place.count() == 1 || matches!(subcommand, "prune" | "show" | "update") =>
        {
            Ok(values::remotes(context.repository()?.as_ref()))
        }
        ("worktree", "add") if place.count() == 1 => Ok(CompletionReply::of_directories()),
        ("worktree", "add") => revisions(place.current, context),
        ("worktree", "lock" | "move" | "remove" | "unlock") if place.count() == 1 => {
            values::worktrees(context.repository()?.as_ref())
        }
        ("worktree", "move" | "repair") => Ok(CompletionReply::of_directories()),
        ("reflog", "list") => Ok(CompletionReply::default()),
        ("reflog", _) => values::revisions(context.repository()?.as_ref()),
        ("refs", "exists") => values::references(context.repository()?.as_ref()),
        ("config", "get" | "set" | "unset") if place.count() == 1 => {
            Ok(values::configuration_keys(context))
        }
        ("config", _) => Ok(CompletionReply::default()),
        ("sparse-checkout", "set" | "add") => {
            of_choice(PathChoice::Tracked, place.current, context)
        }
        _ => Ok(CompletionReply::default()),
    }
}

/// The subcommands of commands that parse the names of their subcommands themselves, one on each line:
/// the command, a space, the subcommand, a tab and the description. One text has no addresses that the
/// loader would relocate at each start.
const SUBCOMMANDS: &str = include_str!("subcommands.tsv");

/// Returns the subcommands of `command` in [`SUBCOMMANDS`].
fn parsed_subcommands(command: &str) -> CompletionReply {
    let mut reply = CompletionReply::default();
    for line in SUBCOMMANDS.lines() {
        let rest = line.strip_prefix(command).unwrap_or_default();
        let row = rest.strip_prefix(' ').and_then(|row| row.split_once('\t'));
        if let Some((name, about)) = row {
            reply.add(name, about);
        }
    }
    reply
}
