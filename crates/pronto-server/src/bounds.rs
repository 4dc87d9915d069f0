//! The table of inputs and their bounds in `docs/serve.md`, from the constants that hold.

use std::fmt::Display;

use pronto::upload_pack::{MOST_IDS, MOST_PREFIX_BYTES, MOST_PREFIXES};
use pronto_wire::archive::MOST_ARGUMENTS;
use pronto_wire::pktline::MAX_LINE;
use pronto_wire::receive::MOST_OPTION_BYTES;

use crate::admission::{FOR_ADMINISTRATORS, FOR_USERS, GRACE};
use crate::config::Limits;
use crate::service::native;
use crate::{authorization, command, daemon, http, names, ssh, users, work};

/// A row: an input, its bound, and whose setting it is.
struct Row {
    input: &'static str,
    bound: String,
    setting: &'static str,
}

fn row(input: &'static str, bound: impl Display, setting: &'static str) -> Row {
    Row {
        input,
        bound: bound.to_string(),
        setting,
    }
}

fn bytes(count: impl Display) -> String {
    format!("{count} bytes")
}

fn rows() -> Vec<Row> {
    let limits = Limits::default();
    [places(&limits), requests(&limits), contents(&limits)]
        .into_iter()
        .flatten()
        .collect()
}

fn seconds(time: std::time::Duration) -> String {
    format!("{} seconds", time.as_secs())
}

fn parts(part: usize) -> String {
    format!("{} of {part}", part - 1)
}

/// The places that requests take.
fn places(limits: &Limits) -> Vec<Row> {
    vec![
        row("connections", limits.connections, "`connections`"),
        row(
            "connections of an address",
            limits.connections_per_address,
            "`connections_per_address`",
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
    ]
}

/// The memory and the heads of requests.
fn requests(limits: &Limits) -> Vec<Row> {
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
            "body of a call of the interface for programs",
            bytes(http::api::LARGEST_BYTES),
            "",
        ),
        row(
            "body of a fetch, as sent and inflated",
            bytes(limits.fetch_bytes),
            "`fetch_bytes`",
        ),
        row(
            "body of a push, as sent and inflated",
            bytes(limits.push_bytes),
            "`push_bytes`",
        ),
    ]
}

/// The parts of requests, and the users.
fn contents(limits: &Limits) -> Vec<Row> {
    vec![
        row("packet", bytes(MAX_LINE), ""),
        row("prefixes of `ls-refs`", bytes(MOST_PREFIX_BYTES), ""),
        row(
            "number of prefixes, above which all refs are listed",
            MOST_PREFIXES,
            "",
        ),
        row("wants, haves and other ids of a fetch, each", MOST_IDS, ""),
        row("arguments of an archive", MOST_ARGUMENTS, ""),
        row(
            "commands of a push, or its certificate",
            bytes(limits.command_bytes),
            "`command_bytes`",
        ),
        row("push options", bytes(MOST_OPTION_BYTES), ""),
        row(
            "commit, tree or tag of a push",
            bytes(native::MOST_OBJECT_BYTES),
            "",
        ),
        row("users", users::MOST_USERS, ""),
        row("tokens of a user", users::MOST_TOKENS, ""),
        row("public keys of a user", users::MOST_KEYS, ""),
        row("line of a public key", bytes(users::LONGEST_KEY_BYTES), ""),
        row("file of users", bytes(users::LARGEST_BYTES), ""),
        row(
            "wrong tokens and failed logins of an address in a minute",
            limits.failures_per_minute,
            "`failures_per_minute`",
        ),
    ]
}

#[test]
fn the_document_has_the_bounds_that_hold() {
    let mut table = "| input | bound | setting |\n|---|---|---|\n".to_owned();
    for row in rows() {
        let Row {
            input,
            bound,
            setting,
        } = row;
        let setting = match setting {
            "" => "fixed",
            setting => setting,
        };
        table.push_str(&format!("| {input} | {bound} | {setting} |\n"));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let document = std::fs::read_to_string(path).expect("it is there");
    assert!(
        document.contains(&table),
        "docs/serve.md lacks this table:\n{table}"
    );
}
