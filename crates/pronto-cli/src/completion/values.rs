//! Candidates for values: refs, remotes, worktrees, configuration variables, and words that an option
//! takes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use clap::Arg;
use pronto::Repository;
use pronto::worktrees::HeadState;

use super::CompletionReply;
use crate::context::Context;
use crate::error::CliError;
use crate::manual::ManualArchive;

/// The words that the options of a name take, whichever command has the option: on each line the name
/// and the words.
const WORDS: &str = "\
chmod +x -x\n\
conflict merge diff3 zdiff3\n\
column always never auto column row plain dense nodense\n\
filter blob:none blob:limit= tree:0 object:type=\n\
ignore-submodules all dirty untracked none\n\
ignored traditional matching no\n\
mirror fetch push\n\
object-format sha1 sha256\n\
porcelain v1 v2\n\
ref-format files reftable\n\
role serve upkeep both\n\
schedule hourly daily weekly\n\
scheduler auto crontab systemd-timer launchctl schtasks\n\
shared umask group all\n\
signed yes no if-asked\n\
track direct inherit\n\
untracked-files all normal no\n\
";

/// Returns the candidates for the value of `option` of `command`.
pub(super) fn of_option(
    command: &str,
    option: &Arg,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    let long = option.get_long().unwrap_or_default();
    let names = option.get_value_names().unwrap_or_default();
    let name = names.first().map_or("", |name| name.as_str());
    // `remote add` has options of these names with other values.
    let fixed = match (command, long) {
        ("push", "recurse-submodules") => Some("check on-demand only no"),
        _ => WORDS.lines().find_map(|line| {
            let (known, words) = line.split_once(' ')?;
            (known == long).then_some(words)
        }),
    };
    if let Some(words) = fixed.filter(|_| name != "BRANCH") {
        let mut reply = CompletionReply::default();
        words.split(' ').for_each(|word| reply.add(word, ""));
        return Ok(reply);
    }
    match name {
        "FILE" | "PATH" | "PROGRAM" => Ok(CompletionReply::of_files()),
        "DIRECTORY" | "DIR" => Ok(CompletionReply::of_directories()),
        "BRANCH" => branches(context.repository()?.as_ref()),
        "REVISION" | "COMMIT" | "TREE-ISH" | "OBJECT" => revisions(context.repository()?.as_ref()),
        "REF" => references(context.repository()?.as_ref()),
        "REMOTE" | "REPOSITORY" => Ok(remotes(context.repository()?.as_ref())),
        "PATHSPEC" => Ok(CompletionReply::of_files()),
        _ => Ok(CompletionReply::default()),
    }
}

/// Adds the refs below `prefix`, without it.
fn add_refs(
    repository: &Repository,
    prefix: &str,
    about: &str,
    reply: &mut CompletionReply,
) -> Result<(), CliError> {
    repository.refs().for_each(prefix, |reference| {
        if let Some(name) = reference.name.strip_prefix(prefix.as_bytes()) {
            reply.add(name, about);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}

/// Returns the branches.
pub(super) fn branches(repository: &Repository) -> Result<CompletionReply, CliError> {
    let mut reply = CompletionReply::default();
    add_refs(repository, "refs/heads/", "branch", &mut reply)?;
    Ok(reply)
}

/// Returns the branches, and the names of branches that only remotes have: `switch` creates them.
pub(super) fn branches_to_switch(repository: &Repository) -> Result<CompletionReply, CliError> {
    let mut reply = branches(repository)?;
    let mut known: BTreeMap<BString, Option<BString>> = BTreeMap::new();
    for candidate in &reply.candidates {
        known.insert(candidate.value.clone(), None);
    }
    let mut found = Vec::new();
    let remotes = repository.config().subsections("remote");
    for remote in remotes {
        let prefix = format!("refs/remotes/{remote}/");
        repository.refs().for_each(&prefix, |reference| {
            if let Some(name) = reference.name.strip_prefix(prefix.as_bytes())
                && name != b"HEAD"
            {
                found.push((BString::from(name), BString::from(remote)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    for (name, remote) in found {
        if known.insert(name.clone(), Some(remote.clone())).is_none() {
            reply.add(name, format!("branch of remote {remote}"));
        }
    }
    Ok(reply)
}

/// Returns branches, tags, remote-tracking branches and `HEAD`.
pub(super) fn revisions(repository: &Repository) -> Result<CompletionReply, CliError> {
    let mut reply = CompletionReply::default();
    reply.add("HEAD", "the current commit");
    add_refs(repository, "refs/heads/", "branch", &mut reply)?;
    add_refs(repository, "refs/tags/", "tag", &mut reply)?;
    add_refs(
        repository,
        "refs/remotes/",
        "remote-tracking branch",
        &mut reply,
    )?;
    for name in ["FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD"] {
        if repository.git_path(name).exists() {
            reply.add(name, "commit");
        }
    }
    Ok(reply)
}

/// Returns the full names of refs.
pub(super) fn references(repository: &Repository) -> Result<CompletionReply, CliError> {
    let mut reply = CompletionReply::default();
    reply.add("HEAD", "the current branch");
    repository.refs().for_each("refs/", |reference| {
        reply.add(reference.name, "");
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(reply)
}

/// Returns the branches of the remote `remote` by their names there.
pub(super) fn branches_of_remote(
    repository: &Repository,
    remote: &BStr,
) -> Result<CompletionReply, CliError> {
    let mut reply = CompletionReply::default();
    let prefix = format!("refs/remotes/{remote}/");
    add_refs(repository, &prefix, "branch of the remote", &mut reply)?;
    reply
        .candidates
        .retain(|candidate| candidate.value != "HEAD");
    Ok(reply)
}

/// Returns the configured remotes, with their URLs.
pub(super) fn remotes(repository: &Repository) -> CompletionReply {
    let config = repository.config();
    let mut reply = CompletionReply::default();
    for name in config.subsections("remote") {
        let url = config.raw(format!("remote.{name}.url"));
        reply.add(name, url.unwrap_or_default().to_str_lossy());
    }
    reply
}

/// Returns the paths of the linked worktrees, with their branches.
pub(super) fn worktrees(repository: &Repository) -> Result<CompletionReply, CliError> {
    let mut reply = CompletionReply::default();
    for worktree in repository.work_trees()?.into_iter().skip(1) {
        let about = match &worktree.head {
            HeadState::Branch(name, _) => {
                let name = name.strip_prefix(b"refs/heads/").unwrap_or(name);
                format!("branch {}", name.as_bstr())
            }
            _ => "detached HEAD".to_owned(),
        };
        reply.add(worktree.path, about);
    }
    Ok(reply)
}

/// Returns the names of configuration variables: those that are set, with their values, and those of
/// Git. Names in which a branch or a remote is to be inserted appear for each one.
pub(super) fn configuration_keys(context: &mut Context) -> CompletionReply {
    let mut values: BTreeMap<BString, String> = BTreeMap::new();
    let mut named: Vec<(&str, BString)> = Vec::new();
    if let Ok(config) = context.configuration() {
        for entry in config.iter() {
            let value = entry.value.unwrap_or_default().to_str_lossy();
            values.insert(entry.key.to_owned(), value.into_owned());
        }
        for section in ["remote", "branch"] {
            let names = config.subsections(section).into_iter();
            named.extend(names.map(|name| (section, name.to_owned())));
        }
    }
    let mut reply = CompletionReply::default();
    let mut add = |key: String| {
        // The configuration holds sections and variables in lower case.
        let lower: BString = key.to_ascii_lowercase().into();
        let value = values.remove(&lower).unwrap_or_default();
        reply.add(key, value);
    };
    for key in ManualArchive::open().settings() {
        let Some((section, rest)) = key.split_once(".<name>.") else {
            if !key.contains(['<', '*']) {
                add(key.to_owned());
            }
            continue;
        };
        for (_, name) in named.iter().filter(|(known, _)| *known == section) {
            add(format!("{section}.{name}.{rest}"));
        }
    }
    for (key, value) in values {
        reply.add(key, value);
    }
    reply
}
