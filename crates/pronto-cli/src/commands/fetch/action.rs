//! The action in reflog messages of `fetch`.

use std::os::unix::ffi::OsStrExt;

use pronto::remote::Remote;

use super::Args;
use crate::Context;

/// Returns the command line as the user typed it, without passwords.
pub(super) fn of(context: &Context) -> Vec<u8> {
    let mut action = b"fetch".to_vec();
    for argument in &context.arguments {
        action.push(b' ');
        let shown = pronto::remote::connection::shown(argument.as_bytes().into());
        action.extend_from_slice(&shown);
    }
    action
}

/// Returns the action for one of several remotes. git runs a process for each of them.
pub(super) fn of_many(args: &Args, remote: &Remote) -> Vec<u8> {
    let mut action = b"fetch --append --no-auto-gc --no-write-commit-graph".to_vec();
    let mut add = |word: &str| {
        action.push(b' ');
        action.extend_from_slice(word.as_bytes());
    };
    let given = [
        ("--dry-run", args.dry_run),
        ("--prune", args.prune == Some(true)),
        ("--no-prune", args.prune == Some(false)),
        ("--prune-tags", args.prune_tags == Some(true)),
        ("--no-prune-tags", args.prune_tags == Some(false)),
        ("--update-head-ok", args.update_head_ok),
        ("--force", args.force),
        ("--keep", args.keep),
        ("--tags", args.tags == Some(true)),
        ("--no-tags", args.tags == Some(false) || args.no_tags_short),
        ("-v", args.verbose > 1),
        ("-v", args.verbose > 0),
        ("-q", args.quiet),
    ];
    given
        .iter()
        .filter(|(_, given)| *given)
        .for_each(|(word, _)| add(word));
    action.push(b' ');
    action.extend_from_slice(&remote.name);
    action
}
