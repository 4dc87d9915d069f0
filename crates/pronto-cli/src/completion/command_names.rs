//! Names of commands as candidates: native ones, those of git, and aliases.

use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};

use super::CompletionReply;
use crate::commands::{COMMANDS, HelpSection};
use crate::context::Context;
use crate::git_names;

/// The commands of git for daily work that are not native, one on each line: the name, a colon and the
/// description.
const DAILY: &str = "\
am:apply a series of patches from a mailbox\n\
apply:apply a patch to files or the index\n\
bisect:find the commit that introduced a change\n\
blame:show which commit last changed each line\n\
branch:list, create and delete branches\n\
cherry-pick:apply the changes of existing commits\n\
describe:name a commit by the nearest tag\n\
diff:show changes\n\
difftool:show changes with a diff tool\n\
format-patch:write commits as patches for mail\n\
fsck:check the objects of the repository\n\
grep:search tracked files\n\
log:show the history\n\
merge:join histories\n\
mergetool:resolve conflicts with a merge tool\n\
mv:move files, and record that\n\
notes:add notes to objects\n\
range-diff:compare two ranges of commits\n\
rebase:apply commits again on top of another commit\n\
replace:replace objects by others\n\
revert:undo the changes of existing commits\n\
rm:remove files, and record that\n\
shortlog:summarise the history by author\n\
show:show objects\n\
stash:put local changes aside\n\
submodule:manage submodules\n\
tag:list, create and delete tags\n\
";

/// Returns the commands in [`DAILY`] with their descriptions.
fn daily() -> impl Iterator<Item = (&'static str, &'static str)> {
    DAILY.lines().filter_map(|line| line.split_once(':'))
}

/// Returns the candidates for the command. Commands for scripts are among them only if no other
/// command begins with `current`.
pub(super) fn commands(current: &BStr, context: &mut Context) -> CompletionReply {
    let mut reply = CompletionReply::default();
    for command in COMMANDS {
        if command.group != HelpSection::Plumbing {
            reply.add(command.name, command.summary);
        }
    }
    for (name, summary) in daily() {
        reply.add(name, summary);
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
            let daily = daily().find(|(known, _)| *known == name);
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
