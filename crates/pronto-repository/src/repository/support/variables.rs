//! The table of the environment variables that some operations do not implement.

use super::operation::Operation::{self, *};
use super::row::{LackingRow, ValueCondition, row};

/// The operations of both sides of Git's protocol.
const PROTOCOL: &[Operation] = &[Connect, ReceivePackIntoView, UploadArchive, UploadPack];

/// Operations that select objects by reachability from all refs.
const SELECTING: &[Operation] = &[
    Clone,
    FetchPack,
    PackObjects,
    Push,
    ReceivePackIntoView,
    UploadPack,
];

const BY_PATHSPECS: &str = "pathspecs have another meaning";
const OTHER_REQUESTS: &str = "requests to web servers differ";

/// The environment variables, sorted by name. All names begin with `GIT_`.
#[rustfmt::skip]
pub static VARIABLES: &[LackingRow] = &[
    row("GIT_ALLOW_NULL_SHA1", ValueCondition::True, &[RefreshIndex, CheckOutTree], "entries with the null id are written"),
    row("GIT_ATTR_SOURCE", ValueCondition::NotEmpty, &[ReadAttributes], "attributes are read from a tree"),
    row("GIT_COMMIT_GRAPH_PARANOIA", ValueCondition::True, &[Read], "commits of the commit-graph are looked up"),
    row("GIT_GLOB_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_HTTP_MAX_RETRIES", ValueCondition::Not(&["0"]), &[Connect], "requests are repeated"),
    row("GIT_ICASE_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_LITERAL_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_NAMESPACE", ValueCondition::NotEmpty, &[Clone, FetchPack, ManageRemotes], "refs are in a namespace"),
    row("GIT_NOGLOB_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_NO_LAZY_FETCH", ValueCondition::True, &[Connect], "missing objects are not fetched"),
    row("GIT_OVERRIDE_VIRTUAL_HOST", ValueCondition::NotEmpty, &[Connect], "the server is asked for another host"),
    row("GIT_QUARANTINE_PATH", ValueCondition::Set, &[WriteRefs, ReceivePackIntoView], "refs are not changed while a push is checked"),
    row("GIT_REFERENCE_BACKEND", ValueCondition::NotEmpty, &[Read], "refs are stored elsewhere"),
    row("GIT_REF_PARANOIA", ValueCondition::False, SELECTING, "broken refs are ignored"),
    row("GIT_SMART_HTTP", ValueCondition::False, &[Connect], OTHER_REQUESTS),
    row("GIT_USER_AGENT", ValueCondition::Set, PROTOCOL, "the other side is given another name"),
];
