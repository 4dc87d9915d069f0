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

const BY_PATHSPECS: &str = "it changes the meaning of pathspecs";
const OTHER_REQUESTS: &str = "git would use the dumb HTTP protocol";

/// The environment variables, sorted by name. All names begin with `GIT_`.
#[rustfmt::skip]
pub static VARIABLES: &[LackingRow] = &[
    row("GIT_ALLOW_NULL_SHA1", ValueCondition::True, &[RefreshIndex, CheckOutTree],
        "it allows index entries with the null object id"),
    row("GIT_ATTR_SOURCE", ValueCondition::Set, &[ReadAttributes], "git would read attributes from a tree"),
    row("GIT_COMMIT_GRAPH_PARANOIA", ValueCondition::True, &[Read],
        "git would check that commits of the commit-graph exist"),
    row("GIT_GLOB_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_HTTP_MAX_RETRIES", ValueCondition::Not(&["0"]), &[Connect], "git would retry HTTP requests"),
    row("GIT_ICASE_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_LITERAL_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_NAMESPACE", ValueCondition::NotEmpty, &[Clone, FetchPack, ManageRemotes],
        "it selects a namespace of refs"),
    row("GIT_NOGLOB_PATHSPECS", ValueCondition::True, &[CheckIgnore, ListTree], BY_PATHSPECS),
    row("GIT_NO_LAZY_FETCH", ValueCondition::True, &[Connect], "it forbids fetching missing objects"),
    row("GIT_OVERRIDE_VIRTUAL_HOST", ValueCondition::NotEmpty, &[Connect],
        "it changes the host name that git sends to the server"),
    row("GIT_QUARANTINE_PATH", ValueCondition::Set, &[WriteRefs, ReceivePackIntoView],
        "it forbids ref updates while a push is checked"),
    row("GIT_REFERENCE_BACKEND", ValueCondition::NotEmpty, &[Read], "it selects another ref storage"),
    row("GIT_REF_PARANOIA", ValueCondition::False, SELECTING, "git would ignore broken refs"),
    row("GIT_SMART_HTTP", ValueCondition::False, &[Connect], OTHER_REQUESTS),
    row("GIT_USER_AGENT", ValueCondition::Set, PROTOCOL, "it changes the agent name that git sends to the other side"),
];
