//! The settings that native commands do not implement and that concern the command line alone:
//! traces, the output format, and variables of Git's own tests.

use pronto::support::ValueCondition;

use super::CommandSetting;

const ALL: &[&str] = &[];
const CLIENTS: &[&str] = &[
    "clone",
    "fetch",
    "fetch-pack",
    "ls-remote",
    "push",
    "remote",
    "send-pack",
];
const PROTOCOL: &[&str] = &[
    "clone",
    "fetch",
    "fetch-pack",
    "ls-remote",
    "push",
    "receive-pack",
    "remote",
    "send-pack",
    "upload-archive",
    "upload-pack",
];
const INDEX_WRITERS: &[&str] = &[
    "add",
    "checkout",
    "checkout-index",
    "clone",
    "commit",
    "read-tree",
    "reset",
    "restore",
    "sparse-checkout",
    "status",
    "switch",
    "update-index",
    "worktree",
];

/// Commands that print an ellipsis after abbreviated ids if `GIT_PRINT_SHA1_ELLIPSIS` is set.
const PRINTERS_OF_IDS: &[&str] = &[
    "checkout",
    "diff-files",
    "diff-index",
    "diff-tree",
    "switch",
];

/// Values that disable a trace.
const OFF: &[&str] = &["", "0", "false"];

const fn row(
    name: &'static str,
    commands: &'static [&'static str],
    when: ValueCondition,
) -> CommandSetting {
    CommandSetting {
        name,
        commands,
        when,
    }
}

/// The configuration variables, sorted by name.
#[rustfmt::skip]
pub static KEYS: &[CommandSetting] = &[
    row("status.comparebranches", &["checkout", "status", "switch"], ValueCondition::Set),
    row("trace2.eventtarget", ALL, ValueCondition::Not(OFF)),
    row("trace2.normaltarget", ALL, ValueCondition::Not(OFF)),
    row("trace2.perftarget", ALL, ValueCondition::Not(OFF)),
];

/// Environment variables, sorted.
#[rustfmt::skip]
pub static VARIABLES: &[CommandSetting] = &[
    row("GIT_CURL_VERBOSE", CLIENTS, ValueCondition::Set),
    row("GIT_FORCE_UNTRACKED_CACHE", &["status"], ValueCondition::Set),
    row("GIT_PAGER_IN_USE", &["status"], ValueCondition::True),
    row("GIT_PRINT_SHA1_ELLIPSIS", PRINTERS_OF_IDS, ValueCondition::True),
    row("GIT_TEST_BLOOM_SETTINGS_BITS_PER_ENTRY", &["commit-graph"], ValueCondition::Set),
    row("GIT_TEST_BLOOM_SETTINGS_MAX_CHANGED_PATHS", &["commit-graph"], ValueCondition::Set),
    row("GIT_TEST_BLOOM_SETTINGS_NUM_HASHES", &["commit-graph"], ValueCondition::Set),
    row("GIT_TEST_CAT_FILE_NO_FLUSH_ON_EXIT", &["cat-file"], ValueCondition::True),
    row("GIT_TEST_FSYNC", ALL, ValueCondition::True),
    row("GIT_TEST_SPLIT_INDEX", INDEX_WRITERS, ValueCondition::True),
    row("GIT_TEST_UF_DELAY_WARNING", &["status"], ValueCondition::True),
    row("GIT_TRACE_CURL", CLIENTS, ValueCondition::Not(OFF)),
    row("GIT_TRACE_FSMONITOR", ALL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_PACKET", PROTOCOL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_PACKFILE", PROTOCOL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_PACK_ACCESS", ALL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_REFS", ALL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_SETUP", ALL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_SHALLOW", PROTOCOL, ValueCondition::Not(OFF)),
    row("GIT_TRACE_WORKING_TREE_ENCODING", ALL, ValueCondition::Not(OFF)),
];
