//! Options that have no `--no-` form.

/// Options of native commands that Git does not let users negate, as shown by `git COMMAND -h` of
/// git 2.55.
const ONE_WAY: &[(&str, &[&str])] = &[
    ("add", &["inter-hunk-context", "unified"]),
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

/// Returns whether `command` has no `--no-` form of `option`.
pub(super) fn is_one_way(command: &str, option: &str) -> bool {
    ONE_WAY
        .iter()
        .any(|(name, options)| *name == command && options.contains(&option))
}
