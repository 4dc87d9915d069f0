//! The settings in use and the hooks, for a report.

use std::collections::BTreeMap;

use bstr::{BStr, ByteSlice as _};
use pronto::config::{Config, ConfigKey};
use pronto::hooks;

use super::Surroundings;
use super::harmless::is_harmless;
use crate::manual::ManualArchive;

/// Sections of settings whose values are truth values, numbers and words, or are not written.
const SECTIONS_WITH_VALUES: &[&str] = &[
    "checkout",
    "clone",
    "commitgraph",
    "core",
    "diff",
    "extensions",
    "feature",
    "fetch",
    "fsck",
    "gc",
    "index",
    "init",
    "maintenance",
    "merge",
    "pack",
    "protocol",
    "pull",
    "push",
    "rebase",
    "receive",
    "reftable",
    "repack",
    "sparse",
    "splitindex",
    "status",
    "submodule",
    "transfer",
    "uploadpack",
    "worktree",
];

/// The names of Git's settings, in the forms `core.bare` and `branch.<name>.remote`.
pub(super) struct KnownSettings {
    archive: ManualArchive,
}

impl KnownSettings {
    pub(super) fn new() -> Self {
        KnownSettings {
            archive: ManualArchive::open(),
        }
    }

    /// Returns the documented name of the setting `key`, which has no text of the user.
    pub(super) fn name_of(&self, key: &BStr) -> Option<&str> {
        let key = ConfigKey::split(key);
        let mut names = self.archive.settings();
        names.find(|name| is_name_of(name, &key))
    }
}

/// Returns whether `name` documents the setting `key`.
fn is_name_of(name: &str, key: &ConfigKey<'_>) -> bool {
    let known = ConfigKey::split(name.as_bytes().as_bstr());
    let is_placeholder = |part: &BStr| part.starts_with(b"<") || part == "*";
    let is_variable =
        is_placeholder(known.variable) || known.variable.eq_ignore_ascii_case(key.variable);
    let is_subsection = match (known.subsection, key.subsection) {
        (None, None) => true,
        (Some(known), Some(given)) => is_placeholder(known) || known == given,
        _ => false,
    };
    known.section.eq_ignore_ascii_case(key.section) && is_variable && is_subsection
}

/// A setting in use.
struct SettingInUse {
    count: usize,
    /// The effective value, if a report may contain it.
    value: Option<String>,
}

/// Appends the names of the settings in use, and the values that are harmless.
pub(super) fn describe(surroundings: &Surroundings, text: &mut String) {
    text.push_str("\n[Settings]\n");
    match &surroundings.config {
        Some(config) => settings(config, text),
        None => text.push_str("the configuration cannot be read\n"),
    }
}

/// Appends the names of the hooks that are enabled. As in git, they are the last section of a report.
pub(super) fn enabled_hooks(surroundings: &Surroundings, text: &mut String) {
    text.push_str("\n[Enabled Hooks]\n");
    let Some(repository) = &surroundings.repository else {
        text.push_str("no repository\n");
        return;
    };
    for event in hooks::events() {
        if hooks::exists(repository, event) {
            text.push_str(event);
            text.push('\n');
        }
    }
}

fn settings(config: &Config, text: &mut String) {
    let known = KnownSettings::new();
    let mut used: BTreeMap<&str, SettingInUse> = BTreeMap::new();
    let mut unknown = 0;
    for entry in config.iter() {
        let key = entry.key.as_bstr();
        let Some(name) = known.name_of(key) else {
            unknown += 1;
            continue;
        };
        let section = ConfigKey::split(key).section;
        let has_value = SECTIONS_WITH_VALUES.iter().any(|it| *it == section) && !name.contains('<');
        let value = entry.value.map_or(&b"true"[..], |value| value.as_bytes());
        let value = Some(value).filter(|value| has_value && is_harmless(value));
        let setting = used.entry(name).or_insert(SettingInUse {
            count: 0,
            value: None,
        });
        setting.count += 1;
        setting.value = value.map(|value| String::from_utf8_lossy(value).into_owned());
    }
    for (name, setting) in &used {
        text.push_str(name);
        match &setting.value {
            Some(value) => text.push_str(&format!(" = {value}")),
            None => text.push_str(" (set)"),
        }
        if setting.count > 1 {
            text.push_str(&format!(", {} times", setting.count));
        }
        text.push('\n');
    }
    if unknown > 0 {
        text.push_str(&format!(
            "settings that neither git nor pronto has: {unknown}\n"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_names_hide_what_users_have_named() {
        let known = KnownSettings::new();
        let name = |key: &str| known.name_of(key.into());
        assert_eq!(name("core.bare"), Some("core.bare"));
        assert_eq!(name("core.filemode"), Some("core.fileMode"));
        for key in [
            "remote.https://user:secret@host/.url",
            "http.https://secret@host/.extraheader",
            "url.https://secret@host/.insteadof",
            "branch.secret.merge",
            "credential.https://secret@host.helper",
            "alias.secret",
        ] {
            let name = name(key).unwrap_or_default();
            assert!(!name.contains("secret"), "{key}: {name}");
        }
        assert_eq!(name("branch.secret.merge"), Some("branch.<name>.merge"));
        assert_eq!(name("secret.secret"), None);
    }
}
