//! Names of commands as candidates: native ones, those of git, and aliases.

use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};

use super::CompletionReply;
use crate::commands::{COMMANDS, HelpSection};
use crate::context::Context;
use crate::git_names;

/// The commands of git for daily work that are not native.
const DAILY: &[(&str, &str)] = &[
    ("am", "apply a series of patches from a mailbox"),
    ("apply", "apply a patch to files or the index"),
    ("bisect", "find the commit that introduced a change"),
    ("blame", "show which commit last changed each line"),
    ("branch", "list, create and delete branches"),
    ("cherry-pick", "apply the changes of existing commits"),
    ("describe", "name a commit by the nearest tag"),
    ("diff", "show changes"),
    ("difftool", "show changes with a diff tool"),
    ("format-patch", "write commits as patches for mail"),
    ("fsck", "check the objects of the repository"),
    ("grep", "search tracked files"),
    ("log", "show the history"),
    ("merge", "join histories"),
    ("mergetool", "resolve conflicts with a merge tool"),
    ("mv", "move files, and record that"),
    ("notes", "add notes to objects"),
    ("range-diff", "compare two ranges of commits"),
    ("rebase", "apply commits again on top of another commit"),
    ("replace", "replace objects by others"),
    ("revert", "undo the changes of existing commits"),
    ("rm", "remove files, and record that"),
    ("shortlog", "summarise the history by author"),
    ("show", "show objects"),
    ("stash", "put local changes aside"),
    ("submodule", "manage submodules"),
    ("tag", "list, create and delete tags"),
];

/// Returns the candidates for the command. Commands for scripts are among them only if no other
/// command begins with `current`.
pub(super) fn commands(current: &BStr, context: &mut Context) -> CompletionReply {
    let mut reply = CompletionReply::default();
    for command in COMMANDS {
        if command.group != HelpSection::Plumbing {
            reply.add(command.name, command.summary);
        }
    }
    for (name, summary) in DAILY {
        reply.add(*name, *summary);
    }
    add_aliases(&mut reply, context);
    let mut candidates = reply.candidates.iter();
    match candidates.any(|candidate| candidate.value.starts_with(current)) {
        true => reply,
        false => all(context),
    }
}

/// Returns the names of all commands.
pub(super) fn all(context: &mut Context) -> CompletionReply {
    let mut reply = CompletionReply::default();
    for command in COMMANDS {
        reply.add(command.name, command.summary);
    }
    for name in git_names::commands().filter(|name| !name.contains("--")) {
        if crate::commands::find(name).is_none() {
            let daily = DAILY.iter().find(|(known, _)| *known == name);
            reply.add(name, daily.map_or("", |(_, summary)| summary));
        }
    }
    add_aliases(&mut reply, context);
    reply
}

fn add_aliases(reply: &mut CompletionReply, context: &mut Context) {
    let Ok(config) = context.configuration() else {
        return;
    };
    for entry in config.iter() {
        let Some(name) = entry.key.strip_prefix(b"alias.") else {
            continue;
        };
        let name = name.strip_suffix(b".command").unwrap_or(name);
        if git_names::is_command(std::ffi::OsStr::from_bytes(name)) {
            continue;
        }
        let value = entry.value.unwrap_or_default().to_str_lossy();
        reply.add(name, format!("alias for '{value}'"));
    }
}
