//! The settings that native commands lack and that concern the command line alone: traces, the form of the output, and
//! variables of Git's own tests.

use pronto::support::When;

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

/// Commands that print ids with dots behind them on request.
const PRINTERS_OF_IDS: &[&str] = &[
    "checkout",
    "diff-files",
    "diff-index",
    "diff-tree",
    "switch",
];

/// Values that disable a trace.
const OFF: &[&str] = &["", "0", "false"];

const fn row(name: &'static str, commands: &'static [&'static str], when: When) -> CommandSetting {
    CommandSetting {
        name,
        commands,
        when,
    }
}

/// Configured variables, sorted.
#[rustfmt::skip]
pub static KEYS: &[CommandSetting] = &[
    row("status.comparebranches", &["checkout", "status", "switch"], When::Set),
    row("trace2.eventtarget", ALL, When::Not(OFF)),
    row("trace2.normaltarget", ALL, When::Not(OFF)),
    row("trace2.perftarget", ALL, When::Not(OFF)),
];

/// Environment variables, sorted.
#[rustfmt::skip]
pub static VARIABLES: &[CommandSetting] = &[
    row("GIT_CURL_VERBOSE", CLIENTS, When::Set),
    row("GIT_FORCE_UNTRACKED_CACHE", &["status"], When::Set),
    row("GIT_PAGER_IN_USE", &["status"], When::True),
    row("GIT_PRINT_SHA1_ELLIPSIS", PRINTERS_OF_IDS, When::True),
    row("GIT_TEST_BLOOM_SETTINGS_BITS_PER_ENTRY", &["commit-graph"], When::Set),
    row("GIT_TEST_BLOOM_SETTINGS_MAX_CHANGED_PATHS", &["commit-graph"], When::Set),
    row("GIT_TEST_BLOOM_SETTINGS_NUM_HASHES", &["commit-graph"], When::Set),
    row("GIT_TEST_CAT_FILE_NO_FLUSH_ON_EXIT", &["cat-file"], When::True),
    row("GIT_TEST_FSYNC", ALL, When::True),
    row("GIT_TEST_SPLIT_INDEX", INDEX_WRITERS, When::True),
    row("GIT_TEST_UF_DELAY_WARNING", &["status"], When::True),
    row("GIT_TRACE_CURL", CLIENTS, When::Not(OFF)),
    row("GIT_TRACE_FSMONITOR", ALL, When::Not(OFF)),
    row("GIT_TRACE_PACKET", PROTOCOL, When::Not(OFF)),
    row("GIT_TRACE_PACKFILE", PROTOCOL, When::Not(OFF)),
    row("GIT_TRACE_PACK_ACCESS", ALL, When::Not(OFF)),
    row("GIT_TRACE_REFS", ALL, When::Not(OFF)),
    row("GIT_TRACE_SETUP", ALL, When::Not(OFF)),
    row("GIT_TRACE_SHALLOW", PROTOCOL, When::Not(OFF)),
    row("GIT_TRACE_WORKING_TREE_ENCODING", ALL, When::Not(OFF)),
];
