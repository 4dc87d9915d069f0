//! The table of inputs and their bounds in `docs/serve.md`, from the constants that hold.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use pronto::upload_pack::{MOST_IDS, MOST_PREFIX_BYTES, MOST_PREFIXES};
use pronto_wire::archive::MOST_ARGUMENTS;
use pronto_wire::pktline::MAX_LINE;
use pronto_wire::receive::MOST_OPTION_BYTES;

use crate::admission::{FOR_ADMINISTRATORS, FOR_USERS, GRACE};
use crate::config::Limits;
use crate::service::native;
use crate::{authorization, command, connection, daemon, http, names, ssh, users, work};

/// A row: an input, its bound, and whose setting it is.
struct Row {
    input: &'static str,
    bound: String,
    setting: &'static str,
    /// The most memory in MiB, and the most processor time in seconds, that one request takes for the input.
    cost: Option<(u64, u64)>,
}

impl Row {
    /// States what one request takes for the input. The rows `inputs` of the attack suite measure it.
    fn costs(mut self, mebibytes: u64, seconds: u64) -> Self {
        self.cost = Some((mebibytes, seconds));
        self
    }
}

fn row(input: &'static str, bound: impl Display, setting: &'static str) -> Row {
    Row {
        input,
        bound: bound.to_string(),
        setting,
        cost: None,
    }
}

fn bytes(count: impl Display) -> String {
    format!("{count} bytes")
}

fn rows() -> Vec<Row> {
    let limits = Limits::default();
    // A new limit needs a row.
    let Limits {
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
        // The operator's, when the server ends.
        drain: _,
        failures_per_minute: _,
    } = &limits;
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

/// The parts of requests, and the users.
fn contents(limits: &Limits) -> Vec<Row> {
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

/// Constants that bound something, but no input of a client: the file below `crates`, the name, and what it bounds.
const NO_INPUTS: &[(&str, &str, &str)] = &[
    (
        "pronto-server/src/admission.rs",
        "MOST_COUNTED",
        "addresses that are remembered",
    ),
    (
        "pronto-server/src/bundles.rs",
        "MOST_HEADER_BYTES",
        "headers that are kept",
    ),
    (
        "pronto-server/src/config.rs",
        "LARGEST_BYTES",
        "a file of the operator",
    ),
    (
        "pronto-server/src/keys.rs",
        "LARGEST_RSA",
        "the bits of a key, whose line is bounded",
    ),
    (
        "pronto-server/src/keys.rs",
        "LONGEST_BYTES",
        "a line of the operator; those of users are shorter",
    ),
    (
        "pronto-server/src/log.rs",
        "MOST_CHARACTERS",
        "text in the log",
    ),
    (
        "pronto-server/src/packs.rs",
        "MOST_MEMORY_BYTES",
        "packs that are kept",
    ),
    (
        "pronto-server/src/repositories.rs",
        "MOST_LISTED",
        "repositories of the operator",
    ),
    ("pronto-server/src/ssh.rs", "MOST_UNANSWERED", "a time"),
    (
        "pronto-server/src/ssh/host_key.rs",
        "LARGEST_BYTES",
        "a file of the operator",
    ),
    (
        "pronto-server/src/ssh/session.rs",
        "MOST_CHANNELS",
        "channels one after the other",
    ),
    (
        "pronto-server/src/store.rs",
        "MOST_COMMANDS",
        "processes of `pronto shell`",
    ),
    (
        "pronto-server/src/tls.rs",
        "LARGEST_BYTES",
        "a file of the operator",
    ),
    (
        "pronto-transfer/src/receive_pack/bands.rs",
        "MOST_WAITING_BYTES",
        "output of hooks",
    ),
    (
        "pronto-transfer/src/receive_pack/connected.rs",
        "MOST_COMMITS",
        "a way of looking",
    ),
    (
        "pronto-transfer/src/receive_pack/proc_receive.rs",
        "MOST_PACKETS",
        "the answer of a hook",
    ),
    (
        "pronto-transfer/src/receive_pack/unpack.rs",
        "MOST_MADE_BYTES",
        "blobs, which are not held in memory",
    ),
    (
        "pronto-transfer/src/upload_pack.rs",
        "LARGEST_REQUEST_BYTES",
        "requests of others than `serve`",
    ),
    (
        "pronto-transfer/src/upload_pack/hook.rs",
        "LONGEST_LINE",
        "the answer of a hook",
    ),
    (
        "pronto-transfer/src/upload_pack/packed.rs",
        "MOST_NEWER",
        "a way of looking",
    ),
    (
        "pronto-transfer/src/upload_pack/packed.rs",
        "MOST_REFS",
        "refs of the repository",
    ),
    (
        "pronto-wire/src/receive.rs",
        "MOST_REQUEST_BYTES",
        "commands of others than `serve`",
    ),
];

/// The places below `crates` that read what clients send.
const READERS: &[&str] = &[
    "pronto-server/src",
    "pronto-transfer/src/receive_pack",
    "pronto-transfer/src/receive_pack.rs",
    "pronto-transfer/src/upload_pack",
    "pronto-transfer/src/upload_pack.rs",
    "pronto-wire/src/archive.rs",
    "pronto-wire/src/receive.rs",
];

/// Returns the bounds in a file, by their names.
fn constants(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("const ")?;
        let (name, _) = rest.split_once(':')?;
        let starts = ["MOST_", "LONGEST_", "LARGEST_"];
        let is_bound = starts.iter().any(|start| name.starts_with(start));
        is_bound.then_some(name)
    })
}

/// Collects the files of Rust at a path.
fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        sources(&entry.path(), found);
    }
}

#[test]
fn each_bound_of_the_code_is_in_the_table() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = include_str!("bounds.rs");
    let mut unused: BTreeSet<_> = NO_INPUTS
        .iter()
        .map(|(file, name, _)| (*file, *name))
        .collect();
    let mut lacking = Vec::new();
    for reader in READERS {
        let mut files = Vec::new();
        sources(&crates.join(reader), &mut files);
        assert!(!files.is_empty(), "{reader} is not there");
        for file in files {
            let name = file
                .strip_prefix(&crates)
                .expect("it is below")
                .display()
                .to_string();
            let module = file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(&file).expect("it is there");
            for constant in constants(&text).filter(|_| module != "bounds") {
                let is_in_table = [
                    format!("{module}::{constant}"),
                    // These are unique, and imported by their names.
                    format!("({constant})"),
                    format!(" {constant},"),
                ];
                let is_known = is_in_table.iter().any(|text| own.contains(text.as_str()));
                let is_no_input = NO_INPUTS
                    .iter()
                    .any(|(file, known, _)| (*file, *known) == (&name, constant));
                unused.retain(|known| *known != (name.as_str(), constant));
                if !is_known && !is_no_input {
                    lacking.push(format!("{name}: {constant}"));
                }
            }
        }
    }
    assert!(
        lacking.is_empty(),
        "no row of the table, and not in NO_INPUTS: {lacking:?}"
    );
    assert!(unused.is_empty(), "there is no such constant: {unused:?}");
}

#[test]
fn the_document_has_the_bounds_that_hold() {
    let mut table =
        "| input | bound | setting | memory of a request | its processor time |\n|---|---|---|---|---|\n"
            .to_owned();
    for row in rows() {
        let Row {
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
