//! Compares the table of settings with the source of pronto: every setting that the source reads is
//! in the table, and every native setting is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pronto::support::{self, GUARDED, SETTINGS};
use pronto_cli::settings::{ADVICE, KEYS, KEYS_OF_EACH, TYPED_KEYS, VARIABLES};

use super::{Row, table, top};

/// Texts in the source that look like settings but are not.
const NO_SETTINGS: &[&str] = &[
    "gc.log",
    "tar.gz",
    "maintenance.lock",
    "gc.pid",
    "netsync.invalid",
    "receive.denyNonFastforwards",
    "GIT_TRACE2_PARENT_",
    // Settings of the configuration file of the server.
    "daemon.listen",
    "http.listen",
    "netsync.key",
    "netsync.listen",
    "ssh.listen",
    // With this setting, git prints the status of a commit with nothing to commit.
    "commit.verbose",
];

/// Variables whose names are assembled in the source, with the text in the source.
const PUT_TOGETHER: &[(&str, &str)] = &[
    ("GIT_AUTHOR_DATE", "GIT_{}_{what}"),
    ("GIT_AUTHOR_EMAIL", "GIT_{}_{what}"),
    ("GIT_AUTHOR_NAME", "GIT_{}_{what}"),
    ("GIT_COMMITTER_DATE", "GIT_{}_{what}"),
    ("GIT_COMMITTER_EMAIL", "GIT_{}_{what}"),
    ("GIT_COMMITTER_NAME", "GIT_{}_{what}"),
    ("GIT_CONFIG_KEY_", "GIT_CONFIG_{name}_{number}"),
    ("GIT_CONFIG_VALUE_", "GIT_CONFIG_{name}_{number}"),
];

/// Rows of the table that stand for several keys, each with the keys in the source.
const FAMILIES: &[(&str, &[&str])] = &[
    (
        "gpg.<format>.program",
        &["gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program"],
    ),
    ("hook.<event>.jobs", &["hook.pre-push.jobs"]),
];

#[test]
fn every_read_setting_is_in_the_table() {
    let rows = table();
    let readable = |row: &&Row| row.status == "native" || row.status == "handed over";
    let mut keys: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.is_config())
        .filter(readable)
        .map(|row| row.name.to_ascii_lowercase())
        .collect();
    for (family, members) in FAMILIES {
        assert!(keys.remove(*family), "{family} is not in the table");
        keys.extend(members.iter().map(|&member| member.to_owned()));
    }
    let sections: BTreeSet<&str> = keys
        .iter()
        .filter_map(|key| key.split('.').next())
        .collect();
    let variables: BTreeSet<&str> = rows
        .iter()
        .filter(|row| !row.is_config())
        .filter(readable)
        .map(|row| row.name.as_str())
        .collect();
    let mut unknown = Vec::new();
    for (text, file) in texts() {
        let lower = text.to_ascii_lowercase();
        let section = lower.split('.').next().unwrap_or_default();
        let is_key = is_dotted(&text) && sections.contains(section);
        let is_variable = ["GIT_", "PRONTO_", "SSH_", "XDG_"]
            .iter()
            .any(|prefix| text.starts_with(prefix) && text.len() > prefix.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let is_known = NO_SETTINGS.contains(&text.as_str())
            || keys.contains(&lower)
            || variables.contains(text.as_str())
            // Passed to git, which supports it.
            || text == "GIT_EXEC_PATH";
        if (is_key || is_variable) && !is_known {
            unknown.push(format!("{text} ({file})"));
        }
    }
    assert!(
        unknown.is_empty(),
        "docs/settings.tsv does not call native or handed over: {unknown:#?}"
    );
}

/// Old or undocumented names of settings, which git checks as well.
const UNLISTED: &[&str] = &[
    "diff.color",
    "diff.funcname",
    "diff.suppress-blank-empty",
    "filter.process",
    "filter.required",
    "pager.color",
];

#[test]
fn every_typed_setting_is_in_the_table() {
    let rows = table();
    let names: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.is_config())
        .map(|row| normal(&row.name))
        .collect();
    let typed = TYPED_KEYS.iter().chain(KEYS_OF_EACH).map(|row| row.name);
    let unlisted: Vec<&str> = typed.filter(|&name| !names.contains(name)).collect();
    let expected: BTreeSet<&str> = UNLISTED.iter().copied().collect();
    assert_eq!(unlisted.into_iter().collect::<BTreeSet<_>>(), expected);
    for name in ADVICE {
        assert!(names.contains(&format!("advice.{name}")), "{name}");
    }
}

#[test]
fn every_native_setting_is_read() {
    let texts: BTreeSet<String> = texts()
        .into_keys()
        .map(|text| text.to_ascii_lowercase())
        .collect();
    let is_in = |part: &str| {
        texts
            .iter()
            .any(|text| text == part || text.ends_with(&format!(".{part}")))
    };
    let mut unread = Vec::new();
    for row in table().iter().filter(|row| row.status == "native") {
        let name = row.name.to_ascii_lowercase();
        let variable = name.rsplit('.').next().unwrap_or_default();
        let is_group = variable.starts_with(['*', '<']);
        let part = PUT_TOGETHER.iter().find(|(whole, _)| *whole == row.name);
        let is_read = match part {
            Some((_, part)) => texts
                .iter()
                .any(|text| text.contains(&part.to_ascii_lowercase())),
            None => is_group || is_in(variable),
        };
        if !is_read {
            unread.push(row.name.clone());
        }
    }
    assert!(unread.is_empty(), "nothing reads {unread:?}");
}

#[test]
fn the_lists_of_unsupported_settings_agree_with_the_table() {
    let rows = table();
    let find = |lacking: &str, is_config: bool| {
        let same = |row: &&Row| row.is_config() == is_config && normal(&row.name) == lacking;
        let found: Vec<&Row> = rows.iter().filter(same).collect();
        assert!(!found.is_empty(), "{lacking} is not in the table");
        found
    };
    let own = KEYS.iter().map(|row| row.name);
    for lacking in SETTINGS.iter().map(|row| row.name).chain(own) {
        for row in find(lacking, true) {
            assert_eq!(row.status, "handed over", "{}", row.name);
        }
    }
    let own = VARIABLES.iter().map(|row| row.name);
    for lacking in (support::VARIABLES.iter().map(|row| row.name)).chain(own) {
        for row in find(lacking, false) {
            // Some commands support settings that others lack.
            let is_fine = row.status == "handed over" || row.name.ends_with("_PATHSPECS");
            assert!(is_fine, "{}", row.name);
        }
    }
    for guarded in GUARDED {
        let prefix = format!("{}.", guarded.section);
        let known: BTreeSet<String> = rows
            .iter()
            .filter(|row| row.is_config() && row.name.starts_with(&prefix))
            .map(|row| normal(&row.name))
            .filter(|name| !name.ends_with('*'))
            .collect();
        let own: BTreeSet<String> = guarded
            .known
            .iter()
            .map(|variable| format!("{prefix}{variable}"))
            .collect();
        assert_eq!(known, own, "section {}", guarded.section);
    }
}

/// `section.variable` in lower case; names of the environment stay as they are.
pub(super) fn normal(name: &str) -> String {
    match (name.split_once('.'), name.rsplit_once('.')) {
        (Some((section, _)), Some((_, variable))) => {
            format!("{section}.{variable}").to_ascii_lowercase()
        }
        _ => name.to_owned(),
    }
}

fn is_dotted(text: &str) -> bool {
    let is_part = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && part.starts_with(|first: char| first.is_ascii_alphabetic())
    };
    text.contains('.') && text.split('.').all(is_part)
}

/// Returns the string literals in the source of all crates, except for tests and the tables of
/// settings that are not implemented. Maps each literal to a file that contains it.
pub(super) fn texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let crates = std::fs::read_dir(top().join("crates")).expect("the crates");
    for found in crates {
        let folder = found.expect("a crate").path();
        if !folder.ends_with("test-support") {
            collect(&folder.join("src"), &mut texts);
        }
    }
    assert!(texts.len() > 1000, "the source has texts");
    texts
}

fn collect(directory: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).expect("a directory of source") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // These are modules of tests, and the tables of settings that are not implemented.
        let is_apart = name.starts_with("tests")
            || path
                .with_extension("")
                .ends_with("pronto-store/src/simulation")
            || path.ends_with("pronto-cli/src/settings")
            || path.ends_with("pronto-repository/src/repository/support");
        if is_apart {
            continue;
        }
        if path.is_dir() {
            collect(&path, texts);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).expect("source is text");
            let own = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            for quoted in quoted(own) {
                texts.insert(quoted, path.display().to_string());
            }
        }
    }
}

/// Returns the string literals of Rust source. Comments and character literals are skipped.
fn quoted(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in source.lines() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        let line = line.replace("'\"'", "").replace("'\\\"'", "");
        let mut bytes = line.bytes();
        while bytes.by_ref().any(|byte| byte == b'"') {
            let mut text = Vec::new();
            while let Some(byte) = bytes.next() {
                match byte {
                    b'"' => break,
                    b'\\' => text.extend(bytes.next()),
                    other => text.push(other),
                }
            }
            found.push(String::from_utf8_lossy(&text).into_owned());
        }
    }
    found
}
