//! Checks the values of the settings that a command reads, before the command does anything.
//!
//! Git reads the whole configuration when a command starts. A value of the wrong type ends the
//! command, even if a later entry overrides the value or the command does not need the setting.
//! [`KEYS`] has a row for each key with its type and its readers, and [`readers_of`] returns the
//! readers of each command. The value of a setting without a row is checked at its use.

mod keys;
mod kinds;
mod names;
mod readers;
mod warnings;

use bstr::{BStr, BString, ByteSlice};
use pronto::config::{Config, ConfigEntry, ConfigKey};

use super::LONGEST_NAME;
use crate::error::CliError;

pub use keys::KEYS;
pub use kinds::Kind;
pub use names::{ADVICE, COLORS, Colors, KEYS_OF_EACH};
pub use readers::{Readers, readers_of};

/// A key, the type of its values, and the parts of Git that read it.
#[derive(Clone, Copy, Debug)]
pub struct TypedKey {
    /// The key: `section.variable` in lower case.
    pub name: &'static str,
    /// The type of the values.
    pub kind: Kind,
    /// The readers that check the values.
    pub readers: Readers,
}

/// Checks the values in `config` that `readers` read, and prints Git's warnings about values
/// without effect. `has_index` returns whether an index file exists.
///
/// # Errors
/// Fails with Git's message about the first value that is not of its type.
pub(crate) fn check(
    readers: Readers,
    config: &Config,
    has_index: impl Fn() -> bool,
) -> Result<(), CliError> {
    let mut later = None;
    let mut warnings = warnings::SettingWarnings::default();
    for entry in config.iter() {
        let Some(found) = find(&entry, readers) else {
            continue;
        };
        warnings.print(&entry);
        let Err(error) = found.kind.check(&entry) else {
            continue;
        };
        if !found.readers.is_lazy() {
            return Err(error);
        }
        if found.readers.needs_index() && !has_index() {
            continue;
        }
        // A reader that looks up a key by name checks only the last value.
        let last = config.entry_of(entry.key);
        if last.is_some_and(|last| last.value == entry.value) {
            later.get_or_insert(error);
        }
    }
    later.map_or(Ok(()), Err)
}

/// Prints the warnings of [`check`] about durability settings again, for a command during which Git
/// reads the configuration again. Without `is_of_child`, the same process of Git reads the
/// configuration, and does not repeat the warning about `core.fsyncObjectFiles`.
pub(crate) fn warn_again(readers: Readers, config: &Config, is_of_child: bool) {
    let mut warnings = match is_of_child {
        true => warnings::SettingWarnings::default(),
        false => warnings::SettingWarnings::repeated(),
    };
    for entry in config.iter() {
        if find(&entry, readers).is_some() {
            warnings.print_of_durability(&entry);
        }
    }
}

/// The readers of settings that pronto reads when it opens a repository and its objects.
const OPENING: Readers = Readers::DEFAULT
    .or(Readers::CORE)
    .or(Readers::REPOSITORY)
    .or(Readers::PROMISOR)
    .or(Readers::INDEX_PACK);

/// Returns the keys in `config` with malformed values that pronto reads when it opens a repository,
/// but that none of `readers` reads.
pub(crate) fn unread(readers: Readers, config: &Config) -> Vec<BString> {
    let is_unread = |entry: &ConfigEntry<'_>| {
        // The check of the value is first, because nearly all values are well formed.
        find(entry, OPENING).is_some_and(|found| found.kind.check(entry).is_err())
            && find(entry, readers).is_none()
    };
    let unread = config.iter().filter(is_unread);
    unread.map(|entry| entry.key.to_owned()).collect()
}

/// The type of a key, found for a set of readers.
struct KeyType {
    kind: Kind,
    /// The readers of the set that read the key.
    readers: Readers,
}

/// Returns the type of `entry`, if one of `readers` reads the key.
fn find(entry: &ConfigEntry<'_>, readers: Readers) -> Option<KeyType> {
    let key = ConfigKey::split(entry.key);
    let Some(subsection) = key.subsection else {
        return match key.section.as_bytes() {
            b"advice" => is_listed(ADVICE, key.variable)
                .then(|| meant(Kind::Bool, Readers::DEFAULT, readers))
                .flatten(),
            b"fsck" => meant(Kind::Text, Readers::FSCK, readers),
            _ => find_row(KEYS, entry.key).and_then(|row| meant(row.kind, row.readers, readers)),
        };
    };
    let (section, variable) = (key.section.as_bytes(), key.variable.as_bytes());
    match (section, subsection.as_bytes()) {
        (b"fetch", b"fsck") => return meant(Kind::Text, Readers::FETCH_FSCK, readers),
        (b"receive", b"fsck") => return meant(Kind::Text, Readers::RECEIVE, readers),
        (b"color" | b"status" | b"diff", _) => {
            if let Some(colors) = find_colors(&key, subsection) {
                return meant(Kind::Color, colors.readers, readers);
            }
        }
        (b"hook", _) => return meant(Kind::Text, Readers::HOOKS, readers),
        _ => {}
    }
    let mut name = [0; LONGEST_NAME];
    let name = name.get_mut(..section.len() + 1 + variable.len())?;
    name[..section.len()].copy_from_slice(section);
    name[section.len()] = b'.';
    name[section.len() + 1..].copy_from_slice(variable);
    let row = find_row(KEYS_OF_EACH, name)?;
    meant(row.kind, row.readers, readers)
}

/// Returns the row of colours that contains `key`.
fn find_colors(key: &ConfigKey<'_>, subsection: &BStr) -> Option<&'static Colors> {
    COLORS.iter().find(|colors| {
        let is_here =
            |&(first, second): &(&str, &str)| key.section == first && subsection == second;
        colors.prefixes.iter().any(is_here) && colors.slots.iter().any(|slot| key.variable == slot)
    })
}

fn meant(kind: Kind, of_key: Readers, wanted: Readers) -> Option<KeyType> {
    let readers = of_key.and(wanted);
    (!readers.is_empty()).then_some(KeyType { kind, readers })
}

fn find_row(rows: &'static [TypedKey], name: &[u8]) -> Option<&'static TypedKey> {
    let at = rows
        .binary_search_by(|row| row.name.as_bytes().cmp(name))
        .ok()?;
    Some(&rows[at])
}

fn is_listed(list: &[&str], name: &[u8]) -> bool {
    list.binary_search_by(|known| known.as_bytes().cmp(name))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_in_lower_case() {
        for rows in [KEYS, KEYS_OF_EACH] {
            for pair in rows.windows(2) {
                assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
            }
            for row in rows {
                assert!(row.name.len() <= LONGEST_NAME, "{}", row.name);
                assert_eq!(row.name, row.name.to_ascii_lowercase());
            }
        }
        assert!(ADVICE.is_sorted());
    }
}
