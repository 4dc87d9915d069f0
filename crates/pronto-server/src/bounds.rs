//! The table of inputs and their bounds in `docs/serve.md`, generated from the constants in effect.

mod constants;

use std::fmt::Display;

use pronto::upload_pack::{MOST_IDS, MOST_PREFIX_BYTES, MOST_PREFIXES};
use pronto_wire::archive::MOST_ARGUMENTS;
use pronto_wire::pktline::MAX_LINE;
use pronto_wire::receive::MOST_OPTION_BYTES;

use pronto_netsync::frame::{MAX_FRAME_BYTES, MAX_SKIPPED_BYTES};
use pronto_netsync::message::{
    MAX_GLOBS, MAX_HELD, MAX_IDENTITY_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_VERSIONS,
};
use pronto_netsync::reconcile::{self, MAX_VALUE_BYTES};
use pronto_netsync::session::GREETING_BYTES;
use pronto_peer::server::{
    MOST_DELTA_BYTES, MOST_OBJECT_BYTES, MOST_PARENTS, MOST_PARENTS_OF_ALL, MOST_SEGMENT_BYTES,
    MOST_SEGMENT_OBJECTS,
};

use crate::admission::{FOR_ADMINISTRATORS, FOR_USERS, GRACE};
use crate::config::{NetsyncConfig, ServerLimits};
use crate::service::native;
use crate::{authorization, command, connection, daemon, http, names, ssh, users, work};

/// A row: an input, its bound, and the setting that changes the bound.
struct BoundRow {
    input: &'static str,
    bound: String,
    setting: &'static str,
    /// The largest memory in MiB, and the largest processor time in seconds, that one request uses
    /// for the input.
    cost: Option<(u64, u64)>,
}

impl BoundRow {
    /// Sets the cost of the input for one request. The rows `inputs` of the attack suite measure
    /// this cost.
    fn costs(mut self, mebibytes: u64, seconds: u64) -> Self {
        self.cost = Some((mebibytes, seconds));
        self
    }
}

fn row(input: &'static str, bound: impl Display, setting: &'static str) -> BoundRow {
    BoundRow {
        input,
        bound: bound.to_string(),
        setting,
        cost: None,
    }
}

fn bytes(count: impl Display) -> String {
    format!("{count} bytes")
}

fn rows() -> Vec<BoundRow> {
    let limits = ServerLimits::default();
    // The pattern names each field, so that a new limit needs a row here.
    let ServerLimits {
        connections: _,
        connections_per_address: _,
        requests: _,
        requests_per_user: _,
        queue: _,
        memory_bytes: _,
        command_bytes: _,
        head_bytes: _,
        fetch_bytes: _,
        push_bytes: _,
        head: _,
        login: _,
        idle: _,
        wait: _,
        stall: _,
        request: _,
        // Not a bound for clients: the operator sets it for the end of the server.
        drain: _,
        failures_per_minute: _,
    } = &limits;
    let all = [
        places(&limits),
        requests(&limits),
        contents(&limits),
        sessions(),
    ];
    all.into_iter().flatten().collect()
}

fn seconds(time: std::time::Duration) -> String {
    format!("{} seconds", time.as_secs())
}

fn parts(part: usize) -> String {
    format!("{} of {part}", part - 1)
}

/// Returns the rows about connections, slots and queue entries.
fn places(limits: &ServerLimits) -> Vec<BoundRow> {
    vec![
        row("connections", limits.connections, "`connections`"),
        row(
            "connections of an address",
            limits.connections_per_address,
            "`connections_per_address`",
        ),
        row(
            "wait for the head of a request, or a handshake",
            seconds(limits.head),
            "`head_seconds`",
        ),
        row(
            "wait for a login over SSH and its first request",
            seconds(limits.login),
            "`login_seconds`",
        ),
        row(
            "wait for the next request of a connection",
            seconds(limits.idle),
            "`idle_seconds`",
        ),
        row(
            "refused logins of a connection of SSH",
            ssh::MOST_ATTEMPTS,
            "",
        ),
        row(
            "requests at once of a connection of HTTP/2",
            connection::MOST_STREAMS,
            "",
        ),
        row("requests at once", limits.requests, "`requests`"),
        row(
            "of these, those of a user, or of an address without a user",
            limits.requests_per_user,
            "`user_share`",
        ),
        row("of these, those without a user", parts(FOR_USERS), ""),
        row(
            "of these, those of users who do not manage the server",
            parts(FOR_ADMINISTRATORS),
            "",
        ),
        row(
            "requests that wait, with the same parts",
            limits.queue,
            "`queue`",
        ),
        row("wait for a slot", seconds(limits.wait), "`wait_seconds`"),
        row(
            "wait for a client without progress",
            seconds(limits.stall),
            "`stall_seconds`",
        ),
        row("the same, while others wait for a slot", seconds(GRACE), ""),
        row(
            "time of a request",
            seconds(limits.request),
            "`request_seconds`",
        ),
    ]
}

/// Returns the rows about the memory and the heads of requests.
fn requests(limits: &ServerLimits) -> Vec<BoundRow> {
    vec![
        row(
            "memory for arguments, commands and certificates of all requests",
            bytes(limits.memory_bytes),
            "`memory_bytes`",
        ),
        row(
            "of this, that of a user, or of an address without a user",
            "1 of 2",
            "",
        ),
        row(
            "of this, that of clients without a user",
            parts(FOR_USERS),
            "",
        ),
        row(
            "head of a request of HTTP",
            bytes(limits.head_bytes),
            "`head_bytes`",
        ),
        row("headers of a request", connection::MOST_HEADERS, ""),
        row(
            "header `Authorization`",
            bytes(authorization::LONGEST_BYTES),
            "",
        ),
        row(
            "header `Git-Protocol`, variable `GIT_PROTOCOL`",
            bytes(work::LONGEST_PROTOCOL),
            "",
        ),
        row("request of `git://`", bytes(daemon::LONGEST_BYTES), ""),
        row("command of SSH", bytes(command::LONGEST_BYTES), ""),
        row(
            "channels of a connection of SSH",
            ssh::link::MOST_CHANNELS,
            "",
        ),
        row("name of a repository", bytes(names::LONGEST_BYTES), ""),
        row(
            "components of the name of a repository",
            names::MOST_COMPONENTS,
            "",
        ),
        row(
            "body of a call of the interface for programs",
            bytes(http::api::LARGEST_BYTES),
            "",
        ),
        row(
            "body of a fetch, as sent and inflated",
            bytes(limits.fetch_bytes),
            "`fetch_bytes`",
        )
        .costs(32, 5),
        row(
            "body of a push, as sent and inflated",
            bytes(limits.push_bytes),
            "`push_bytes`",
        )
        .costs(64, 5),
    ]
}

/// Returns the rows about the parts of requests, and about users.
fn contents(limits: &ServerLimits) -> Vec<BoundRow> {
    vec![
        row("packet", bytes(MAX_LINE), ""),
        row("prefixes of `ls-refs`", bytes(MOST_PREFIX_BYTES), "").costs(32, 5),
        row(
            "number of prefixes, above which all refs are listed",
            MOST_PREFIXES,
            "",
        )
        .costs(32, 5),
        row("wants, haves and other ids of a fetch, each", MOST_IDS, ""),
        row("arguments of an archive", MOST_ARGUMENTS, ""),
        row(
            "commands of a push, or its certificate",
            bytes(limits.command_bytes),
            "`command_bytes`",
        )
        .costs(128, 20),
        row("push options", bytes(MOST_OPTION_BYTES), "").costs(32, 5),
        row(
            "commit, tree or tag of a push",
            bytes(native::MOST_OBJECT_BYTES),
            "",
        )
        .costs(128, 5),
        row("tokens of a user", users::MOST_TOKENS, ""),
        row("public keys of a user", users::MOST_KEYS, ""),
        row("line of a public key", bytes(users::LONGEST_KEY_BYTES), ""),
        row("users", users::MOST_USERS, "").costs(96, 5),
        row("file of users", bytes(users::LARGEST_BYTES), ""),
        row(
            "text about a user in the file of users",
            bytes(users::text::LARGEST_USER_BYTES),
            "",
        ),
        row(
            "wrong tokens and failed logins of an address in a minute",
            limits.failures_per_minute,
            "`failures_per_minute`",
        ),
    ]
}

/// Returns the rows about the frames of netsync and their content.
fn sessions() -> Vec<BoundRow> {
    let differences = reconcile::Options::default();
    vec![
        row(
            "memory of all sessions of netsync",
            bytes(NetsyncConfig::default().memory_bytes),
            "`memory_bytes` of `[netsync]`",
        ),
        row("greeting of netsync", bytes(GREETING_BYTES), ""),
        row("versions in a greeting", MAX_VERSIONS, ""),
        row("globs in a greeting, of each kind", MAX_GLOBS, ""),
        row(
            "identity of a repository in a greeting",
            bytes(MAX_IDENTITY_BYTES),
            "",
        ),
        row("name or glob in netsync", bytes(MAX_NAME_BYTES), ""),
        row("frame of netsync", bytes(MAX_FRAME_BYTES), ""),
        row(
            "frames of unknown types of a session",
            bytes(MAX_SKIPPED_BYTES),
            "",
        ),
        row("text of an error of a peer", bytes(MAX_TEXT_BYTES), ""),
        row(
            "refs of a peer that differ, in memory",
            bytes(differences.learned_bytes),
            "",
        )
        .costs(64, 5),
        row("ids of a ref of a peer", bytes(MAX_VALUE_BYTES), ""),
        row(
            "messages about refs, and about commits, of a session",
            differences.turns,
            "",
        ),
        row("commits without a ref that a peer names", MAX_HELD, ""),
        row("segment of netsync", bytes(MOST_SEGMENT_BYTES), "").costs(64, 20),
        row("objects of a segment", MOST_SEGMENT_OBJECTS, ""),
        row(
            "object of a segment, but for blobs alone, and delta",
            bytes(MOST_OBJECT_BYTES),
            "",
        )
        .costs(64, 5),
        row(
            "blob from a delta in a segment",
            bytes(MOST_DELTA_BYTES),
            "",
        )
        .costs(160, 20),
        row("parents of a commit in a segment", MOST_PARENTS, ""),
        row(
            "parents of all commits of a segment",
            MOST_PARENTS_OF_ALL,
            "",
        )
        .costs(128, 20),
    ]
}

#[test]
fn the_document_has_the_bounds_that_hold() {
    let mut table =
        "| input | bound | setting | memory of a request | its processor time |\n|---|---|---|---|---|\n"
            .to_owned();
    for row in rows() {
        let BoundRow {
            input,
            bound,
            setting,
            cost,
        } = row;
        let setting = match setting {
            "" => "fixed",
            setting => setting,
        };
        let cost = match cost {
            Some((mebibytes, seconds)) => format!("{mebibytes} MiB | {seconds} s"),
            None => " | ".to_owned(),
        };
        table.push_str(&format!("| {input} | {bound} | {setting} | {cost} |\n"));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let document = std::fs::read_to_string(path).expect("it is there");
    assert!(
        document.contains(&table),
        "docs/serve.md lacks this table:\n{table}"
    );
}
