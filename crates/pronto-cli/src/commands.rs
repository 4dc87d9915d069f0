//! The table of native commands. A new command is a file under `commands/` and a row here.

mod add;
mod archive;
mod bugreport;
mod bundle;
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
mod fetch_pack;
mod for_each_repo;
mod fsmonitor_daemon;
mod gc;
mod groups;
mod hash_object;
mod help;
mod index_pack;
mod init;
mod ls_files;
mod ls_remote;
mod ls_tree;
mod maintenance;
mod merge_file;
mod multi_pack_index;
pub(crate) mod nested;
mod netsync;
mod pack_objects;
mod pack_refs;
mod partial;
mod pathspecs;
mod patience;
mod peers;
mod prune;
mod prune_packed;
mod pull;
mod push;
mod read_tree;
mod receive_pack;
mod reflog;
mod refs;
mod remote;
mod repack;
mod reset;
mod restore;
mod restoring;
mod rev_list;
mod rev_parse;
mod send_pack;
mod serve;
pub(crate) mod shared;
mod shell;
mod show_index;
mod show_ref;
mod sparse_checkout;
mod status;
mod store;
mod switch;
mod switching;
mod symbolic_ref;
mod sync;
mod unpack_objects;
mod update_index;
mod upload_archive;
mod upload_pack;
mod verify_pack;
pub(crate) mod version;
mod worktree;
mod write_tree;
mod wrong_arguments;

use std::ffi::OsString;

use clap::Command as Definition;

use crate::arguments::{
    Normalised, asks_for_usage, complete, document, normalise, normalise_leading,
};
use crate::context::{Context, RunCommand};
use crate::error::{CliError, ExitCode};

pub use partial::native_part;
use wrong_arguments::wrong;

/// Preparations that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Whether the command changes files or runs long, so that SIGINT and SIGTERM must clean up.
    pub signals: bool,
}

/// The style in which the arguments of a command are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentStyle {
    /// Options by the definition, in Git's style (see [`crate::arguments`]).
    Options,
    /// Options that end at the first plain argument.
    Leading,
    /// Arguments that the command parses itself, because the position of each argument matters. The
    /// definition needs `#[arg(trailing_var_arg = true, allow_hyphen_values = true)]` on its only
    /// field and serves only documentation.
    Raw,
    /// Options of the subcommand that the first plain arguments name (see `nested`).
    Nested,
}

/// The section of `help` that lists a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelpSection {
    /// Creating a working area.
    Start,
    /// Working on the current change.
    Change,
    /// Inspecting history and state.
    Examine,
    /// Recording and maintaining history.
    Grow,
    /// Working with other repositories.
    Collaborate,
    /// Plumbing commands for scripts.
    Plumbing,
    /// About pronto itself.
    About,
}

impl HelpSection {
    /// Returns the heading above the commands of this group.
    pub fn title(self) -> &'static str {
        match self {
            HelpSection::Start => "start a working area",
            HelpSection::Change => "work on the current change",
            HelpSection::Examine => "inspect history and state",
            HelpSection::Grow => "record and maintain history",
            HelpSection::Collaborate => "collaborate",
            HelpSection::Plumbing => "commands for scripts",
            HelpSection::About => "learn about pronto",
        }
    }
}

/// A native command, as a row of the table.
#[derive(Debug)]
pub struct NativeCommand {
    /// The name that the user types.
    pub name: &'static str,
    /// A summary in one line: lower case, no full stop.
    pub summary: &'static str,
    /// The section of `help` that lists the command.
    pub group: HelpSection,
    /// The preparations that the command needs.
    pub needs: Needs,
    /// The style in which the arguments of the command are parsed.
    pub style: ArgumentStyle,
    augment: fn(Definition) -> Definition,
    run: RunCommand,
}

/// Makes a row of the table from the module with `Args` and `run`, and the description.
macro_rules! command {
    ($module:ident, $name:literal, $summary:literal, $group:ident, $style:ident, signals: $signals:literal) => {
        NativeCommand {
            name: $name,
            summary: $summary,
            group: HelpSection::$group,
            needs: Needs { signals: $signals },
            style: ArgumentStyle::$style,
            augment: <$module::Args as clap::Args>::augment_args,
            run: |definition, tokens, context| {
                let args = parse::<$module::Args>(definition, tokens)?;
                context.prepare($name, $signals)?;
                $module::run(&args, context)
            },
        }
    };
}

/// Makes a row for a command of `pronto-server` in the table of all commands. The arguments are
/// parsed, but the context is not prepared, because the command continues in another program.
macro_rules! elsewhere {
    ($module:ident, $name:literal, $summary:literal, $group:ident, $style:ident) => {
        NativeCommand {
            name: $name,
            summary: $summary,
            group: HelpSection::$group,
            needs: Needs { signals: true },
            style: ArgumentStyle::$style,
            augment: <$module::Args as clap::Args>::augment_args,
            run: |definition, tokens, context| {
                let args = parse::<$module::Args>(definition, tokens)?;
                $module::run(&args, context)
            },
        }
    };
}

/// Makes a row of the table of `pronto-server`.
#[cfg(feature = "serve")]
macro_rules! served {
    ($module:ident, $name:literal) => {
        ($name, |definition, tokens, context| {
            let args = parse::<$module::Args>(definition, tokens)?;
            context.prepare($name, true)?;
            $module::run_here(&args, context)
        })
    };
}

/// The commands that the program `pronto-server` runs. In `pronto`, these commands continue in
/// `pronto-server`.
#[cfg(feature = "serve")]
pub(crate) static SERVED: &[crate::context::ServerCommand] = &[
    served!(serve, "serve"),
    served!(shell, "shell"),
    served!(store, "store"),
];

/// All native commands, sorted by name.
pub static COMMANDS: &[NativeCommand] = &[
    command!(add, "add", "stage the content of files", Change, Options, signals: true),
    command!(archive, "archive", "write the files of a tree as tar or zip", Examine, Raw, signals: true),
    command!(bugreport, "bugreport", "collect what a bug report needs, without secrets", About, Options, signals: true),
    command!(bundle, "bundle", "exchange refs and objects by a file", Collaborate, Raw, signals: true),
    command!(cat_file, "cat-file", "show the content, type or size of objects", Plumbing, Options, signals: false),
    command!(check_attr, "check-attr", "show the attributes of paths", Plumbing, Options, signals: false),
    command!(check_ignore, "check-ignore", "show which paths are ignored, and why", Plumbing, Options, signals: false),
    command!(checkout, "checkout", "switch branches or restore files", Change, Options, signals: true),
    command!(checkout_index, "checkout-index", "copy files from the index", Plumbing, Options, signals: true),
    command!(clean, "clean", "remove untracked files", Start, Options, signals: true),
    command!(clone, "clone", "copy a repository into a new directory", Start, Options, signals: true),
    command!(commit, "commit", "record staged changes", Grow, Options, signals: true),
    command!(commit_graph, "commit-graph", "write and verify the commit-graph", Plumbing, Options, signals: true),
    command!(config, "config", "read and change configuration", Start, Raw, signals: true),
    command!(diff_files, "diff-files", "compare files with the index", Plumbing, Options, signals: false),
    command!(diff_index, "diff-index", "compare a tree with files or the index", Plumbing, Options, signals: false),
    command!(diff_tree, "diff-tree", "compare trees, and commits with their parents", Plumbing, Options, signals: false),
    command!(fetch, "fetch", "get new objects and refs from other repositories", Collaborate, Options, signals: true),
    command!(fetch_pack, "fetch-pack", "get objects from one repository", Plumbing, Options, signals: true),
    command!(for_each_repo, "for-each-repo", "run a command in each configured repository", Plumbing, Raw, signals: false),
    command!(fsmonitor_daemon, "fsmonitor--daemon", "watch the worktree for changes", Plumbing, Options, signals: false),
    command!(gc, "gc", "repack objects and remove unneeded ones", Grow, Options, signals: true),
    command!(hash_object, "hash-object", "compute the id of an object, and store it", Plumbing, Options, signals: true),
    command!(help, "help", "show the commands, or the manual of one", About, Options, signals: false),
    command!(index_pack, "index-pack", "index a pack", Plumbing, Options, signals: true),
    command!(init, "init", "create a repository, or update one", Start, Options, signals: true),
    command!(ls_files, "ls-files", "list files of the index and the worktree", Plumbing, Options, signals: false),
    command!(ls_remote, "ls-remote", "list the refs of another repository", Collaborate, Leading, signals: true),
    command!(ls_tree, "ls-tree", "list the entries of a tree", Plumbing, Options, signals: false),
    command!(maintenance, "maintenance", "keep a repository fast, now and on a schedule", Grow, Options, signals: true),
    command!(merge_file, "merge-file", "merge two versions of a file", Plumbing, Options, signals: false),
    command!(multi_pack_index, "multi-pack-index", "write and verify one index for many packs", Plumbing, Options, signals: true),
    command!(netsync, "netsync", "manage the key of the user, and trusted peers", Collaborate, Nested, signals: true),
    command!(pack_objects, "pack-objects", "make packs of objects", Plumbing, Options, signals: true),
    command!(pack_refs, "pack-refs", "store refs in one file", Plumbing, Options, signals: true),
    command!(prune, "prune", "delete unreachable loose objects", Plumbing, Options, signals: true),
    command!(prune_packed, "prune-packed", "delete loose objects that are packed, too", Plumbing, Options, signals: true),
    command!(pull, "pull", "receive from a peer and merge", Collaborate, Options, signals: true),
    command!(push, "push", "send refs and objects to other repositories", Collaborate, Options, signals: true),
    command!(read_tree, "read-tree", "read trees into the index", Plumbing, Options, signals: true),
    command!(receive_pack, "receive-pack", "serve a push on the standard streams", Plumbing, Options, signals: true),
    command!(reflog, "reflog", "maintain reflogs", Examine, Options, signals: true),
    command!(refs, "refs", "move refs to another storage, and pack them", Plumbing, Options, signals: true),
    command!(remote, "remote", "manage remotes", Collaborate, Options, signals: true),
    command!(repack, "repack", "replace many packs and loose objects by few packs", Plumbing, Options, signals: true),
    command!(reset, "reset", "set the branch, the index and files to another commit", Change, Options, signals: true),
    command!(restore, "restore", "restore files from the index or a commit", Change, Options, signals: true),
    command!(rev_list, "rev-list", "list commits, and the objects that they lead to", Plumbing, Raw, signals: true),
    command!(rev_parse, "rev-parse", "resolve names to ids, and show properties of the repository", Plumbing, Raw, signals: false),
    command!(send_pack, "send-pack", "push to one repository", Plumbing, Options, signals: true),
    elsewhere!(
        serve,
        "serve",
        "serve repositories to clients of Git, or to peers",
        Collaborate,
        Nested
    ),
    elsewhere!(
        shell,
        "shell",
        "serve one request of a client that sshd has authenticated",
        Collaborate,
        Options
    ),
    command!(show_index, "show-index", "show the index of a pack", Plumbing, Options, signals: false),
    command!(show_ref, "show-ref", "list refs and their values", Plumbing, Options, signals: false),
    command!(sparse_checkout, "sparse-checkout", "check out a part of the tracked files", Start, Options, signals: true),
    command!(status, "status", "show changes in the worktree and the index", Change, Options, signals: false),
    elsewhere!(
        store,
        "store",
        "keep repositories in an object store",
        Collaborate,
        Nested
    ),
    command!(switch, "switch", "switch branches", Change, Options, signals: true),
    command!(symbolic_ref, "symbolic-ref", "read and change symbolic refs", Plumbing, Options, signals: true),
    command!(sync, "sync", "synchronise with a peer in both directions", Collaborate, Options, signals: true),
    command!(unpack_objects, "unpack-objects", "unpack a pack into loose objects", Plumbing, Options, signals: true),
    command!(update_index, "update-index", "change entries of the index", Plumbing, Raw, signals: true),
    command!(upload_archive, "upload-archive", "serve an archive", Plumbing, Options, signals: false),
    command!(upload_pack, "upload-pack", "serve a fetch", Plumbing, Options, signals: false),
    command!(verify_pack, "verify-pack", "verify packs and their indexes", Plumbing, Options, signals: false),
    command!(version, "version", "show the version of pronto", About, Options, signals: false),
    command!(worktree, "worktree", "manage the worktrees of a repository", Start, Options, signals: true),
    command!(write_tree, "write-tree", "write the index as a tree", Plumbing, Options, signals: true),
];

/// Returns the whole command line as one definition, for the manual, completions and reference.
/// Building it is costly, so no command does that at run time.
pub fn definition() -> Definition {
    let all = Definition::new("pronto")
        .version(env!("CARGO_PKG_VERSION"))
        .about("a fast, Git-compatible version control system")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .subcommand_required(true);
    let documented = |command: &NativeCommand| {
        let own = document((command.augment)(Definition::new(command.name)));
        groups::apply(own.about(command.summary))
    };
    crate::globals::define(all).subcommands(COMMANDS.iter().map(documented))
}

/// Returns the native command called `name`.
pub fn find(name: &str) -> Option<&'static NativeCommand> {
    let at = COMMANDS
        .binary_search_by_key(&name, |command| command.name)
        .ok()?;
    Some(&COMMANDS[at])
}

impl NativeCommand {
    /// Returns the clap definition of the arguments, for help, manual and completions.
    pub fn definition(&self) -> Definition {
        let name = format!("pronto {}", self.name);
        let mut definition = complete((self.augment)(Definition::new(self.name)))
            .about(self.summary)
            .bin_name(name);
        if self.style == ArgumentStyle::Nested {
            // `build` adds the full names of subcommands and the global options.
            definition.build();
        }
        definition
    }

    /// Returns whether `arguments` request the manual of the command or of a subcommand (`--help`).
    pub(crate) fn asks_for_manual(&self, arguments: &[OsString]) -> bool {
        if self.style != ArgumentStyle::Nested {
            return arguments.first().is_some_and(|first| first == "--help");
        }
        let is_help = |word: &OsString| word == "--help";
        arguments.first().is_some_and(|first| first == "help") || arguments.iter().any(is_help)
    }

    /// Returns the words after `help` that request the manual which `arguments` request: the command,
    /// and the subcommand of it.
    pub(crate) fn manual_words(&self, arguments: &[OsString]) -> Vec<OsString> {
        if self.style != ArgumentStyle::Nested {
            return vec![self.name.into()];
        }
        match arguments.split_first() {
            Some((first, below)) if first == "help" => {
                let is_name = |word: &&OsString| !word.as_encoded_bytes().starts_with(b"-");
                let below = below.iter().filter(is_name).cloned();
                std::iter::once(self.name.into()).chain(below).collect()
            }
            _ => self
                .called(arguments)
                .split(' ')
                .map(OsString::from)
                .collect(),
        }
    }

    /// Returns the definition of the command or subcommand whose usage `arguments` request (`-h`),
    /// if any.
    pub(crate) fn asked_usage(&self, arguments: &[OsString]) -> Option<Definition> {
        if self.style != ArgumentStyle::Nested {
            return asks_for_usage(arguments).then(|| self.definition());
        }
        if arguments.last().is_none_or(|last| last != "-h") {
            return None;
        }
        let (definition, rest) = nested::named(self.definition(), arguments);
        asks_for_usage(rest).then_some(definition)
    }

    /// Returns the name of the command and of the subcommand that `arguments` call: `store import`.
    pub(crate) fn called(&self, arguments: &[OsString]) -> String {
        match self.style {
            ArgumentStyle::Nested => {
                let (definition, _) = nested::named(self.definition(), arguments);
                let name = definition.get_bin_name().unwrap_or(self.name);
                name.trim_start_matches("pronto ").to_owned()
            }
            _ => self.name.to_owned(),
        }
    }

    /// Runs the command with the arguments that follow its name.
    pub(crate) fn run(
        &self,
        arguments: &[OsString],
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let definition = self.definition();
        context.arguments = arguments.to_vec();
        // Errors of the arguments are reported in the document, too.
        context.json = nested::requested_document(&definition, arguments);
        let Normalised { tokens, separator } = self.normalise(&definition, arguments)?;
        context.separator = separator;
        if context.json.is_some() && !nested::has_json(&tokens) {
            context.json = None;
        }
        let served = context.served.iter().find(|(name, _)| *name == self.name);
        let run = served.map_or(self.run, |(_, run)| *run);
        run(definition, tokens, context)
    }

    /// Checks `arguments` without running the command.
    ///
    /// # Errors
    /// Fails with a reason that names options, but no values.
    pub(crate) fn check_arguments(&self, arguments: &[OsString]) -> Result<(), String> {
        let definition = self.definition();
        let normalised = self.normalise(&definition, arguments);
        let tokens = normalised.map_err(|error| error.to_string())?.tokens;
        match definition.try_get_matches_from(tokens) {
            Ok(_) => Ok(()),
            Err(_) => {
                Err("a value or a number of arguments that pronto does not accept".to_owned())
            }
        }
    }

    /// Converts `arguments` into the form that clap parses.
    fn normalise(
        &self,
        definition: &Definition,
        arguments: &[OsString],
    ) -> Result<Normalised, CliError> {
        match self.style {
            ArgumentStyle::Options => normalise(definition, arguments),
            ArgumentStyle::Leading => Ok(Normalised {
                separator: None,
                ..normalise_leading(definition, arguments)?
            }),
            ArgumentStyle::Nested => Ok(Normalised {
                tokens: nested::tokens(definition, arguments)?,
                separator: None,
            }),
            ArgumentStyle::Raw => Ok(Normalised {
                tokens: std::iter::once("--".into())
                    .chain(arguments.iter().cloned())
                    .collect(),
                separator: None,
            }),
        }
    }
}

fn parse<T: clap::FromArgMatches>(
    definition: Definition,
    tokens: Vec<OsString>,
) -> Result<T, CliError> {
    let mut matches = definition
        .try_get_matches_from(tokens)
        .map_err(|error| wrong(&error))?;
    T::from_arg_matches_mut(&mut matches).map_err(|error| wrong(&error))
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
