//! The rows of configured variables.

use super::operation::Operation::{self, *};
use super::row::{Place, Row, When, row};

/// Writers of files other than objects, which get the permissions of `core.sharedRepository`.
const WRITERS_OF_SHARED_FILES: &[Operation] = &[WriteIndex, WriteRefs, CreateBundle, WriteTree];

/// Values of `core.sharedRepository` that do not share.
const PRIVATE: &[&str] = &["umask", "false", "no", "off", "0", ""];

/// Values of `core.fsmonitor` that do not name a hook.
const BOOLEANS: &[&str] = &["true", "yes", "on", "1", "false", "no", "off", "0", ""];

const BY_AN_OPTION: &str = "commits would differ from those of git";
const OTHER_SORTING: &str = "the refs would have another order";

/// Configured variables, sorted.
#[rustfmt::skip]
pub static SETTINGS: &[Row] = &[
    row("attr.tree", When::NotEmpty, &[ReadAttributes], "attributes are read from a tree"),
    row("clone.filtersubmodules", When::True, &[Clone], "submodules get the filter of the clone"),
    row("commit.gpgsign", When::True, &[Commit], "commits are signed"),
    row("commit.template", When::Set, &[Commit], BY_AN_OPTION),
    row("commitgraph.changedpathsversion", When::Set, &[WriteCommitGraph], "commit-graphs have filters of another version"),
    row("core.commentchar", When::Set, &[Commit], BY_AN_OPTION),
    row("core.commentstring", When::Set, &[Commit], BY_AN_OPTION),
    row("core.fsmonitor", When::Not(BOOLEANS), &[Add, UpdateIndex], "a hook says which files changed"),
    row("core.ignorestat", When::True, &[RefreshIndex, CheckOutTree], "entries are assumed unchanged"),
    row("core.maxtreedepth", When::Set, &[Read], "trees have a limit of depth"),
    row("core.prefersymlinkrefs", When::True, &[WriteSymbolicRefs, Init], "symbolic refs are symbolic links"),
    row("core.sharedrepository", When::Not(PRIVATE), WRITERS_OF_SHARED_FILES, "index, refs and reflogs are shared with other users"),
    row("credential.sanitizeprompt", When::False, &[Connect], "prompts show control characters of addresses").in_place(Place::Either),
    row("fetch.negotiationalgorithm", When::Not(&["consecutive", "default", "noop", "skipping"]), &[FetchPack], "the algorithm is unknown"),
    row("fetch.uriprotocols", When::NotEmpty, &[Connect], "packs are downloaded from other addresses"),
    row("gc.recentobjectshook", When::NotEmpty, &[PackObjects], "a program names objects that are kept"),
    row("http.maxretries", When::Not(&["0"]), &[Connect], "requests are repeated").in_place(Place::Either),
    row("i18n.commitencoding", When::Set, &[Commit], "commits have another encoding"),
    row("init.defaultobjectformat", When::Not(&["sha1"]), &[Init], "new repositories have another hash function"),
    row("init.defaultsubmodulepathconfig", When::True, &[Clone, Init], "new repositories have an extension"),
    row("pack.usepathwalk", When::True, &[PackObjects], "objects are packed by their paths"),
    row("promisor.acceptfromserver", When::Not(&["none"]), &[Connect], "servers name other remotes"),
    row("receive.maxinputsize", When::Not(&["0"]), &[ServePeer], "received packs have a limit of size"),
    row("remote.followremotehead", When::Not(&["always", "create", "never"]), &[Fetch], "a changed HEAD of the remote is reported").in_place(Place::Subsection),
    row("remote.vcs", When::NotEmpty, &[Connect], "a helper reaches the remote").in_place(Place::Subsection),
    row("repack.midxmustcontaincruft", When::False, &[Repack], "packs are left out of the multi-pack-index"),
    row("rerere.enabled", When::True, &[Commit], "resolutions of conflicts are recorded"),
    row("sideband.allowcontrolcharacters", When::Set, &[Connect], "messages of the server are filtered in another way").in_place(Place::Either),
    row("submodule.stickyrecursiveclone", When::True, &[Clone], "submodules are updated later"),
    row("transfer.credentialsinurl", When::Not(&["allow"]), &[Connect], "passwords in addresses are refused or reported"),
    row("versionsort.prereleasesuffix", When::Set, &[ListRemote], OTHER_SORTING),
    row("versionsort.suffix", When::Set, &[ListRemote], OTHER_SORTING),
    row("worktree.userelativepaths", When::True, &[Worktrees], "worktrees are linked by relative paths"),
];
