//! The settings that native commands lack, except those of transports.

use super::{Guarded, Lacking, Place, When};

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
const LITERAL: &[&str] = &["check-ignore", "ls-tree"];
const SYMBOLIC: &[&str] = &[
    "checkout",
    "clone",
    "fetch",
    "init",
    "remote",
    "switch",
    "symbolic-ref",
    "worktree",
];
pub(super) const REFERENCE_WRITERS: &[&str] = &[
    "checkout",
    "clone",
    "commit",
    "fetch",
    "pack-refs",
    "push",
    "receive-pack",
    "reflog",
    "refs",
    "remote",
    "reset",
    "send-pack",
    "serve",
    "switch",
    "symbolic-ref",
    "sync",
    "worktree",
];
pub(super) const INDEX_WRITERS: &[&str] = &[
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
const ATTRIBUTES: &[&str] = &[
    "add",
    "archive",
    "cat-file",
    "check-attr",
    "checkout",
    "checkout-index",
    "clone",
    "commit",
    "diff-files",
    "diff-index",
    "diff-tree",
    "hash-object",
    "ls-files",
    "pack-objects",
    "read-tree",
    "repack",
    "reset",
    "restore",
    "sparse-checkout",
    "status",
    "switch",
    "update-index",
    "upload-archive",
    "upload-pack",
    "worktree",
];

/// Commands that write files whose permissions `core.sharedRepository` determines. pronto applies
/// the setting to objects, but not to the index, refs and reflogs.
const SHARED_FILE_WRITERS: &[&str] = &[
    "add",
    "bundle",
    "checkout",
    "checkout-index",
    "clone",
    "commit",
    "fetch",
    "pack-refs",
    "push",
    "read-tree",
    "receive-pack",
    "reflog",
    "refs",
    "remote",
    "reset",
    "restore",
    "send-pack",
    "sparse-checkout",
    "switch",
    "symbolic-ref",
    "update-index",
    "worktree",
    "write-tree",
];

/// Values of `core.sharedRepository` that do not share the repository.
const PRIVATE: &[&str] = &["umask", "false", "no", "off", "0", ""];

/// Values of `core.fsmonitor` that do not name a hook program.
const BOOLEANS: &[&str] = &["true", "yes", "on", "1", "false", "no", "off", "0", ""];

/// Values that disable a trace.
pub(super) const OFF: &[&str] = &["", "0", "false"];

pub(super) const fn row(
    name: &'static str,
    place: Place,
    commands: &'static [&'static str],
    when: When,
) -> Lacking {
    Lacking {
        name,
        place,
        commands,
        when,
    }
}

const fn variable(name: &'static str, commands: &'static [&'static str], when: When) -> Lacking {
    row(name, Place::Section, commands, when)
}

/// The configured variables that native commands lack, sorted by name.
pub static KEYS: &[Lacking] = &[
    row("attr.tree", Place::Section, ATTRIBUTES, When::NotEmpty),
    row(
        "clone.filtersubmodules",
        Place::Section,
        &["clone"],
        When::True,
    ),
    row(
        "commitgraph.changedpaths",
        Place::Section,
        &["commit-graph"],
        When::True,
    ),
    row(
        "commitgraph.changedpathsversion",
        Place::Section,
        &["commit-graph"],
        When::Set,
    ),
    row(
        "core.fsmonitor",
        Place::Section,
        &["add", "update-index"],
        When::Not(BOOLEANS),
    ),
    row("core.ignorestat", Place::Section, INDEX_WRITERS, When::True),
    row("core.maxtreedepth", Place::Section, ALL, When::Set),
    row(
        "core.prefersymlinkrefs",
        Place::Section,
        SYMBOLIC,
        When::True,
    ),
    row(
        "core.sharedrepository",
        Place::Section,
        SHARED_FILE_WRITERS,
        When::Not(PRIVATE),
    ),
    row(
        "fetch.negotiationalgorithm",
        Place::Section,
        &["fetch", "fetch-pack"],
        When::Not(&["consecutive", "default", "noop", "skipping"]),
    ),
    row(
        "fetch.uriprotocols",
        Place::Section,
        CLIENTS,
        When::NotEmpty,
    ),
    row(
        "gc.recentobjectshook",
        Place::Section,
        &["pack-objects", "repack"],
        When::NotEmpty,
    ),
    row(
        "init.defaultobjectformat",
        Place::Section,
        &["init"],
        When::Not(&["sha1"]),
    ),
    row(
        "init.defaultsubmodulepathconfig",
        Place::Section,
        &["clone", "init"],
        When::True,
    ),
    row(
        "pack.usepathwalk",
        Place::Section,
        &["pack-objects", "repack"],
        When::True,
    ),
    row(
        "promisor.acceptfromserver",
        Place::Section,
        CLIENTS,
        When::Not(&["none"]),
    ),
    row(
        "receive.maxinputsize",
        Place::Section,
        &["serve"],
        When::Not(&["0"]),
    ),
    row(
        "remote.followremotehead",
        Place::Subsection,
        &["fetch"],
        When::Not(&["always", "create", "never"]),
    ),
    row("remote.vcs", Place::Subsection, CLIENTS, When::NotEmpty),
    row(
        "repack.midxmustcontaincruft",
        Place::Section,
        &["repack"],
        When::False,
    ),
    row(
        "status.comparebranches",
        Place::Section,
        &["checkout", "status", "switch"],
        When::Set,
    ),
    row(
        "submodule.stickyrecursiveclone",
        Place::Section,
        &["clone"],
        When::True,
    ),
    row("trace2.eventtarget", Place::Section, ALL, When::Not(OFF)),
    row("trace2.normaltarget", Place::Section, ALL, When::Not(OFF)),
    row("trace2.perftarget", Place::Section, ALL, When::Not(OFF)),
    row(
        "transfer.credentialsinurl",
        Place::Section,
        CLIENTS,
        When::Not(&["allow"]),
    ),
    row(
        "versionsort.prereleasesuffix",
        Place::Section,
        &["ls-remote"],
        When::Set,
    ),
    row(
        "versionsort.suffix",
        Place::Section,
        &["ls-remote"],
        When::Set,
    ),
    row(
        "worktree.userelativepaths",
        Place::Section,
        &["worktree"],
        When::True,
    ),
];

/// The environment variables that native commands lack, sorted by name.
pub static VARIABLES: &[Lacking] = &[
    variable("GIT_ALLOW_NULL_SHA1", INDEX_WRITERS, When::True),
    variable("GIT_ATTR_SOURCE", ATTRIBUTES, When::NotEmpty),
    variable("GIT_COMMIT_GRAPH_PARANOIA", ALL, When::True),
    variable("GIT_FORCE_UNTRACKED_CACHE", &["status"], When::Set),
    variable("GIT_GLOB_PATHSPECS", LITERAL, When::True),
    variable("GIT_ICASE_PATHSPECS", LITERAL, When::True),
    variable("GIT_LITERAL_PATHSPECS", LITERAL, When::True),
    variable(
        "GIT_NAMESPACE",
        &["clone", "fetch", "fetch-pack", "remote"],
        When::NotEmpty,
    ),
    variable("GIT_NOGLOB_PATHSPECS", LITERAL, When::True),
    variable("GIT_NO_LAZY_FETCH", CLIENTS, When::True),
    variable("GIT_PAGER_IN_USE", &["status"], When::True),
    variable(
        "GIT_PRINT_SHA1_ELLIPSIS",
        &[
            "checkout",
            "diff-files",
            "diff-index",
            "diff-tree",
            "switch",
        ],
        When::True,
    ),
    variable("GIT_QUARANTINE_PATH", REFERENCE_WRITERS, When::Set),
    variable("GIT_REFERENCE_BACKEND", ALL, When::NotEmpty),
    variable(
        "GIT_REF_PARANOIA",
        &[
            "clone",
            "fetch",
            "pack-objects",
            "push",
            "receive-pack",
            "repack",
            "upload-pack",
        ],
        When::False,
    ),
    variable(
        "GIT_TEST_BLOOM_SETTINGS_BITS_PER_ENTRY",
        &["commit-graph"],
        When::Set,
    ),
    variable(
        "GIT_TEST_BLOOM_SETTINGS_MAX_CHANGED_PATHS",
        &["commit-graph"],
        When::Set,
    ),
    variable(
        "GIT_TEST_BLOOM_SETTINGS_NUM_HASHES",
        &["commit-graph"],
        When::Set,
    ),
    variable(
        "GIT_TEST_CAT_FILE_NO_FLUSH_ON_EXIT",
        &["cat-file"],
        When::True,
    ),
    variable("GIT_TEST_FSYNC", ALL, When::True),
    variable("GIT_TEST_SPLIT_INDEX", INDEX_WRITERS, When::True),
    variable("GIT_TEST_UF_DELAY_WARNING", &["status"], When::True),
    variable("GIT_TRACE_FSMONITOR", ALL, When::Not(OFF)),
    variable("GIT_TRACE_PACKET", PROTOCOL, When::Not(OFF)),
    variable("GIT_TRACE_PACKFILE", PROTOCOL, When::Not(OFF)),
    variable("GIT_TRACE_PACK_ACCESS", ALL, When::Not(OFF)),
    variable("GIT_TRACE_REFS", ALL, When::Not(OFF)),
    variable("GIT_TRACE_SETUP", ALL, When::Not(OFF)),
    variable("GIT_TRACE_SHALLOW", PROTOCOL, When::Not(OFF)),
    variable("GIT_TRACE_WORKING_TREE_ENCODING", ALL, When::Not(OFF)),
    variable("GIT_USER_AGENT", PROTOCOL, When::Set),
];

/// The guarded sections: a call with an unknown variable of such a section is handed to git,
/// because the variable may protect the user.
pub static GUARDED: &[Guarded] = &[
    Guarded {
        section: "credential",
        commands: CLIENTS,
        known: &[
            "helper",
            "interactive",
            "protectprotocol",
            "sanitizeprompt",
            "usehttppath",
            "username",
        ],
    },
    Guarded {
        section: "http",
        commands: CLIENTS,
        known: &[
            "cookiefile",
            "curloptresolve",
            "delegation",
            "emptyauth",
            "extraheader",
            "followredirects",
            "getanyfile",
            "keepalivecount",
            "keepaliveidle",
            "keepaliveinterval",
            "lowspeedlimit",
            "lowspeedtime",
            "maxrequestbuffer",
            "maxrequests",
            "maxretries",
            "maxretrytime",
            "minsessions",
            "noepsv",
            "pinnedpubkey",
            "postbuffer",
            "proactiveauth",
            "proxy",
            "proxyauthmethod",
            "proxysslcainfo",
            "proxysslcert",
            "proxysslcertpasswordprotected",
            "proxysslkey",
            "receivepack",
            "retryafter",
            "savecookies",
            "schannelcheckrevoke",
            "schannelusesslcainfo",
            "sslbackend",
            "sslcainfo",
            "sslcapath",
            "sslcert",
            "sslcertpasswordprotected",
            "sslcerttype",
            "sslcipherlist",
            "sslkey",
            "sslkeytype",
            "ssltry",
            "sslverify",
            "sslversion",
            "uploadarchive",
            "uploadpack",
            "useragent",
            "version",
        ],
    },
    Guarded {
        section: "protocol",
        commands: &["clone", "fetch", "sync"],
        known: &["allow", "version"],
    },
    Guarded {
        section: "safe",
        commands: ALL,
        known: &["barerepository", "directory"],
    },
    Guarded {
        section: "sideband",
        commands: CLIENTS,
        known: &["allowcontrolcharacters"],
    },
    Guarded {
        section: "transfer",
        commands: PROTOCOL,
        known: &[
            "advertiseobjectinfo",
            "advertisesid",
            "bundleuri",
            "credentialsinurl",
            "fsckobjects",
            "hiderefs",
            "unpacklimit",
        ],
    },
];
