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

const BY_AN_OPTION: &str = "it changes the commits that git writes";
const OTHER_SORTING: &str = "git would sort refs in another order";

/// The configuration variables, sorted by name.
#[rustfmt::skip]
pub static SETTINGS: &[LackingRow] = &[
    row("attr.tree", ValueCondition::NotEmpty, &[ReadAttributes], "git would read attributes from a tree"),
    row("clone.filtersubmodules", ValueCondition::True, &[Clone], "git would use the filter for submodules, too"),
    row("commit.gpgsign", ValueCondition::True, &[Commit], "git would sign commits"),
    row("commit.template", ValueCondition::Set, &[Commit], BY_AN_OPTION),
    row("commitgraph.changedpathsversion", ValueCondition::Set, &[WriteCommitGraph],
        "it selects another version of the Bloom filters"),
    row("core.commentchar", ValueCondition::Set, &[Commit], BY_AN_OPTION),
    row("core.commentstring", ValueCondition::Set, &[Commit], BY_AN_OPTION),
    row("core.fsmonitor", ValueCondition::Not(BOOLEANS), &[Add, UpdateIndex],
        "git would ask a hook which files changed"),
    row("core.ignorestat", ValueCondition::True, &[RefreshIndex, CheckOutTree],
        "git would mark index entries as assumed unchanged"),
    row("core.maxtreedepth", ValueCondition::Set, &[Read], "it limits the depth of trees"),
    row("core.prefersymlinkrefs", ValueCondition::True, &[WriteSymbolicRefs, Init], "git would write symbolic links"),
    row("core.sharedrepository", ValueCondition::Not(PRIVATE), WRITERS_OF_SHARED_FILES,
        "git would share index, refs and reflogs with other users"),
    row("credential.sanitizeprompt", ValueCondition::False, &[Connect],
        "it allows control characters in credential prompts").in_place(KeyForm::Either),
    row("fetch.negotiationalgorithm", ValueCondition::Not(&["consecutive", "default", "noop", "skipping"]), &[FetchPack],
        "pronto does not know this algorithm"),
    row("fetch.uriprotocols", ValueCondition::NotEmpty, &[Connect], "git would download packs from other URLs"),
    row("gc.recentobjectshook", ValueCondition::NotEmpty, &[PackObjects],
        "git would run a program that names objects to keep"),
    row("http.maxretries", ValueCondition::Not(&["0"]), &[Connect],
        "git would retry HTTP requests").in_place(KeyForm::Either),
    row("i18n.commitencoding", ValueCondition::Set, &[Commit], "git would write commits in another encoding"),
    row("init.defaultobjectformat", ValueCondition::Not(&["sha1"]), &[Init],
        "it selects another object format for new repositories"),
    row("init.defaultsubmodulepathconfig", ValueCondition::True, &[Clone, Init],
        "it adds an extension to new repositories"),
    row("pack.usepathwalk", ValueCondition::True, &[PackObjects], "git would pack objects by path"),
    row("promisor.acceptfromserver", ValueCondition::Not(&["none"]), &[Connect],
        "it lets servers add promisor remotes"),
    row("receive.maxinputsize", ValueCondition::Not(&["0"]), &[ServePeer], "it limits the size of received packs"),
    row("remote.followremotehead", ValueCondition::Not(&["always", "create", "never"]), &[Fetch],
        "git would report a changed HEAD of the remote").in_place(KeyForm::Subsection),
    row("remote.vcs", ValueCondition::NotEmpty, &[Connect],
        "git would run a remote helper").in_place(KeyForm::Subsection),
    row("repack.midxmustcontaincruft", ValueCondition::False, &[Repack],
        "git would leave cruft packs out of the index"),
    row("rerere.enabled", ValueCondition::True, &[Commit], "git would record conflict resolutions"),
    row("sideband.allowcontrolcharacters", ValueCondition::Set, &[Connect],
        "it changes how git filters messages of the server").in_place(KeyForm::Either),
    row("submodule.stickyrecursiveclone", ValueCondition::True, &[Clone],
        "it makes later commands recurse into submodules"),
    row("transfer.credentialsinurl", ValueCondition::Not(&["allow"]), &[Connect],
        "git would warn about or refuse passwords in URLs"),
    row("versionsort.prereleasesuffix", ValueCondition::Set, &[ListRemote], OTHER_SORTING),
    row("versionsort.suffix", ValueCondition::Set, &[ListRemote], OTHER_SORTING),
    row("worktree.userelativepaths", ValueCondition::True, &[Worktrees],
        "git would link worktrees with relative paths"),
];
