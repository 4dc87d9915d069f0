//! The names of all settings, and the most similar name for an unknown one.

use pronto_config::similar::most_similar;
use toml::de::{DeTable, DeValue};

use super::problem::ConfigProblem;

/// The settings of each section, by the name of the section. The settings before all sections have the name
/// `""`.
pub(crate) const SETTINGS: [(&str, &[&str]); 14] = [
    (
        "",
        &["root", "users", "create_on_push", "require_export_ok"],
    ),
    (
        "http",
        &[
            "listen",
            "public_url",
            "hosts",
            "tls_certificate",
            "tls_key",
            "client_ca",
            "metrics",
        ],
    ),
    ("daemon", &["listen", "push"]),
    ("ssh", &["listen", "host_key"]),
    ("netsync", &["listen", "key", "memory_bytes"]),
    ("metrics", &["listen"]),
    ("log", &["format"]),
    ("grant", &["repository", "users", "role"]),
    (
        "rule",
        &["repository", "refs", "users", "create", "delete", "force"],
    ),
    (
        "quota",
        &[
            "repository",
            "bytes",
            "refs",
            "repositories",
            "per_namespace",
        ],
    ),
    ("certificate", &["user", "subject", "fingerprint"]),
    ("cache", &["directory", "bytes", "listing_bytes"]),
    ("clone", &["bundle_uri", "bundle_least_bytes"]),
    (
        "store",
        &[
            "url",
            "generations",
            "cache",
            "cache_bytes",
            "patience_seconds",
            "role",
            "upkeep_seconds",
            "prune_after_days",
        ],
    ),
];

/// The settings of the section `[limits]`.
pub(crate) const LIMITS: [&str; 18] = [
    "connections",
    "connections_per_address",
    "requests",
    "user_share",
    "queue",
    "memory_bytes",
    "head_bytes",
    "fetch_bytes",
    "push_bytes",
    "command_bytes",
    "head_seconds",
    "login_seconds",
    "idle_seconds",
    "wait_seconds",
    "stall_seconds",
    "request_seconds",
    "drain_seconds",
    "failures_per_minute",
];

/// Returns the sections with their settings.
pub(crate) fn sections() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    SETTINGS
        .into_iter()
        .chain(std::iter::once(("limits", &LIMITS[..])))
}

/// Checks that a configuration has only settings that exist. A text that is no TOML passes: parsing reports
/// it.
///
/// # Errors
/// Fails with the position of the first unknown setting or section.
pub(super) fn check(text: &str) -> Result<(), ConfigProblem> {
    let Ok(document) = DeTable::parse(text) else {
        return Ok(());
    };
    for (key, value) in document.get_ref() {
        let name: &str = key.get_ref();
        let known = sections().find(|(section, _)| !section.is_empty() && *section == name);
        let tables = match value.get_ref() {
            DeValue::Table(table) => vec![table],
            DeValue::Array(list) => list
                .iter()
                .filter_map(|item| item.get_ref().as_table())
                .collect(),
            _ => Vec::new(),
        };
        let Some((_, settings)) = known else {
            check_top(name, key.span().start, !tables.is_empty())?;
            continue;
        };
        for setting in tables.into_iter().flat_map(DeTable::keys) {
            let found: &str = setting.get_ref();
            if !settings.contains(&found) {
                let offset = setting.span().start;
                let place = format!("setting '{found}' in [{name}]");
                return Err(unknown(&place, found, settings.iter().copied(), offset));
            }
        }
    }
    Ok(())
}

/// Checks a name before all sections, or the name of a section.
fn check_top(name: &str, offset: usize, is_section: bool) -> Result<(), ConfigProblem> {
    let (_, settings) = SETTINGS[0];
    if is_section {
        let names = sections().map(|(section, _)| section);
        let names = names.filter(|section| !section.is_empty());
        return Err(unknown(&format!("section [{name}]"), name, names, offset));
    }
    match settings.contains(&name) {
        true => Ok(()),
        false => {
            let place = format!("setting '{name}' before the first section");
            Err(unknown(&place, name, settings.iter().copied(), offset))
        }
    }
}

/// Returns the error for an unknown name.
fn unknown<'a>(
    place: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    offset: usize,
) -> ConfigProblem {
    let advice = match most_similar(name, known) {
        Some(other) => format!("; did you mean '{other}'?"),
        None => String::new(),
    };
    ConfigProblem {
        offset,
        message: format!("unknown {place}{advice}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULT_TEXT;

    #[test]
    fn the_printed_settings_are_known() {
        let mut section = String::new();
        let mut found = Vec::new();
        for line in DEFAULT_TEXT.lines() {
            let line = line.trim_start_matches('#');
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
            } else if let Some((name, _)) = line.split_once(" = ")
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            {
                found.push((section.clone(), name.to_owned()));
            }
        }
        let known = sections().flat_map(|(section, names)| {
            names
                .iter()
                .map(move |name| (section.to_owned(), (*name).to_owned()))
        });
        let mut known: Vec<_> = known.collect();
        found.sort();
        found.dedup();
        known.sort();
        assert_eq!(found, known);
    }

    #[test]
    fn an_unknown_name_leads_to_a_similar_one() {
        for (text, expected) in [
            (
                "rot = 1",
                "unknown setting 'rot' before the first section; did you mean 'root'?",
            ),
            (
                "[http]\nlisten = []\nlisen = []",
                "unknown setting 'lisen' in [http]; did you mean 'listen'?",
            ),
            (
                "[[grants]]\nrole = \"read\"",
                "unknown section [grants]; did you mean 'grant'?",
            ),
            (
                "[[grant]]\nroll = \"read\"",
                "unknown setting 'roll' in [grant]; did you mean 'role'?",
            ),
            ("[nonsense]\nx = 1", "unknown section [nonsense]"),
            (
                "ssh.listn = []",
                "unknown setting 'listn' in [ssh]; did you mean 'listen'?",
            ),
        ] {
            let found = check(text).expect_err(text);
            assert_eq!(found.message, expected);
        }
        assert!(check(DEFAULT_TEXT).is_ok() && check("not TOML").is_ok());
    }
}
