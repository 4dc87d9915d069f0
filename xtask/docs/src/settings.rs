//! Generates the page about settings from `docs/settings.tsv`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The table of settings. A line has the kind, the name, the status, whether the setting protects
/// the user, and a note.
const TABLE: &str = include_str!("../../../docs/settings.tsv");

/// The kinds of settings in the order of the page.
const KINDS: &[(&str, &str)] = &[
    ("config", "Configuration that `git help --config` lists"),
    ("config-unlisted", "Configuration that git does not list"),
    ("config-own", "Configuration of pronto"),
    ("environment", "Environment variables of git"),
    ("environment-own", "Environment variables of pronto"),
];

/// The heading of each status.
const STATUSES: &[(&str, &str)] = &[
    ("native", "Supported by native commands"),
    (
        "handed over",
        "Handed over: if it is in effect, the whole call goes to git",
    ),
    ("git", "Used only by commands that always go to git"),
    ("no effect", "Without effect"),
];

/// The names of the settings, grouped by status and note.
type SettingGroups<'a> = BTreeMap<(&'a str, &'a str), Vec<String>>;

/// Formats the page.
pub(super) fn page() -> String {
    let mut page = "# Settings\n\n\
        This page is generated from `docs/settings.tsv` by `cargo xtask docs`. It lists every\n\
        configuration variable and every environment variable of git 2.55: native commands\n\
        support it, hand the whole call to git if it is in effect, leave it to git because only\n\
        commands of git use it, or ignore it for the given reason. **Bold** settings protect the\n\
        user or name a program. In the sections `credential`, `http`, `protocol`, `safe`,\n\
        `sideband` and `transfer` a call with an unknown variable goes to git, too.\n"
        .to_owned();
    for (kind, title) in KINDS {
        // Writing to a string does not fail.
        let _ = write!(page, "\n## {title}\n");
        for (status, heading) in STATUSES {
            let groups = groups(kind, status);
            if groups.is_empty() {
                continue;
            }
            let column = note_column(status);
            let _ = write!(
                page,
                "\n### {heading}\n\n| settings | {column} |\n|---|---|\n"
            );
            let mut rows: Vec<_> = groups
                .iter()
                .map(|((_, note), names)| (names.join(", "), *note))
                .collect();
            rows.sort();
            for (names, note) in rows {
                let note = note.replace('<', "\\<");
                let _ = writeln!(page, "| {names} | {note} |");
            }
        }
    }
    page
}

/// Returns the heading of the column of notes.
fn note_column(status: &str) -> &'static str {
    match status {
        "native" => "used by",
        "no effect" => "reason",
        _ => "note",
    }
}

fn groups<'a>(kind: &str, status: &str) -> SettingGroups<'a> {
    let mut groups = SettingGroups::new();
    for line in TABLE.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [own_kind, name, own_status, security, note] = columns[..] else {
            continue;
        };
        if own_kind == kind && own_status == status {
            let shown = match security {
                "yes" => format!("**`{name}`**"),
                _ => format!("`{name}`"),
            };
            groups.entry((security, note)).or_default().push(shown);
        }
    }
    groups
}
