//! Tests that each constant and limit of the code is in the table of bounds, or bounds no input.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The limits of sessions with peers: the names of their fields, and the reasons of those that need
/// no row.
const SESSION_LIMITS: &[(&str, &str, &str)] = &[
    (
        "pronto-peer/src/server.rs",
        "PeerLimits",
        "connections sessions_per_peer memory_bytes handshake idle waiting session: follow from the rows of the server. \
         slow turn: times after which others that wait get a place",
    ),
    (
        "pronto-netsync/src/reconcile/engine.rs",
        "Options",
        "message_bytes: of answers. list_below: a way of asking. turns learned_bytes: rows. keeps_learned: no number",
    ),
];

/// Returns the fields of a struct in a source.
fn fields<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("pub struct {name} {{");
    let (_, rest) = text.split_once(&start).expect("it has the struct");
    let (fields, _) = rest.split_once("\n}").expect("the struct ends");
    let lines = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "));
    lines.filter_map(|line| line.split(':').next()).collect()
}

#[test]
fn each_limit_of_a_session_is_known() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (file, name, known) in SESSION_LIMITS {
        let text = std::fs::read_to_string(crates.join(file)).expect("it is there");
        let fields = fields(&text, name);
        assert!(!fields.is_empty(), "{file} has no fields of {name}");
        let words: Vec<&str> = known.split([' ', ':']).collect();
        for field in fields {
            assert!(
                words.contains(&field),
                "no row of the table, and not in SESSION_LIMITS: {field} of {name} in {file}"
            );
        }
    }
}

/// The constants that bound something other than an input of a client: the file below `crates`, the
/// name, and the bounded quantity.
const NO_INPUTS: &[(&str, &str, &str)] = &[
    (
        "pronto-server/src/admission.rs",
        "MOST_COUNTED",
        "addresses that are remembered",
    ),
    (
        "pronto-transfer/src/receive_pack/changes.rs",
        "MOST_REFS",
        "refs of one transaction",
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
        "pronto-netsync/src/frame.rs",
        "MAX_BODY_BYTES",
        "a frame, which has a row",
    ),
    (
        "pronto-netsync/src/frame.rs",
        "DEFAULT_WINDOW_BYTES",
        "bytes on their way; the reader holds two frames",
    ),
    (
        "pronto-netsync/src/reconcile.rs",
        "MAX_KEY_BYTES",
        "the name of a ref, which has a row",
    ),
    (
        "pronto-netsync/src/session/conversation.rs",
        "MAX_WAITING",
        "answers that wait",
    ),
    (
        "pronto-netsync/src/session/conversation.rs",
        "MAX_WAITING_BYTES",
        "answers that wait",
    ),
    (
        "pronto-netsync/src/session/conversation.rs",
        "PUBLISH_BYTES",
        "a frame that is sent",
    ),
    (
        "pronto-netsync/src/session/send.rs",
        "MAX_UNCONFIRMED",
        "segments that are sent",
    ),
    (
        "pronto-peer/src/connect.rs",
        "MOST_TAGS",
        "a way of looking",
    ),
    (
        "pronto-peer/src/incoming/segment.rs",
        "MOST_THREADS",
        "threads of this side",
    ),
    (
        "pronto-peer/src/meet.rs",
        "MOST_ADDRESSES",
        "addresses of the operator",
    ),
    (
        "pronto-peer/src/names.rs",
        "MAX_PEER_BYTES",
        "a name of the operator",
    ),
    (
        "pronto-peer/src/names.rs",
        "LONGEST_COMPONENT",
        "a ref that is refused by itself",
    ),
    (
        "pronto-peer/src/outgoing.rs",
        "MOST_BYTES",
        "a segment that is sent",
    ),
    (
        "pronto-peer/src/server/unauthenticated.rs",
        "MOST",
        "peers in the handshake, of which the oldest makes room",
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

/// The paths below `crates` of the code that reads data of clients.
const READERS: &[&str] = &[
    "pronto-netsync/src",
    "pronto-peer/src",
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
        let starts = ["MAX_", "MOST_", "LONGEST_", "LARGEST_"];
        // Constants with other names that bound data of peers.
        let others = [
            "MOST",
            "GREETING_BYTES",
            "PUBLISH_BYTES",
            "DEFAULT_WINDOW_BYTES",
        ];
        let is_bound = starts.iter().any(|start| name.starts_with(start)) || others.contains(&name);
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
    // An import is not a row.
    let (_, own) = include_str!("../bounds.rs")
        .split_once("struct BoundRow {")
        .expect("it has rows");
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
                    // The names of these constants are unique, and imported.
                    format!("({constant})"),
                    format!(" {constant},"),
                    format!(" {constant},\n"),
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
