//! The table of native commands. A new command is a file under `commands/` and a row here.

mod add;
mod cat_file;
mod check_attr;
mod check_ignore;
mod checkout;
mod checkout_index;
mod clean;
mod clone;
mod commit;
mod commit_graph;
mod config;
mod diff_files;
mod diff_index;
mod diff_tree;
mod fetch;
mod for_each_repo;
mod fsmonitor_daemon;
mod gc;
mod groups;
mod hash_object;
mod help;
mod index_pack;
mod init;
mod ls_files;
mod ls_tree;
mod maintenance;
mod merge_file;
mod multi_pack_index;
mod netsync;
mod pack_objects;
mod pack_refs;
mod pathspecs;
mod prune;
mod prune_packed;
mod pull;
mod putting_back;
mod read_tree;
mod reflog;
mod repack;
mod reset;
mod restore;
mod rev_parse;
mod serve;
mod show_index;
mod show_ref;
mod sparse_checkout;
mod status;
mod switch;
mod switching;
mod symbolic_ref;
mod sync;
mod unpack_objects;
mod update_index;
mod upload_pack;
mod verify_pack;
mod version;
mod worktree;
mod write_tree;

use std::ffi::OsString;

use clap::Command as Definition;

use crate::arguments::{complete, document, normalise};
use crate::context::Context;
use crate::error::{CliError, ExitCode};

/// What a command needs around it before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// It changes something, or runs long: SIGINT and SIGTERM must clean up. Costs a thread.
    pub signals: bool,
}

/// How the arguments of a command are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As options by the definition, in Git's habits (see [`crate::arguments`]).
    Options,
    /// By the command itself: each one matters by its place. The definition needs
    /// `#[arg(trailing_var_arg = true, allow_hyphen_values = true)]` on its one field and serves
    /// for the documentation.
    Raw,
}

/// Where `help` lists a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Beginning a working area.
    Start,
    /// Working on the current change.
    Change,
    /// Looking at history and state.
    Examine,
    /// Growing and marking history.
    Grow,
    /// Working with other repositories.
    Collaborate,
    /// For scripts.
    Plumbing,
    /// About pronto itself.
    About,
}

impl Group {
    /// The heading above the commands of this group.
    pub fn title(self) -> &'static str {
        match self {
            Group::Start => "start a working area",
            Group::Change => "work on the current change",
            Group::Examine => "examine the history and state",
            Group::Grow => "grow, mark and tweak the common history",
            Group::Collaborate => "collaborate",
            Group::Plumbing => "look inside, from scripts",
            Group::About => "learn about pronto",
        }
    }
}

/// A native command.
#[derive(Debug)]
pub struct Command {
    /// The name as typed.
    pub name: &'static str,
    /// One line about it: lower case, no full stop.
    pub summary: &'static str,
    /// Where `help` lists it.
    pub group: Group,
    /// What it needs around it.
    pub needs: Needs,
    /// How its arguments are read.
    pub style: Style,
    augment: fn(Definition) -> Definition,
    run: fn(Definition, Vec<OsString>, &mut Context) -> Result<ExitCode, CliError>,
}

/// A row of the table: the module with `Args` and `run`, and what is said about it.
macro_rules! command {
    ($module:ident, $name:literal, $summary:literal, $group:ident, $style:ident, signals: $signals:literal) => {
        Command {
            name: $name,
            summary: $summary,
            group: Group::$group,
            needs: Needs { signals: $signals },
            style: Style::$style,
            augment: <$module::Args as clap::Args>::augment_args,
            run: |definition, tokens, context| {
                let args = parse::<$module::Args>(definition, tokens)?;
                context.prepare($name, $signals)?;
                $module::run(&args, context)
            },
        }
    };
}

/// All native commands, sorted by name.
pub static COMMANDS: &[Command] = &[
    command!(add, "add", "stage what is in files", Change, Options, signals: true),
    command!(cat_file, "cat-file", "show the content, type or size of objects", Plumbing, Options, signals: false),
    command!(check_attr, "check-attr", "show what attributes files say of paths", Plumbing, Options, signals: false),
    command!(check_ignore, "check-ignore", "tell which paths are ignored, and why", Plumbing, Options, signals: false),
    command!(checkout, "checkout", "switch branches or put files back", Change, Options, signals: true),
    command!(checkout_index, "checkout-index", "copy files from the index", Plumbing, Options, signals: true),
    command!(clean, "clean", "remove files that are not tracked", Start, Options, signals: true),
    command!(clone, "clone", "copy a repository into a new directory", Start, Options, signals: true),
    command!(commit, "commit", "record what is staged", Grow, Options, signals: true),
    command!(commit_graph, "commit-graph", "write and verify the commit-graph", Plumbing, Options, signals: true),
    command!(config, "config", "read and change configuration", Start, Raw, signals: true),
    command!(diff_files, "diff-files", "compare files with the index", Plumbing, Options, signals: false),
    command!(diff_index, "diff-index", "compare a tree with files or the index", Plumbing, Options, signals: false),
    command!(diff_tree, "diff-tree", "compare trees, and commits with their parents", Plumbing, Options, signals: false),
    command!(fetch, "fetch", "take what is new from other repositories", Collaborate, Options, signals: true),
    command!(for_each_repo, "for-each-repo", "run a command in each of the repositories that are configured", Plumbing, Raw, signals: false),
    command!(fsmonitor_daemon, "fsmonitor--daemon", "watch the working tree for changes", Plumbing, Options, signals: false),
    command!(gc, "gc", "repack, and remove what nothing needs any more", Grow, Options, signals: true),
    command!(hash_object, "hash-object", "tell the id of an object, and store it", Plumbing, Options, signals: true),
    command!(help, "help", "show the commands, or the manual of one", About, Options, signals: false),
    command!(index_pack, "index-pack", "make the index of a pack", Plumbing, Options, signals: true),
    command!(init, "init", "make a repository, or bring one up to date", Start, Options, signals: true),
    command!(ls_files, "ls-files", "show information about files in the index and the working tree", Plumbing, Options, signals: false),
    command!(ls_tree, "ls-tree", "list what is in a tree", Plumbing, Options, signals: false),
    command!(maintenance, "maintenance", "keep a repository fast, now and by a schedule", Grow, Options, signals: true),
    command!(merge_file, "merge-file", "bring together what two have made of one file", Plumbing, Options, signals: false),
    command!(multi_pack_index, "multi-pack-index", "write and verify one index for many packs", Plumbing, Options, signals: true),
    command!(netsync, "netsync", "say which peers are trusted, and with what", Collaborate, Options, signals: true),
    command!(pack_objects, "pack-objects", "make packs of objects", Plumbing, Options, signals: true),
    command!(pack_refs, "pack-refs", "put references into one file", Plumbing, Options, signals: true),
    command!(prune, "prune", "delete objects that nothing leads to", Plumbing, Options, signals: true),
    command!(prune_packed, "prune-packed", "delete loose objects that are in a pack, too", Plumbing, Options, signals: true),
    command!(pull, "pull", "take what a peer has, and merge it", Collaborate, Options, signals: true),
    command!(read_tree, "read-tree", "read trees into the index", Plumbing, Options, signals: true),
    command!(reflog, "reflog", "look after the logs of references", Examine, Options, signals: true),
    command!(repack, "repack", "put objects into few packs", Plumbing, Options, signals: true),
    command!(reset, "reset", "take the branch, the index and files to another commit", Change, Options, signals: true),
    command!(restore, "restore", "put files back as the index or a commit has them", Change, Options, signals: true),
    command!(rev_parse, "rev-parse", "turn names into ids, and tell where things are", Plumbing, Raw, signals: false),
    command!(serve, "serve", "let peers take part in a repository", Collaborate, Options, signals: true),
    command!(show_index, "show-index", "show the index of a pack", Plumbing, Options, signals: false),
    command!(show_ref, "show-ref", "list references and what they hold", Plumbing, Options, signals: false),
    command!(sparse_checkout, "sparse-checkout", "have a part of the tracked files in the working tree", Start, Options, signals: true),
    command!(status, "status", "show the working tree status", Change, Options, signals: false),
    command!(switch, "switch", "switch branches", Change, Options, signals: true),
    command!(symbolic_ref, "symbolic-ref", "read and change references that stand for others", Plumbing, Options, signals: true),
    command!(sync, "sync", "become one history with a peer", Collaborate, Options, signals: true),
    command!(unpack_objects, "unpack-objects", "make loose objects of a pack", Plumbing, Options, signals: true),
    command!(update_index, "update-index", "change single entries of the index", Plumbing, Raw, signals: true),
    command!(upload_pack, "upload-pack", "send objects to those who fetch", Plumbing, Options, signals: false),
    command!(verify_pack, "verify-pack", "check packs and their indexes", Plumbing, Options, signals: false),
    command!(version, "version", "show the version of pronto", About, Options, signals: false),
    command!(worktree, "worktree", "manage the work trees of a repository", Start, Options, signals: true),
    command!(write_tree, "write-tree", "make trees of the index", Plumbing, Options, signals: true),
];

/// The whole command line as one definition, from which manual, completions and reference are
/// made. Costly: never built to run a command.
pub fn definition() -> Definition {
    let all = Definition::new("pronto")
        .version(env!("CARGO_PKG_VERSION"))
        .about("a version control engine that is Git's equal in all but time")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .subcommand_required(true);
    let documented = |command: &Command| {
        let own = document((command.augment)(Definition::new(command.name)));
        groups::apply(own.about(command.summary))
    };
    crate::globals::define(all).subcommands(COMMANDS.iter().map(documented))
}

/// The native command called `name`.
pub fn find(name: &str) -> Option<&'static Command> {
    let at = COMMANDS
        .binary_search_by_key(&name, |command| command.name)
        .ok()?;
    Some(&COMMANDS[at])
}

impl Command {
    /// The definition of its arguments, from which help, manual and completions are made.
    pub fn definition(&self) -> Definition {
        let name = format!("pronto {}", self.name);
        complete((self.augment)(Definition::new(self.name)))
            .about(self.summary)
            .bin_name(name)
    }

    /// Runs it with the arguments that follow its name.
    pub(crate) fn run(
        &self,
        arguments: &[OsString],
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let definition = self.definition();
        context.arguments = arguments.to_vec();
        let tokens = match self.style {
            Style::Options => {
                let normalised = normalise(&definition, arguments)?;
                context.separator = normalised.separator;
                normalised.tokens
            }
            Style::Raw => std::iter::once("--".into())
                .chain(arguments.iter().cloned())
                .collect(),
        };
        (self.run)(definition, tokens, context)
    }
}

fn parse<T: clap::FromArgMatches>(
    definition: Definition,
    tokens: Vec<OsString>,
) -> Result<T, CliError> {
    let wrong = |error: clap::Error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        CliError::misuse(first.strip_prefix("error: ").unwrap_or(first))
    };
    let mut matches = definition.try_get_matches_from(tokens).map_err(wrong)?;
    T::from_arg_matches_mut(&mut matches).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_definitions_are_sound() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            command.definition().debug_assert();
        }
    }
}
