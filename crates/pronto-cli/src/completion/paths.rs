//! Paths of the worktree and of the index as candidates.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};
use pronto::status::{ChangeKind, Options, Report};
use pronto::{Repository, Watch};

use super::CompletionReply;
use crate::context::Context;
use crate::error::CliError;
use crate::paths::relative;

/// The paths that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathChoice {
    /// Changed and untracked files.
    ToAdd,
    /// Untracked files.
    Untracked,
    /// Files that differ from the index; all tracked files if none of those is at the cursor.
    ToRestore,
    /// Files whose version in the index differs from `HEAD`; all tracked files if none of those is at
    /// the cursor.
    Staged,
    /// All tracked files.
    Tracked,
}

/// Returns the paths of `choice` that are in the directory of `current`, relative to the current
/// directory. Directories below it end with a slash, unless they hold a single one of the paths.
pub(super) fn of_choice(
    choice: PathChoice,
    current: &BStr,
    context: &mut Context,
) -> Result<CompletionReply, CliError> {
    let repository = context.repository()?;
    let changed = match choice {
        PathChoice::Tracked => Vec::new(),
        _ => changed(&repository, choice, context)?,
    };
    let mut reply = collected(&repository, changed, current);
    let may_be_any = matches!(
        choice,
        PathChoice::Tracked | PathChoice::ToRestore | PathChoice::Staged
    );
    let mut candidates = reply.candidates.iter();
    if may_be_any && !candidates.any(|candidate| candidate.value.starts_with(current)) {
        let index = repository.index()?;
        let paths = index.iter().map(|entry| (entry.path.to_owned(), ""));
        reply = collected(&repository, paths, current);
    }
    reply.paths = true;
    Ok(reply)
}

/// Returns the changed paths of `choice` from the top of the worktree, with descriptions.
fn changed(
    repository: &Repository,
    choice: PathChoice,
    context: &Context,
) -> Result<Vec<(BString, &'static str)>, CliError> {
    let mut options = Options::default();
    options.renames = None;
    options.state = false;
    options.detached_from = false;
    // The index is not written while the user types.
    options.write_back = false;
    let watch = Watch::from(&context.interrupt);
    let report = pronto::status::status(repository, &options, &watch)?;
    Ok(chosen(report, choice))
}

fn chosen(report: Report, choice: PathChoice) -> Vec<(BString, &'static str)> {
    let mut found = Vec::new();
    for entry in report.entries {
        let change = match choice {
            PathChoice::Untracked | PathChoice::Tracked => None,
            PathChoice::Staged => entry.index,
            PathChoice::ToAdd | PathChoice::ToRestore if entry.stages.is_some() => {
                Some(ChangeKind::Unmerged)
            }
            PathChoice::ToAdd | PathChoice::ToRestore => entry.worktree,
        };
        if let Some(change) = change {
            found.push((entry.path, description(change)));
        }
    }
    if matches!(choice, PathChoice::ToAdd | PathChoice::Untracked) {
        let untracked = report.untracked.into_iter();
        found.extend(untracked.map(|path| (path, "untracked")));
    }
    found
}

fn description(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::Added => "new",
        ChangeKind::Copied => "copied",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Renamed => "renamed",
        ChangeKind::TypeChanged => "type changed",
        ChangeKind::Unmerged => "in conflict",
        _ => "modified",
    }
}

/// Returns the candidates for `paths`, which are relative to the top of the worktree.
fn collected(
    repository: &Repository,
    paths: impl IntoIterator<Item = (BString, &'static str)>,
    current: &BStr,
) -> CompletionReply {
    let prefix = repository.prefix_or_empty();
    let seen = paths
        .into_iter()
        .map(|(path, about)| (relative(path.as_bstr(), prefix.as_bstr()), about));
    by_directory(seen, current)
}

/// Cuts the paths below the directory of `current` behind their next slash.
fn by_directory(
    paths: impl IntoIterator<Item = (BString, &'static str)>,
    current: &BStr,
) -> CompletionReply {
    let start = current.rfind_byte(b'/').map_or(0, |slash| slash + 1);
    let directory = &current[..start];
    // `./` at the beginning is kept as it is typed.
    let (typed, directory) = match directory.strip_prefix(b"./") {
        Some(rest) => (&b"./"[..], rest),
        None => (&b""[..], directory.as_bytes()),
    };
    let mut found: BTreeMap<BString, (BString, &'static str, usize)> = BTreeMap::new();
    for (path, about) in paths {
        let Some(rest) = path.strip_prefix(directory) else {
            continue;
        };
        let end = rest.find_byte(b'/').map_or(rest.len(), |slash| slash + 1);
        let key = BString::from(&path[..directory.len() + end]);
        let count = &mut found.entry(key).or_insert((path, about, 0)).2;
        *count += 1;
    }
    let mut reply = CompletionReply::default();
    for (key, (path, about, count)) in found {
        let (value, about) = match count {
            1 => (path, about),
            _ => (key, "directory"),
        };
        reply.add([typed, value.as_bytes()].concat(), about);
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_behind_the_directory_at_the_cursor() {
        let paths = ["a", "src/x/one", "src/x/two", "src/y", "test/only/one"];
        let values = |current: &str| {
            let paths = paths.map(|path| (BString::from(path), "modified"));
            let reply = by_directory(paths, current.into());
            let values = reply.candidates.into_iter();
            values.map(|one| one.value.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(values(""), ["a", "src/", "test/only/one"]);
        assert_eq!(values("sr"), ["a", "src/", "test/only/one"]);
        assert_eq!(values("src/"), ["src/x/", "src/y"]);
        assert_eq!(values("./src/"), ["./src/x/", "./src/y"]);
        assert_eq!(values("../"), [] as [&str; 0]);
    }
}
