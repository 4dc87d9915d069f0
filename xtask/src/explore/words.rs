//! The words from which scenarios are generated.

/// The table of commands. A row has a command, its arguments, and its standard input.
pub(super) const COMMANDS: &str = include_str!("commands.txt");

/// Returns the words for a placeholder in the arguments of a command.
pub(super) fn of(placeholder: &str) -> &'static [&'static str] {
    match placeholder {
        "path" => &PATHS,
        "rev" => &REVISIONS,
        "branch" => &["main", "side", "v1", "origin/main", "nothing", "@", "-"],
        "ref" => &[
            "HEAD",
            "refs/heads/main",
            "refs/heads/new",
            "refs/tags/v1",
            "main",
            "refs/../x",
            "",
        ],
        "new" => &["new", "new/deep", "main", "a", "-x", "bad..name", "d", ""],
        "remote" => &[
            "origin",
            "../o.git",
            ".",
            "nowhere",
            "@ROOT@/o.git",
            "file://@ROOT@/o.git",
            "../../o.git",
            "",
        ],
        "refspec" => &[
            "main",
            "side",
            "HEAD",
            "main:new",
            "+side:main",
            ":side",
            "refs/heads/*:refs/remotes/x/*",
            "v1",
            "nothing",
            "main:refs/other/x",
            "HEAD:main",
            "^main",
            ":",
            "a:b:c",
            "tag v1",
        ],
        "key" => &[
            "user.name",
            "core.bare",
            "remote.origin.url",
            "no.such",
            "nodot",
            "core.",
            "a.b c.d",
            "branch.main.merge",
            "",
        ],
        "file" => &[
            "a",
            "index",
            "HEAD",
            ".git/index",
            "hooks/x",
            "missing",
            "",
            "objects/pack",
            "logs/HEAD",
            "shallow",
        ],
        _ => &VALUES,
    }
}

const PATHS: [&str; 22] = [
    "a",
    "d",
    "d/b",
    ".",
    "..",
    "d/e/c",
    "missing",
    "",
    "*",
    "*.txt",
    ":/",
    ":/d",
    ":(top)a",
    ":!a",
    ":(exclude)d",
    ":(icase)A",
    ":(glob)**/c",
    ":(literal)*",
    ":(attr:text)",
    "@ROOT@/r/a",
    "../a",
    "new",
];

const REVISIONS: [&str; 24] = [
    "HEAD",
    "main",
    "side",
    "HEAD~1",
    "v1",
    "v1^{}",
    "HEAD^{tree}",
    "HEAD:a",
    ":a",
    "HEAD:d",
    "@{1}",
    "@{u}",
    "@",
    "nothing",
    "0000000000000000000000000000000000000000",
    "HEAD~9",
    "origin/main",
    ":/first",
    "main@{0}",
    "HEAD^!",
    "side..main",
    "@{-1}",
    ":2:a",
    "",
];

/// The values of options and settings.
pub(super) const VALUES: [&str; 20] = [
    "true", "false", "", "0", "1", "-1", "2", "bogus", "input", "auto", "always", "never", "10k",
    "now", "../x", "d/a", "~/x", "@ROOT@/x", "main", "all",
];

/// Environment variables and their values; `-` removes a variable.
pub(super) const VARIABLES: [(&str, &[&str]); 36] = [
    (
        "GIT_INDEX_FILE",
        &[".git/index", "@ROOT@/r/.git/index", "other", ""],
    ),
    (
        "GIT_OBJECT_DIRECTORY",
        &[".git/objects", "@ROOT@/r/.git/objects", "missing"],
    ),
    (
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        &["../o.git/objects", "@ROOT@/o.git/objects", "missing"],
    ),
    ("GIT_COMMON_DIR", &[".git", "@ROOT@/r/.git", "missing"]),
    ("GIT_DIR", &[".git", "@ROOT@/r/.git", "missing", ""]),
    (
        "GIT_WORK_TREE",
        &[".", "..", "@ROOT@/r", "d", "missing", ""],
    ),
    ("GIT_CEILING_DIRECTORIES", &["@ROOT@", "@ROOT@/r", ""]),
    (
        "GIT_CONFIG_GLOBAL",
        &["missing", "@ROOT@/r/.git/config", ""],
    ),
    ("GIT_CONFIG_COUNT", &["0", "1", "x", ""]),
    (
        "GIT_CONFIG_PARAMETERS",
        &["'core.bare=true'", "'a.b'='c'", "bad"],
    ),
    ("GIT_CONFIG", &["x", "@ROOT@/home/.gitconfig"]),
    ("GIT_DEFAULT_HASH", &["sha256", "sha1", "bogus"]),
    ("GIT_DEFAULT_REF_FORMAT", &["reftable", "files", "bogus"]),
    ("GIT_LITERAL_PATHSPECS", &["1", "0", "bogus"]),
    ("GIT_GLOB_PATHSPECS", &["1"]),
    ("GIT_NOGLOB_PATHSPECS", &["1"]),
    ("GIT_ICASE_PATHSPECS", &["1"]),
    ("GIT_NO_REPLACE_OBJECTS", &["1", ""]),
    ("GIT_OPTIONAL_LOCKS", &["0", "bogus"]),
    ("GIT_REFLOG_ACTION", &["action", ""]),
    ("GIT_INDEX_VERSION", &["2", "4", "9", "x"]),
    ("GIT_GRAFT_FILE", &["missing", "../grafts"]),
    ("GIT_SHALLOW_FILE", &["missing", ""]),
    ("GIT_REPLACE_REF_BASE", &["refs/x/", ""]),
    ("GIT_PREFIX", &["d/", "x"]),
    ("GIT_ADVICE", &["1", "-"]),
    ("GIT_TEMPLATE_DIR", &["d", "@ROOT@/r/d", "missing"]),
    ("COLUMNS", &["20", "x"]),
    ("EMAIL", &["me@x"]),
    (
        "GIT_AUTHOR_DATE",
        &[
            "now",
            "1969-12-31 00:00:00",
            "@0 +0000",
            "Mon 20 Aug 2018 20:19:19 +0200",
            "bogus",
            "",
        ],
    ),
    (
        "GIT_COMMITTER_DATE",
        &["Mon 20 Aug 2018 20:19:19 +0200", "2005-04-07", "bogus"],
    ),
    ("GIT_AUTHOR_NAME", &["", "x", "<>"]),
    ("GIT_COMMITTER_NAME", &["", "x"]),
    ("HOME", &["-", "relative", ""]),
    ("GIT_PROTOCOL", &["version=2", "version=1", "x"]),
    ("GIT_ALLOW_PROTOCOL", &["file", "ssh", ""]),
];

/// A current directory with options before the command and environment variables.
type PlaceWords = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

/// The directories in which scenarios run.
pub(super) const PLACES: [PlaceWords; 20] = [
    ("r", &[], &[]),
    ("r/d", &[], &[]),
    ("link", &[], &[("PWD", "@ROOT@/link")]),
    ("r/.git", &[], &[]),
    ("r/.git/refs", &[], &[]),
    ("o.git", &[], &[]),
    ("linked", &[], &[]),
    ("linked/d", &[], &[]),
    ("r/sub", &[], &[]),
    ("out", &[], &[]),
    ("out", &["-C", "../r"], &[]),
    ("", &["-C", "r/d"], &[]),
    ("out", &[], &[("GIT_DIR", "../r/.git")]),
    (
        "r/d",
        &[],
        &[("GIT_DIR", "../.git"), ("GIT_WORK_TREE", "..")],
    ),
    (
        "out",
        &["--git-dir=@ROOT@/r/.git", "--work-tree=@ROOT@/r"],
        &[],
    ),
    ("", &["--git-dir=r/.git", "--work-tree=r"], &[]),
    ("r/d", &["--git-dir=../.git"], &[]),
    ("r", &["--work-tree=d"], &[]),
    ("r", &["--bare"], &[]),
    ("r/d", &[], &[("PWD", "/tmp")]),
];

/// The names of hooks.
pub(super) const HOOKS: [&str; 14] = [
    "pre-commit",
    "commit-msg",
    "post-commit",
    "prepare-commit-msg",
    "pre-push",
    "post-checkout",
    "post-merge",
    "reference-transaction",
    "post-index-change",
    "post-rewrite",
    "pre-auto-gc",
    "pre-merge-commit",
    "post-applypatch",
    "sendemail-validate",
];

/// Calls that use the result of an earlier call.
pub(super) const FOLLOWING: [&str; 9] = [
    "status",
    "add -A",
    "commit -q -m second",
    "checkout -q main",
    "fsck",
    "reset -q --hard",
    "rev-parse HEAD",
    "ls-files -s",
    "show-ref",
];

/// Options with which a command does not terminate, opens an editor, or depends on the clock.
pub(super) const EXCLUDED_OPTIONS: [&str; 8] = [
    "--edit",
    "--interactive",
    "--patch",
    "--detach-process",
    "--daemon",
    "--schedule",
    "--git-completion-helper",
    "--",
];
