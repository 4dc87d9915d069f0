//! Every setting of git is listed in `docs/settings.tsv`, the table agrees with the code, and
//! settings that must be handed over are never ignored.

mod handed_over;
mod obeyed;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::stdout;

/// The release of git that the table describes.
const ACCOUNTED: (u32, u32) = (2, 55);

/// A line of the table.
#[derive(Clone, Debug)]
struct Row {
    kind: String,
    name: String,
    status: String,
    protects: bool,
    note: String,
}

impl Row {
    fn is_config(&self) -> bool {
        self.kind.starts_with("config")
    }
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn table() -> Vec<Row> {
    let text = std::fs::read_to_string(top().join("docs/settings.tsv")).expect("the table");
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kind, name, status, protects, note] = columns[..] else {
            panic!("not five columns: {line}");
        };
        assert!(["yes", "no"].contains(&protects), "{line}");
        Row {
            kind: kind.to_owned(),
            name: name.to_owned(),
            status: status.to_owned(),
            protects: protects == "yes",
            note: note.to_owned(),
        }
    };
    text.lines().skip(1).map(row).collect()
}

/// The git that is compared with the table: git 2.55, or the installed one where there is none.
fn git() -> &'static Path {
    test_support::git::reference().unwrap_or(Path::new("git"))
}

fn ask_git(arguments: &[&str]) -> String {
    let output = Command::new(git())
        .args(arguments)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}");
    stdout(&output)
}

/// Returns whether the installed git is at least as new as the table, and reports if it is not.
fn is_new_enough() -> bool {
    let version = ask_git(&["version"]);
    let number = version.split(' ').nth(2).expect("git version NUMBER");
    let mut parts = number.trim().split('.').map(str::parse::<u32>);
    let mut part = || parts.next().and_then(Result::ok).unwrap_or_default();
    let found = (part(), part());
    if found < ACCOUNTED {
        test_support::report_missing_reference(&format!(
            "a part of the test: the table is of git {}.{}, here is {}",
            ACCOUNTED.0,
            ACCOUNTED.1,
            number.trim()
        ));
    }
    found >= ACCOUNTED
}

#[test]
fn the_table_is_well_formed() {
    let rows = table();
    let keys: Vec<_> = rows.iter().map(|row| (&row.kind, &row.name)).collect();
    assert!(keys.is_sorted(), "sorted by kind and name");
    let distinct: BTreeSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "a line for each setting");
    let kinds = [
        "config",
        "config-own",
        "config-unlisted",
        "environment",
        "environment-own",
    ];
    for row in &rows {
        assert!(kinds.contains(&row.kind.as_str()), "{row:?}");
        let statuses = ["native", "git", "handed over", "no effect"];
        assert!(statuses.contains(&row.status.as_str()), "{row:?}");
        assert!(!row.note.is_empty(), "{row:?}");
    }
}

#[test]
fn the_table_has_every_configuration_variable_of_git() {
    let listed = ask_git(&["help", "--config"]);
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let of_git: BTreeMap<String, &str> = listed
        .map(|name| (name.to_ascii_lowercase(), name))
        .collect();
    assert!(of_git.len() > 500, "git lists its variables");
    let rows = table();
    let all: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.is_config())
        .map(|row| row.name.to_ascii_lowercase())
        .collect();
    let missing: Vec<_> = of_git
        .iter()
        .filter(|(lower, _)| !all.contains(*lower))
        .map(|(_, name)| name)
        .collect();
    assert!(
        missing.is_empty(),
        "docs/settings.tsv does not account for {missing:?}"
    );
    if is_new_enough() {
        let listed = rows.iter().filter(|row| row.kind == "config");
        let gone: Vec<_> = listed
            .filter(|row| !of_git.contains_key(&row.name.to_ascii_lowercase()))
            .map(|row| &row.name)
            .collect();
        assert!(gone.is_empty(), "git does not list {gone:?}");
    }
}

#[test]
fn the_table_has_every_environment_variable_of_git() {
    let programs = PathBuf::from(ask_git(&["--exec-path"]).trim());
    let mut words = BTreeSet::new();
    // Most programs are links to one file.
    let mut read = BTreeSet::new();
    for entry in std::fs::read_dir(&programs).expect("the programs of git") {
        let path = entry.expect("an entry").path();
        let Ok(about) = path.metadata() else {
            continue;
        };
        if about.is_file() && read.insert((about.dev(), about.ino())) {
            words_of(&std::fs::read(&path).expect("a program"), &mut words);
        }
    }
    assert!(words.contains("GIT_DIR"), "git knows its own variables");
    let rows = table();
    let known: BTreeSet<&str> = rows
        .iter()
        .filter(|row| !row.is_config())
        .map(|row| row.name.as_str())
        .collect();
    // `GIT_TEST_<name>` stands for all variables with this prefix.
    let families = known.iter().filter_map(|name| name.strip_suffix("<name>"));
    let families: Vec<&str> = families.collect();
    let missing: Vec<_> = words
        .iter()
        .filter(|word| !known.contains(word.as_str()))
        .filter(|word| !families.iter().any(|prefix| word.starts_with(prefix)))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/settings.tsv does not account for {missing:?}"
    );
    if is_new_enough() {
        let of_git = rows.iter().filter(|row| {
            row.name.starts_with("GIT_")
                && row.kind == "environment"
                && ["native", "handed over"].contains(&row.status.as_str())
        });
        let gone: Vec<_> = of_git
            .filter(|row| !words.contains(&row.name))
            .map(|row| &row.name)
            .collect();
        assert!(gone.is_empty(), "git does not know {gone:?}");
    }
}

/// Adds the words in `bytes` that begin like environment variables of git.
fn words_of(bytes: &[u8], words: &mut BTreeSet<String>) {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    for run in bytes.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_') {
        if run.len() > 4 && run.starts_with(b"GIT_") && run.iter().all(is_part) {
            words.insert(String::from_utf8_lossy(run).into_owned());
        }
    }
}

#[test]
fn protective_settings_without_effect_have_a_reason() {
    for row in table().iter().filter(|row| row.protects) {
        let is_reason = row.note.len() > "clone, fetch".len() || row.note.starts_with("for ");
        assert!(row.status != "no effect" || is_reason, "{row:?}");
    }
}
