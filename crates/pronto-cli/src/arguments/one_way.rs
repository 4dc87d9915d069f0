//! Options that have no `--no-` form, or whose `--no-` form has no effect, and options that Git lacks.

/// Options of native commands that Git does not let users negate, as shown by `git COMMAND -h` of
/// git 2.55.
const ONE_WAY: &[(&str, &[&str])] = &[
    ("add", &["inter-hunk-context", "unified"]),
    ("bugreport", &["no-suffix"]),
    (
        "cat-file",
        &[
            "batch",
            "batch-all-objects",
            "batch-check",
            "batch-command",
            "filters",
            "textconv",
        ],
    ),
    (
        "checkout",
        &["inter-hunk-context", "ours", "theirs", "unified"],
    ),
    ("checkout-index", &["stage"]),
    ("clean", &["exclude"]),
    ("clone", &["ipv4", "ipv6"]),
    ("commit", &["inter-hunk-context", "unified"]),
    ("fetch", &["ipv4", "ipv6", "refetch", "refmap", "unshallow"]),
    ("init", &["shared"]),
    (
        "ls-files",
        &[
            "exclude",
            "exclude-from",
            "exclude-standard",
            "format",
            "full-name",
        ],
    ),
    (
        "ls-tree",
        &["format", "long", "name-only", "name-status", "object-only"],
    ),
    ("maintenance", &["schedule", "scheduler"]),
    ("merge-file", &["diff-algorithm"]),
    ("pull", &["ff-only", "refmap", "unshallow"]),
    (
        "read-tree",
        &["exclude-per-directory", "index-output", "prefix"],
    ),
    ("refs", &["ref-format"]),
    (
        "reset",
        &[
            "hard",
            "inter-hunk-context",
            "keep",
            "merge",
            "mixed",
            "soft",
            "unified",
        ],
    ),
    (
        "restore",
        &["inter-hunk-context", "ours", "theirs", "unified"],
    ),
    ("status", &["find-renames"]),
];

/// Options whose value is the name of a file. Git 2.55 accepts their `--no-` form, but keeps the
/// file.
const OF_FILES: &[&str] = &["file", "pathspec-from-file", "refs-snapshot", "rules-file"];

/// Options whose `--no-` form does the same as the option without a value, in git 2.55.
const NEVER_OFF: &[(&str, &str)] = &[("show-ref", "hash")];

/// Returns whether the `--no-` form of `option` does the same as the option.
pub(super) fn stays_on_when_negated(command: &str, option: &str) -> bool {
    NEVER_OFF.contains(&(command, option))
}

/// Groups of options of one command that set the same value. The `--no-` form of any of them resets
/// the value.
const OF_ONE_VALUE: &[(&str, &[&str])] = &[
    ("merge-file", &["diff3", "zdiff3"]),
    ("merge-file", &["ours", "theirs", "union"]),
    ("pack-objects", &["all-progress", "progress"]),
    ("status", &["long", "porcelain", "short"]),
];

/// Returns the options of `command` that set the same value as `option`.
pub(super) fn of_same_value(command: &str, option: &str) -> &'static [&'static str] {
    let mut groups = OF_ONE_VALUE.iter();
    let found = groups.find(|(name, options)| *name == command && options.contains(&option));
    found.map_or(&[], |(_, options)| options)
}

/// Returns whether the `--no-` form of `option` has no effect.
pub(super) fn stays_when_negated(option: &str) -> bool {
    OF_FILES.contains(&option)
}

/// Returns whether `command` has no `--no-` form of `option`.
pub(super) fn is_one_way(command: &str, option: &str) -> bool {
    ONE_WAY
        .iter()
        .any(|(name, options)| *name == command && options.contains(&option))
}

/// Options of Git's commands that Git itself lacks. They cannot be abbreviated, so that every
/// abbreviation of Git's options stays unambiguous.
const NOT_OF_GIT: &[(&str, &[&str])] = &[
    ("clone", &["json"]),
    ("fetch", &["json"]),
    ("push", &["json"]),
    ("status", &["json"]),
    (
        "worktree",
        &["carry", "carry-reflink", "json", "recurse-submodules"],
    ),
];

/// Returns whether Git's command `command` lacks `option`.
pub(super) fn is_not_of_git(command: &str, option: &str) -> bool {
    NOT_OF_GIT
        .iter()
        .any(|(name, options)| *name == command && options.contains(&option))
}
