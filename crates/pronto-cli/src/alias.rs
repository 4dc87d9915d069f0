//! Expands aliases: `alias.NAME` in the configuration, for names that are not commands of git.
//!
//! This module expands simple aliases, so that an alias for a native command runs natively. Shell
//! aliases and invalid aliases are left to git, which reports the error.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use pronto::config::Config;
use pronto::quote;

use crate::commands;
use crate::context::Context;
use crate::error::CliError;
use crate::fallback;

/// The largest number of aliases in a chain. A longer chain is left to git.
const DEPTH_LIMIT: usize = 16;

/// Expands `name` and `arguments` if `name` is an alias for a native command.
///
/// # Errors
/// Fails with a fatal error if an alias leads back to itself.
pub(crate) fn expand(
    name: &OsStr,
    arguments: &[OsString],
    context: &mut Context,
) -> Result<Option<Vec<OsString>>, CliError> {
    if !may_be_alias(name) {
        return Ok(None);
    }
    if context.called_as_git && context.is_traced() && fallback::is_possible() {
        // git runs an expanded alias as a process of its own, and a trace shows that. git runs
        // traced aliases.
        return Ok(None);
    }
    // git reports a configuration that cannot be read.
    let Ok(config) = context.configuration() else {
        return Ok(None);
    };
    let mut words = vec![name.to_owned()];
    let mut seen: Vec<OsString> = Vec::new();
    for _ in 0..DEPTH_LIMIT {
        let alias = words[0].clone();
        if alias.to_str().and_then(commands::find).is_some() {
            words.extend_from_slice(arguments);
            return Ok((!seen.is_empty()).then_some(words));
        }
        let value = may_be_alias(&alias)
            .then(|| lookup(&config, alias.as_bytes()))
            .flatten();
        let Some(mut expansion) = value.and_then(|value| split(&value)) else {
            return Ok(None);
        };
        if expansion[0].as_bytes().starts_with(b"!") || !begins_with_command(&expansion) {
            return Ok(None);
        }
        seen.push(alias);
        if seen.contains(&expansion[0]) {
            return Err(circle(&seen, &expansion[0]));
        }
        expansion.extend(words.drain(1..));
        words = expansion;
    }
    Ok(None)
}

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

/// Returns whether `name` may be an alias: commands of git, and programs that git finds by name,
/// may not.
fn may_be_alias(name: &OsStr) -> bool {
    !is_command(name) && !name.is_empty() && !is_external(name)
}

fn is_external(name: &OsStr) -> bool {
    let mut file = OsString::from("git-");
    file.push(name);
    pronto_io::child::find(&file).is_some()
}

/// Returns whether `words` begin with a command. Options before the command may change the
/// environment, which git does not allow in aliases.
fn begins_with_command(words: &[OsString]) -> bool {
    !words[0].is_empty() && words[0].as_bytes()[0] != b'-'
}

/// Returns the last value of `alias.NAME` or `alias.NAME.command`.
fn lookup(config: &Config, name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = b"alias.".to_vec();
    plain.extend_from_slice(name);
    let mut spelt_out = plain.clone();
    spelt_out.extend_from_slice(b".command");
    let value = config.raw(&spelt_out).or_else(|| config.raw(&plain))?;
    Some(value.to_vec())
}

/// Splits an alias into words, with quotes and backslashes. Returns `None` for an invalid line,
/// which git reports.
fn split(line: &[u8]) -> Option<Vec<OsString>> {
    let words = quote::split_words(line)?.into_iter();
    Some(words.map(|word| OsString::from_vec(word.into())).collect())
}

fn circle(seen: &[OsString], again: &OsStr) -> CliError {
    if let [only] = seen {
        return CliError::fatal(format!("recursive alias: {}", only.to_string_lossy()));
    }
    let first = seen[0].to_string_lossy();
    let mut message = format!("alias loop detected: expansion of '{first}' does not terminate:");
    for (at, alias) in seen.iter().enumerate() {
        message.push_str("\n  ");
        message.push_str(&alias.to_string_lossy());
        if alias == again {
            message.push_str(" <==");
        } else if at == seen.len() - 1 {
            message.push_str(" ==>");
        }
    }
    CliError::fatal(message)
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
    fn a_line_is_split_as_git_splits_it() {
        let words = |line: &str| split(line.as_bytes());
        assert_eq!(
            words("a  b\tc "),
            Some(vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!(
            words(r#"a 'b "c' "d \" e" f\ g"#),
            Some(vec![
                "a".into(),
                "b \"c".into(),
                "d \" e".into(),
                "f g".into()
            ])
        );
        assert_eq!(words("a 'b"), None);
        assert_eq!(words("a \\"), None);
    }

    #[test]
    fn commands_of_git_are_sorted() {
        assert!(GIT_COMMANDS.is_sorted());
    }
}
