//! The names that git knows: its commands, external commands, and aliases.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use pronto::config::Config;

use crate::context::Context;

/// Returns whether git has an alias or a program called `name`, where `name` is a command that only
/// pronto has. If so, a call under the name `git` means git's command.
pub(crate) fn is_meant(name: &OsStr, context: &mut Context) -> bool {
    let is_alias = |config: Config| lookup(&config, name.as_bytes()).is_some();
    !is_command(name) && (is_external(name) || context.configuration().is_ok_and(is_alias))
}

/// Returns whether git has a command called `name`.
pub(crate) fn is_command(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| GIT_COMMANDS.binary_search(&name).is_ok())
}

/// Options that pronto adds to commands of git.
const OWN_OPTIONS: &[(&str, &[&str])] = &[
    ("pull", &["--netsync"]),
    ("worktree", &["--carry", "--carry-reflink"]),
];

/// Returns whether git cannot run the call of `command` with `arguments`: git has no such command, or
/// one of the options is an option that only pronto has.
pub(crate) fn is_own_call(command: &str, arguments: &[OsString]) -> bool {
    if !is_command(OsStr::new(command)) {
        return true;
    }
    let own = OWN_OPTIONS.iter().find(|(name, _)| *name == command);
    let own = own.map_or(&[][..], |(_, options)| *options);
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    options.any(|argument| {
        let argument = argument.to_string_lossy();
        let name = argument.split('=').next().unwrap_or_default();
        own.contains(&name)
    })
}

/// Returns the names of the commands that git has.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    GIT_COMMANDS.iter().copied()
}

/// Returns whether git finds a program for the command `name`.
pub(crate) fn is_external(name: &OsStr) -> bool {
    let mut file = OsString::from("git-");
    file.push(name);
    pronto_io::child::find(&file).is_some()
}

/// Returns the last value of `alias.NAME` or `alias.NAME.command`.
pub(crate) fn lookup(config: &Config, name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = b"alias.".to_vec();
    plain.extend_from_slice(name);
    let mut spelt_out = plain.clone();
    spelt_out.extend_from_slice(b".command");
    let value = config.raw(&spelt_out).or_else(|| config.raw(&plain))?;
    Some(value.to_vec())
}

/// Commands that every supported release of git has built in.
const GIT_COMMANDS: &[&str] = &[
    "add",
    "add--interactive",
    "am",
    "annotate",
    "apply",
    "archimport",
    "archive",
    "backfill",
    "bisect",
    "bisect--helper",
    "blame",
    "branch",
    "bugreport",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout--worker",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "credential",
    "credential-cache",
    "credential-cache--daemon",
    "credential-store",
    "cvsexportcommit",
    "cvsimport",
    "cvsserver",
    "daemon",
    "describe",
    "diagnose",
    "diff",
    "diff-files",
    "diff-index",
    "diff-pairs",
    "diff-tree",
    "difftool",
    "difftool--helper",
    "env--helper",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "format-rev",
    "fsck",
    "fsck-objects",
    "fsmonitor--daemon",
    "gc",
    "get-tar-commit-id",
    "grep",
    "hash-object",
    "help",
    "history",
    "hook",
    "http-backend",
    "http-fetch",
    "http-push",
    "imap-send",
    "index-pack",
    "init",
    "init-db",
    "instaweb",
    "interpret-trailers",
    "last-modified",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-octopus",
    "merge-one-file",
    "merge-ours",
    "merge-recursive",
    "merge-recursive-ours",
    "merge-recursive-theirs",
    "merge-resolve",
    "merge-subtree",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "p4",
    "pack-objects",
    "pack-redundant",
    "pack-refs",
    "patch-id",
    "pickaxe",
    "prune",
    "prune-packed",
    "pull",
    "push",
    "quiltimport",
    "range-diff",
    "read-tree",
    "rebase",
    "receive-pack",
    "reflog",
    "refs",
    "remote",
    "remote-ext",
    "remote-fd",
    "remote-ftp",
    "remote-ftps",
    "remote-http",
    "remote-https",
    "repack",
    "replace",
    "replay",
    "repo",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-email",
    "send-pack",
    "sh-i18n--envsubst",
    "shell",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stage",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "submodule--helper",
    "subtree",
    "svn",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "upload-archive",
    "upload-archive--writer",
    "upload-pack",
    "url-parse",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "web--browse",
    "whatchanged",
    "worktree",
    "write-tree",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_git_are_sorted() {
        assert!(GIT_COMMANDS.is_sorted());
    }
}
