//! Git's warnings about values without effect, which Git prints while it reads the configuration.

use bstr::{BStr, ByteSlice as _};
use pronto::config::{ConfigEntry, ConfigKey, value};
use pronto::durability::Fsync;

use crate::terminal::text::write_to_stderr;

/// The state of the warnings that one pass over the configuration prints.
#[derive(Debug, Default)]
pub(super) struct SettingWarnings {
    /// Whether the deprecation of `core.fsyncObjectFiles` was reported. Git reports the deprecation
    /// once per process.
    is_deprecation_reported: bool,
}

impl SettingWarnings {
    /// Returns the state in a process that has read the configuration before.
    pub(super) fn repeated() -> Self {
        SettingWarnings {
            is_deprecation_reported: true,
        }
    }

    /// Prints the warnings about the value of `entry`, if the key is a durability or hook setting.
    pub(super) fn print(&mut self, entry: &ConfigEntry<'_>) {
        if entry.key.starts_with(b"core.fsync") {
            self.print_of_durability(entry);
        } else if entry.key.starts_with(b"hook.") {
            print_of_hooks(entry);
        }
    }

    /// Prints the warnings about the value of `entry`, if the key is a durability setting
    /// (`core.fsync`, `core.fsyncMethod`, `core.fsyncObjectFiles`).
    pub(super) fn print_of_durability(&mut self, entry: &ConfigEntry<'_>) {
        match entry.key.as_bytes() {
            b"core.fsync" => {
                let unknown = entry.value.map(Fsync::unknown_components);
                for name in unknown.unwrap_or_default() {
                    warn_of_unknown("core.fsync component", name.as_bstr());
                }
            }
            b"core.fsyncmethod" => {
                let is_known = |value: &BStr| {
                    ["fsync", "writeout-only", "batch"]
                        .iter()
                        .any(|known| value == known)
                };
                if let Some(value) = entry.value.filter(|value| !is_known(value)) {
                    warn_of_unknown("core.fsyncMethod value", value);
                }
            }
            b"core.fsyncobjectfiles" if !self.is_deprecation_reported => {
                self.is_deprecation_reported = true;
                warn("core.fsyncObjectFiles is deprecated; use core.fsync instead");
            }
            _ => {}
        }
    }
}

/// Prints the warning about `hook.jobs`, `hook.NAME.jobs` or `hook.NAME.parallel`.
fn print_of_hooks(entry: &ConfigEntry<'_>) {
    let (key, Some(text)) = (ConfigKey::split(entry.key), entry.value) else {
        return;
    };
    let expected = match key.variable.as_bytes() {
        b"jobs" => match entry.i32() {
            Ok(-1 | 1..) => return,
            Ok(_) => "a positive integer or -1",
            Err(_) => "an integer",
        },
        b"parallel" if key.subsection.is_some() && value::parse_bool(entry.value).is_none() => {
            "a boolean"
        }
        _ => return,
    };
    warn(&format!(
        "{} must be {expected}, ignoring: '{text}'",
        entry.key
    ));
}

/// Prints the warning about the unknown value `value` of `setting`.
fn warn_of_unknown(setting: &str, value: &BStr) {
    warn(&format!("ignoring unknown {setting} '{value}'"));
}

fn warn(message: &str) {
    write_to_stderr(&format!("warning: {message}\n"));
}
