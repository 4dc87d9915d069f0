//! The headings under which the manual pages and the help list the options of commands with many
//! options.

use clap::{Arg, Command as Definition};

/// Options of one command under one heading, by their long names or their letters. Options that are
/// in no group of the command are listed under `Options`.
struct OptionGroup {
    command: &'static str,
    heading: &'static str,
    options: &'static [&'static str],
}

const fn group(
    command: &'static str,
    heading: &'static str,
    options: &'static [&'static str],
) -> OptionGroup {
    OptionGroup {
        command,
        heading,
        options,
    }
}

const CUT_OFF: &[&str] = &[
    "depth",
    "deepen",
    "shallow-since",
    "shallow-exclude",
    "unshallow",
    "update-shallow",
    "reject-shallow",
    "filter",
    "refetch",
];
const CONNECTION: &[&str] = &["upload-pack", "server-option", "ipv4", "ipv6"];
const SUBMODULES: &[&str] = &["recurse-submodules", "shallow-submodules"];
const OUTPUT: &[&str] = &[
    "raw",
    "name-only",
    "name-status",
    "no-patch",
    "quiet",
    "exit-code",
    "z",
    "abbrev",
    "no-commit-id",
];
const DETECTION: &[&str] = &["find-renames", "find-copies", "no-renames", "l"];
const SELECTION: &[&str] = &["diff-filter", "relative", "ignore-submodules", "R"];

const GROUPS: &[OptionGroup] = &[
    group(
        "checkout",
        "Branches",
        &["b", "B", "l", "detach", "track", "orphan", "guess"],
    ),
    group(
        "checkout",
        "Conflicts and local changes",
        &[
            "force",
            "ours",
            "theirs",
            "merge",
            "conflict",
            "overwrite-ignore",
            "ignore-other-worktrees",
        ],
    ),
    group(
        "checkout",
        "Paths",
        &[
            "patch",
            "overlay",
            "ignore-skip-worktree-bits",
            "pathspec-from-file",
            "pathspec-file-nul",
        ],
    ),
    group(
        "clone",
        "Objects of a repository on this machine",
        &[
            "local",
            "no-hardlinks",
            "shared",
            "reference",
            "reference-if-able",
        ],
    ),
    group(
        "clone",
        "Layout of the new repository",
        &[
            "bare",
            "mirror",
            "no-checkout",
            "sparse",
            "template",
            "separate-git-dir",
            "config",
            "origin",
        ],
    ),
    group(
        "clone",
        "Which history to take",
        &["branch", "revision", "single-branch", "no-tags"],
    ),
    group("clone", "Shallow and partial clones", CUT_OFF),
    group(
        "clone",
        "Submodules",
        &["recurse-submodules", "shallow-submodules", "jobs"],
    ),
    group("clone", "Connection", CONNECTION),
    group("diff-files", "Output", OUTPUT),
    group("diff-files", "Renames and copies", DETECTION),
    group("diff-files", "Which differences to show", SELECTION),
    group("diff-index", "Output", OUTPUT),
    group("diff-index", "Renames and copies", DETECTION),
    group("diff-index", "Which differences to show", SELECTION),
    group("diff-tree", "Output", OUTPUT),
    group("diff-tree", "Renames and copies", DETECTION),
    group("diff-tree", "Which differences to show", SELECTION),
    group(
        "fetch",
        "References",
        &[
            "append",
            "atomic",
            "force",
            "tags",
            "n",
            "prune",
            "prune-tags",
            "refmap",
            "update-head-ok",
            "no-write-fetch-head",
            "dry-run",
        ],
    ),
    group("fetch", "Several remotes", &["all", "multiple", "jobs"]),
    group("fetch", "Shallow and partial repositories", CUT_OFF),
    group("fetch", "Submodules", SUBMODULES),
    group("fetch", "Connection", CONNECTION),
    group(
        "fetch",
        "Afterwards",
        &["keep", "no-auto-maintenance", "no-auto-gc"],
    ),
    group(
        "index-pack",
        "Checks",
        &[
            "strict",
            "fsck-objects",
            "check-self-contained-and-connected",
            "verify",
            "verify-stat",
            "verify-stat-only",
            "max-input-size",
        ],
    ),
    group(
        "index-pack",
        "Output",
        &[
            "v",
            "progress-title",
            "show-resolving-progress",
            "report-end-of-input",
        ],
    ),
    group(
        "ls-files",
        "Which files to list",
        &[
            "cached",
            "deleted",
            "modified",
            "others",
            "ignored",
            "killed",
            "unmerged",
            "resolve-undo",
            "with-tree",
            "error-unmatch",
        ],
    ),
    group(
        "ls-files",
        "Ignored files",
        &[
            "exclude",
            "exclude-from",
            "exclude-per-directory",
            "exclude-standard",
        ],
    ),
    group(
        "ls-files",
        "Output",
        &[
            "z",
            "t",
            "v",
            "f",
            "stage",
            "eol",
            "full-name",
            "abbrev",
            "debug",
            "format",
        ],
    ),
    group(
        "pack-objects",
        "Which objects to pack",
        &[
            "revs",
            "all",
            "reflog",
            "indexed-objects",
            "unpacked",
            "incremental",
            "local",
            "honor-pack-keep",
            "keep-pack",
            "include-tag",
            "keep-true-parents",
        ],
    ),
    group(
        "pack-objects",
        "Deltas and compression",
        &[
            "thin",
            "delta-base-offset",
            "no-reuse-delta",
            "no-reuse-object",
            "window",
            "window-memory",
            "depth",
            "threads",
            "compression",
            "sparse",
        ],
    ),
    group(
        "pack-objects",
        "Progress",
        &["progress", "all-progress", "all-progress-implied", "q"],
    ),
    group(
        "repack",
        "Which objects to pack",
        &[
            "a",
            "A",
            "local",
            "pack-kept-objects",
            "keep-pack",
            "geometric",
        ],
    ),
    group(
        "repack",
        "Unreachable objects",
        &[
            "cruft",
            "cruft-expiration",
            "combine-cruft-below-size",
            "max-cruft-size",
            "expire-to",
            "unpack-unreachable",
        ],
    ),
    group(
        "repack",
        "Deltas and compression",
        &["f", "F", "window", "window-memory", "depth", "threads"],
    ),
    group(
        "repack",
        "Indexes",
        &["write-bitmap-index", "write-midx", "n"],
    ),
];

/// Returns `definition` with its options under the headings of their groups.
pub(super) fn apply(definition: Definition) -> Definition {
    let name = definition.get_name().to_owned();
    let groups: Vec<&OptionGroup> = GROUPS
        .iter()
        .filter(|group| group.command == name)
        .collect();
    if groups.is_empty() {
        return definition;
    }
    definition.mut_args(|option| {
        let heading = groups
            .iter()
            .find(|group| group.options.iter().any(|named| is_named(&option, named)));
        match heading {
            Some(group) => option.help_heading(group.heading),
            None => option,
        }
    })
}

fn is_named(option: &Arg, name: &str) -> bool {
    let short = option.get_short().map(String::from);
    option.get_long() == Some(name) || short.as_deref() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_options_of_its_command() {
        for group in GROUPS {
            let command = super::super::find(group.command).expect("a native command");
            let definition = command.definition();
            // A list that several commands share may name an option that one of the commands lacks.
            let members = definition
                .get_arguments()
                .filter(|option| group.options.iter().any(|name| is_named(option, name)));
            assert!(members.count() > 0, "{} {}", group.command, group.heading);
        }
    }

    #[test]
    fn options_of_a_command_are_grouped() {
        let clone = super::super::find("clone").expect("a native command");
        let grouped = apply(clone.definition());
        let heading = |id: &str| {
            let option = grouped.get_arguments().find(|option| option.get_id() == id);
            option.expect("it has it").get_help_heading()
        };
        assert_eq!(heading("depth"), Some("Shallow and partial clones"));
        assert_eq!(heading("verbose"), None);
    }
}
