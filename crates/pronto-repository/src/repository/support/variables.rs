//! The rows of environment variables.

use super::operation::Operation::{self, *};
use super::row::{Row, When, row};

/// Both sides of Git's protocol.
const PROTOCOL: &[Operation] = &[Connect, ReceivePackIntoView, UploadArchive, UploadPack];

/// Operations that select objects by all refs.
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

/// Environment variables, sorted. All begin with `GIT_`.
#[rustfmt::skip]
pub static VARIABLES: &[Row] = &[
    row("GIT_ALLOW_NULL_SHA1", When::True, &[RefreshIndex, CheckOutTree], "entries with the null id are written"),
    row("GIT_ATTR_SOURCE", When::NotEmpty, &[ReadAttributes], "attributes are read from a tree"),
    row("GIT_COMMIT_GRAPH_PARANOIA", When::True, &[Read], "commits of the commit-graph are looked up"),
    row("GIT_GLOB_PATHSPECS", When::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_HTTP_MAX_RETRIES", When::Not(&["0"]), &[Connect], "requests are repeated"),
    row("GIT_ICASE_PATHSPECS", When::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_LITERAL_PATHSPECS", When::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_NAMESPACE", When::NotEmpty, &[Clone, FetchPack, ManageRemotes], "refs are in a namespace"),
    row("GIT_NOGLOB_PATHSPECS", When::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_NO_LAZY_FETCH", When::True, &[Connect], "missing objects are not fetched"),
    row("GIT_OVERRIDE_VIRTUAL_HOST", When::NotEmpty, &[Connect], "the server is asked for another host"),
    row("GIT_QUARANTINE_PATH", When::Set, &[WriteRefs, ReceivePackIntoView], "refs are not changed while a push is checked"),
    row("GIT_REFERENCE_BACKEND", When::NotEmpty, &[Read], "refs are stored elsewhere"),
    row("GIT_REF_PARANOIA", When::False, SELECTING, "broken refs are ignored"),
    row("GIT_SMART_HTTP", When::False, &[Connect], OTHER_REQUESTS),
    row("GIT_USER_AGENT", When::Set, PROTOCOL, "the other side is given another name"),
];
