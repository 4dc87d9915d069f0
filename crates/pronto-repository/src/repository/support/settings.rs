//! The table of the configuration variables that some operations do not implement.

use super::operation::Operation::{self, *};
use super::row::{KeyForm, LackingRow, ValueCondition, row};

/// Operations that write files other than objects. Such files get the permissions of
/// `core.sharedRepository`.
const WRITERS_OF_SHARED_FILES: &[Operation] = &[WriteIndex, WriteRefs, CreateBundle, WriteTree];

/// Values of `core.sharedRepository` that do not share the repository with other users.
const PRIVATE: &[&str] = &["umask", "false", "no", "off", "0", ""];

/// Values of `core.fsmonitor` that do not name a hook.
const BOOLEANS: &[&str] = &["true", "yes", "on", "1", "false", "no", "off", "0", ""];

const BY_AN_OPTION: &str = "commits would differ from those of git";
const OTHER_SORTING: &str = "the refs would have another order";

/// The configuration variables, sorted by name.
#[rustfmt::skip]
pub static SETTINGS: &[LackingRow] = &[
    row("attr.tree", ValueCondition::NotEmpty, &[ReadAttributes], "attributes are read from a tree"),
    row("clone.filtersubmodules", ValueCondition::True, &[Clone], "submodules get the filter of the clone"),
    row("commit.gpgsign", ValueCondition::True, &[Commit], "commits are signed"),
    row("commit.template", ValueCondition::Set, &[Commit], BY_AN_OPTION),
    row("commitgraph.changedpathsversion", ValueCondition::Set, &[WriteCommitGraph], "commit-graphs have filters of another version"),
    row("core.commentchar", ValueCondition::Set, &[Commit], BY_AN_OPTION),
    row("core.commentstring", ValueCondition::Set, &[Commit], BY_AN_OPTION),
    row("core.fsmonitor", ValueCondition::Not(BOOLEANS), &[Add, UpdateIndex], "a hook says which files changed"),
    row("core.ignorestat", ValueCondition::True, &[RefreshIndex, CheckOutTree], "entries are assumed unchanged"),
    row("core.maxtreedepth", ValueCondition::Set, &[Read], "trees have a limit of depth"),
    row("core.prefersymlinkrefs", ValueCondition::True, &[WriteSymbolicRefs, Init], "symbolic refs are symbolic links"),
    row("core.sharedrepository", ValueCondition::Not(PRIVATE), WRITERS_OF_SHARED_FILES, "index, refs and reflogs are shared with other users"),
    row("credential.sanitizeprompt", ValueCondition::False, &[Connect], "prompts show control characters of addresses").in_place(KeyForm::Either),
    row("fetch.negotiationalgorithm", ValueCondition::Not(&["consecutive", "default", "noop", "skipping"]), &[FetchPack], "the algorithm is unknown"),
    row("fetch.uriprotocols", ValueCondition::NotEmpty, &[Connect], "packs are downloaded from other addresses"),
    row("gc.recentobjectshook", ValueCondition::NotEmpty, &[PackObjects], "a program names objects that are kept"),
    row("http.maxretries", ValueCondition::Not(&["0"]), &[Connect], "requests are repeated").in_place(KeyForm::Either),
    row("i18n.commitencoding", ValueCondition::Set, &[Commit], "commits have another encoding"),
    row("init.defaultobjectformat", ValueCondition::Not(&["sha1"]), &[Init], "new repositories have another hash function"),
    row("init.defaultsubmodulepathconfig", ValueCondition::True, &[Clone, Init], "new repositories have an extension"),
    row("pack.usepathwalk", ValueCondition::True, &[PackObjects], "objects are packed by their paths"),
    row("promisor.acceptfromserver", ValueCondition::Not(&["none"]), &[Connect], "servers name other remotes"),
    row("receive.maxinputsize", ValueCondition::Not(&["0"]), &[ServePeer], "received packs have a limit of size"),
    row("remote.followremotehead", ValueCondition::Not(&["always", "create", "never"]), &[Fetch], "a changed HEAD of the remote is reported").in_place(KeyForm::Subsection),
    row("remote.vcs", ValueCondition::NotEmpty, &[Connect], "a helper reaches the remote").in_place(KeyForm::Subsection),
    row("repack.midxmustcontaincruft", ValueCondition::False, &[Repack], "packs are left out of the multi-pack-index"),
    row("rerere.enabled", ValueCondition::True, &[Commit], "resolutions of conflicts are recorded"),
    row("sideband.allowcontrolcharacters", ValueCondition::Set, &[Connect], "messages of the server are filtered in another way").in_place(KeyForm::Either),
    row("submodule.stickyrecursiveclone", ValueCondition::True, &[Clone], "submodules are updated later"),
    row("transfer.credentialsinurl", ValueCondition::Not(&["allow"]), &[Connect], "passwords in addresses are refused or reported"),
    row("versionsort.prereleasesuffix", ValueCondition::Set, &[ListRemote], OTHER_SORTING),
    row("versionsort.suffix", ValueCondition::Set, &[ListRemote], OTHER_SORTING),
    row("worktree.userelativepaths", ValueCondition::True, &[Worktrees], "worktrees are linked by relative paths"),
];
