//! `remote`: manage the remotes of a repository.

mod add;
mod change;
mod head;
mod list;
mod show;
mod update;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use clap::ArgAction;
use pronto::Repository;
use pronto::configured_remotes::{self, StaleDefault};
use pronto::remote::Remote;

use crate::{CliError, Context, ExitCode};

/// The exit code if a named remote does not exist.
const MISSING: ExitCode = ExitCode::new(2);
/// The exit code if a remote with that name exists already.
const EXISTS: ExitCode = ExitCode::new(3);

/// Arguments of `remote`.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Show URLs, and more of a fetch; before the command
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Fetch from the new remote (add)
    #[arg(short, long)]
    fetch: bool,
    /// Always fetch all tags, or none (add)
    #[arg(long)]
    tags: Option<bool>,
    /// Track only this branch; repeatable (add)
    #[arg(short, long, value_name = "BRANCH")]
    track: Vec<OsString>,
    /// Let the HEAD of the remote point to this branch (add)
    #[arg(short, long, value_name = "BRANCH")]
    master: Option<OsString>,
    /// Mirror all refs, by fetches (`fetch`) or pushes (`push`) (add)
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "both")]
    mirror: Option<OsString>,
    /// Show progress even if standard error is not a terminal (rename)
    #[arg(long)]
    progress: Option<bool>,
    /// Use the branch that the remote has checked out (set-head)
    #[arg(short, long)]
    auto: bool,
    /// Delete the HEAD of the remote (set-head), or URLs (set-url)
    #[arg(short, long)]
    delete: bool,
    /// Do not contact the remote (show), or only show what would be removed (prune)
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Remove tracking refs of branches that are gone (update)
    #[arg(short, long)]
    prune: Option<bool>,
    /// Keep the present branches (set-branches) or URLs (set-url)
    #[arg(long)]
    add: bool,
    /// Use the URLs of pushes (get-url, set-url)
    #[arg(long)]
    push: bool,
    /// Print all URLs (get-url)
    #[arg(long)]
    all: bool,
    /// `add`, `get-url`, `prune`, `remove`, `rename`, `set-branches`, `set-head`, `set-url`, `show` or
    /// `update`, and its operands
    #[arg(value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// The permitted options of each subcommand, by long name and by letter.
const OPTIONS: &[(&str, &[&str])] = &[
    ("", &[]),
    (
        "add",
        &["f", "fetch", "tags", "t", "track", "m", "master", "mirror"],
    ),
    ("get-url", &["push", "all"]),
    ("prune", &["n", "dry-run"]),
    ("remove", &[]),
    ("rename", &["progress"]),
    ("rm", &[]),
    ("set-branches", &["add"]),
    ("set-head", &["a", "auto", "d", "delete"]),
    ("set-url", &["push", "add", "delete"]),
    ("show", &["n"]),
    ("update", &["p", "prune"]),
];

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let (command, words) = match args.words.split_first() {
        Some((command, words)) => (command.to_str().unwrap_or("?"), words),
        None => ("", &[][..]),
    };
    check_options(command, args, context)?;
    let words: Vec<BString> = words.iter().map(|word| word.as_bytes().into()).collect();
    match (command, words.as_slice()) {
        ("" | "show", []) => list::run(args, context),
        ("add", [name, url]) => add::run(args, name, url, context),
        ("get-url", [name]) => change::get_url(args, name.as_bstr(), context),
        ("prune", [_, ..]) => update::prune(args, &words, context),
        ("remove" | "rm", [name]) => change::remove(name.as_bstr(), context),
        ("rename", [old, new]) => change::rename(args, old.as_bstr(), new.as_bstr(), context),
        ("set-branches", [name, branches @ ..]) => {
            change::set_branches(args, name.as_bstr(), branches, context)
        }
        ("set-head", [name]) => head::run(args, name.as_bstr(), None, context),
        ("set-head", [name, branch]) => {
            head::run(args, name.as_bstr(), Some(branch.as_bstr()), context)
        }
        ("set-url", [name, url]) => change::set_url(args, name.as_bstr(), url, None, context),
        ("set-url", [name, url, old]) => {
            change::set_url(args, name.as_bstr(), url, Some(old), context)
        }
        ("show", [_, ..]) => show::run(args, &words, context),
        ("update", groups) => update::run(args, groups, context),
        _ => Err(unsupported()),
    }
}

/// The error for a call that Git explains in its own words.
fn unsupported() -> CliError {
    CliError::unsupported("this combination of arguments of 'remote'")
}

/// Checks that `-v` precedes the subcommand, and that the subcommand has the other options.
fn check_options(command: &str, args: &Args, context: &Context) -> Result<(), CliError> {
    let given: Vec<&[u8]> = context.arguments.iter().map(|it| it.as_bytes()).collect();
    let before = given
        .iter()
        .take_while(|argument| argument.starts_with(b"-"));
    let is_verbose = |argument: &&&[u8]| matches!(**argument, b"-v" | b"--verbose");
    let leading = before.clone().filter(is_verbose).count();
    let known = OPTIONS.iter().find(|(name, _)| *name == command);
    let Some((_, known)) = known else {
        return Err(unsupported());
    };
    if usize::from(args.verbose) != leading || before.count() != leading {
        return Err(unsupported());
    }
    // The spelling matters, too: `show` has `-n`, but not `--dry-run`.
    let is_known = |argument: &&[u8]| match argument {
        [b'-', b'-', _, ..] => true,
        [b'-', letter, ..] => known.contains(&char::from(*letter).to_string().as_str()),
        _ => true,
    };
    let is_long = |argument: &&[u8]| argument.starts_with(b"--d");
    let long_dry_run = command == "show" && given.iter().any(is_long);
    let has_all = args
        .given()
        .all(|name| known.contains(&name) || (name == "dry-run" && known.contains(&"n")));
    match has_all && !long_dry_run && given[leading..].iter().all(is_known) {
        true => Ok(()),
        false => Err(unsupported()),
    }
}

impl Args {
    /// Returns the names of the given options of subcommands.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.fetch, "fetch"),
            (self.tags.is_some(), "tags"),
            (!self.track.is_empty(), "track"),
            (self.master.is_some(), "master"),
            (self.mirror.is_some(), "mirror"),
            (self.progress.is_some(), "progress"),
            (self.auto, "auto"),
            (self.delete, "delete"),
            (self.dry_run, "dry-run"),
            (self.prune.is_some(), "prune"),
            (self.add, "add"),
            (self.push, "push"),
            (self.all, "all"),
        ]
        .into_iter()
        .filter_map(|(given, name)| given.then_some(name))
    }
}

/// Returns the configured remote `name`. `separator` precedes the name in the message about a
/// missing remote.
fn configured(repository: &Repository, name: &BStr, separator: &str) -> Result<Remote, CliError> {
    match configured_remotes::find(repository, name).map_err(CliError::of)? {
        Some(remote) => Ok(remote),
        None => {
            let message = format!("No such remote{separator} '{name}'");
            Err(CliError::error(message).with_code(MISSING))
        }
    }
}

/// Warns that `remote.pushDefault` names a remote that was renamed or removed.
fn warn_of_default(stale: Option<&StaleDefault>, context: &mut Context) {
    if let Some(stale) = stale {
        let (scope, source) = (stale.scope.name(), stale.source);
        let (line, name) = (stale.line, &stale.name);
        context.warn(&format!(
            "The {scope} configuration remote.pushDefault in:\n\t{source}:{line}\n\
             now names the non-existent remote '{name}'"
        ));
    }
}
