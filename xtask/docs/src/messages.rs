//! Generates the page about messages: those of the commands that only pronto has, and of the server.
//!
//! The page is made from the syntax of the source, not from its types. A message is listed if it is a
//! literal or a `format!`, directly or through a variable of the same function, at a call that creates
//! an error.

mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use syntax::{MessageRow, Messages};

/// The parts of the page: the title, and the files and directories with the source.
const PARTS: [(&str, &[&str]); 5] = [
    (
        "Commands",
        &[
            "crates/pronto-cli/src/programs.rs",
            "crates/pronto-cli/src/commands/netsync.rs",
            "crates/pronto-cli/src/commands/peers.rs",
            "crates/pronto-cli/src/commands/pull.rs",
            "crates/pronto-cli/src/commands/serve.rs",
            "crates/pronto-cli/src/commands/serve",
            "crates/pronto-cli/src/commands/shell.rs",
            "crates/pronto-cli/src/commands/store.rs",
            "crates/pronto-cli/src/commands/store",
            "crates/pronto-cli/src/commands/sync.rs",
            "crates/pronto-cli/src/commands/sync",
        ],
    ),
    ("Stores", &["crates/pronto-store/src"]),
    ("Server", &["crates/pronto-server/src"]),
    ("Peers", &["crates/pronto-peer/src"]),
    ("Protocol of netsync", &["crates/pronto-netsync/src"]),
];

const INTRODUCTION: &str = "# Messages\n\n\
    This page is generated from the source by `cargo xtask docs`. It lists the messages of the commands that only\n\
    pronto has (`netsync`, `pull --netsync`, `serve`, `shell`, `store`, `sync`) and of the server, in the order of\n\
    the alphabet. `<…>` is a value, such as a path. A message may be followed by the file that it is about, and by\n\
    its cause. The page has no message that the source computes in another way, or that comes from a part that git\n\
    commands use, too. The last column has the hint, which is printed below the message.\n";

/// Formats the page.
pub(super) fn page(root: &Path) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (title, places) in PARTS {
        let mut files = Vec::new();
        for place in places {
            collect(&root.join(place), &mut files);
        }
        let mut messages = Messages::default();
        let sources: Vec<syn::File> = files.iter().filter_map(|file| parse(file)).collect();
        for source in &sources {
            messages.learn(source);
        }
        for source in &sources {
            messages.read(source);
        }
        part(title, &messages, &mut page);
    }
    page
}

/// Appends the files with source in `place`, sorted by path. Modules of tests are left out.
fn collect(place: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(place) else {
        if place.extension().is_some_and(|extension| extension == "rs") {
            files.push(place.to_owned());
        }
        return;
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default();
        if name != "tests" && name != "simulation" {
            collect(&path, files);
        }
    }
}

fn parse(path: &Path) -> Option<syn::File> {
    syn::parse_file(&std::fs::read_to_string(path).ok()?).ok()
}

fn part(title: &str, messages: &Messages, page: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(page, "\n## {title}\n");
    let used: BTreeSet<&str> = messages.rows().map(|row| row.kind.as_str()).collect();
    let known = messages.kinds.iter();
    let known: Vec<_> = known
        .filter(|(kind, _)| used.contains(kind.as_str()))
        .collect();
    if !known.is_empty() {
        page.push_str("\n| kind | meaning |\n|---|---|\n");
        for (kind, meaning) in known {
            let _ = writeln!(page, "| `{kind}` | {} |", escaped(meaning));
        }
    }
    page.push_str("\n| message | kind | what to do |\n|---|---|---|\n");
    let mut rows: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for MessageRow { text, kind, hints } in messages.rows() {
        let (kinds, all) = rows.entry(text).or_default();
        kinds.insert(kind);
        all.extend(hints.iter().map(String::as_str));
    }
    for (text, (kinds, hints)) in rows {
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let hints: Vec<String> = hints.iter().map(|hint| escaped(hint)).collect();
        let (kinds, hints) = (kinds.join(", "), hints.join("<br>"));
        let _ = writeln!(page, "| {} | {kinds} | {hints} |", escaped(text));
    }
}

/// Escapes the characters that have a meaning in a table.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|");
    let text = text.replace('*', "\\*").replace('_', "\\_");
    text.replace('<', "&lt;").replace('\n', "<br>")
}
