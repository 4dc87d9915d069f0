//! The commands that only pronto has, in bad conditions: wrong arguments, missing permissions,
//! servers that do not answer or speak another protocol, and signals.
//!
//! Each test runs the program and compares the exit codes and all text with a file of this directory.
//! `PRONTO_TEST_OWN_COMMANDS=write` writes the files and the page `bench/results/own-commands.md`, which
//! a reviewer reads.

mod full_disk;
mod netsync;
mod serve;
mod store;
mod sync;
mod usage;
mod world;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use world::World;

/// The variable that makes the tests write the files.
const WRITE: &str = "PRONTO_TEST_OWN_COMMANDS";

/// The names of the files, and their titles in the page.
const FILES: [(&str, &str); 6] = [
    ("usage", "Usage"),
    ("serve", "serve"),
    ("store", "store"),
    ("netsync", "netsync"),
    ("sync", "sync and pull --netsync"),
    ("full_disk", "A full disk"),
];

/// The beginning of the page.
const PAGE: &str = "# Own commands in bad conditions\n\n\
    The test `own_commands` of `pronto-cli` runs every command that only pronto has in these conditions, and \
    compares what the program prints with this page. `$DIR` is the directory of the test, `ID` an id, \
    `PORT` a port. Each call is followed by its output, standard output first, and by its exit code unless \
    that is 0.\n";

/// The calls of one file, in their order, with their results.
struct Table {
    name: &'static str,
    text: String,
}

impl Table {
    fn new(name: &'static str) -> Self {
        Table {
            name,
            text: String::new(),
        }
    }

    /// Begins the calls in a condition.
    fn condition(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        writeln!(self.text, "# {title}").expect("text");
    }

    /// Runs a call, and records its result.
    fn call(&mut self, world: &World, line: &str) {
        self.record(&world.run(line));
    }

    /// Records the result of a call.
    fn record(&mut self, result: &str) {
        self.text.push_str(result);
    }

    /// Compares the table with its file, or writes the file.
    fn compare(&self) {
        let path = directory().join(format!("{}.txt", self.name));
        compare(&path, &self.text);
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/own_commands")
}

/// Compares `text` with a file, or writes the file.
fn compare(path: &Path, text: &str) {
    if std::env::var_os(WRITE).is_some_and(|value| value == "write") {
        return std::fs::write(path, text).expect("the file can be written");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == text {
        return;
    }
    let same = expected.lines().zip(text.lines());
    let at = same.take_while(|(left, right)| left == right).count();
    let from = at.saturating_sub(8);
    let shown = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(from).take(24).collect();
        lines.join("\n")
    };
    panic!(
        "line {} of {} differs; expected:\n{}\n\ngot:\n{}\n\nset {WRITE}=write to write the files",
        at + 1,
        path.display(),
        shown(&expected),
        shown(text)
    );
}

#[test]
fn the_page_has_all_tables() {
    let mut page = PAGE.to_owned();
    for (name, title) in FILES {
        let path = directory().join(format!("{name}.txt"));
        let text = std::fs::read_to_string(&path).expect("the file of a table");
        write!(page, "\n## {title}\n\n```text\n{text}```\n").expect("text");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    compare(&root.join("bench/results/own-commands.md"), &page);
}
