//! Settings that native commands lack. If one of them is in effect, the whole call goes to git.
//!
//! `docs/settings.tsv` lists every setting of Git. Those with the status `handed over` are in the
//! tables here, unless the code that needs them checks itself. The tables are compared with
//! configuration and environment that are loaded anyway.

mod hooks;
mod table;
mod transport;
mod values;

use std::ffi::OsString;

use bstr::{BStr, ByteSlice};
use pronto::Repository;
use pronto::config::{Config, Key, value};

use crate::error::CliError;

pub use hooks::EVENTS;
pub use table::{GUARDED, KEYS, VARIABLES};
pub use transport::{TRANSPORT_KEYS, TRANSPORT_VARIABLES};
pub use values::{
    ADVICE, COLORS, Colors, KEYS as TYPED_KEYS, KEYS_OF_EACH, Kind, Readers, TypedKey, readers_of,
};
pub(crate) use values::{check as check_values, unread, warn_again};

/// Checks that `command` runs the hooks of `repository`: native commands do not run
/// `post-index-change`.
///
/// # Errors
/// The command may write the index, and there is such a hook.
pub(crate) fn check_hooks(command: &str, repository: &Repository) -> Result<(), CliError> {
    if table::INDEX_WRITERS.contains(&command)
        && pronto::hooks::exists(repository, "post-index-change")
    {
        return Err(CliError::unsupported("the hook 'post-index-change'"));
    }
    Ok(())
}

/// A setting that some native commands lack.
#[derive(Clone, Copy, Debug)]
pub struct Lacking {
    /// The environment variable, or `section.variable` in lower case.
    pub name: &'static str,
    /// The form of a configured variable.
    pub place: Place,
    /// The commands that lack it; all if empty.
    pub commands: &'static [&'static str],
    /// The values with which it is in effect.
    pub when: When,
}

/// Whether a configured variable has a subsection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `section.variable`.
    Section,
    /// `section.NAME.variable`.
    Subsection,
    /// Both, as for settings of one URL.
    Either,
}

/// The values with which a setting is in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any value.
    Set,
    /// Any value that is not empty.
    NotEmpty,
    /// Any value but a false boolean.
    True,
    /// A boolean that is false.
    False,
    /// Any value but these.
    Not(&'static [&'static str]),
}

impl When {
    /// Returns whether `value` puts the setting in effect; `None` is a key without a value.
    fn holds(self, value: Option<&BStr>) -> bool {
        let is_false = || value::parse_bool(value) == Some(false);
        match self {
            When::Set => true,
            When::NotEmpty => value.is_none_or(|value| !value.is_empty()),
            When::True => !is_false(),
            When::False => is_false(),
            When::Not(harmless) => {
                let value = value.unwrap_or_default();
                !harmless
                    .iter()
                    .any(|known| value.eq_ignore_ascii_case(known.as_bytes()))
            }
        }
    }
}

impl Lacking {
    /// Returns whether `command` lacks it. Traces concern Git's commands.
    fn concerns(&self, command: &str) -> bool {
        let is_trace = self.name.starts_with("GIT_TRACE") || self.name.starts_with("trace2.");
        concerns(self.commands, command) && !(is_trace && OWN_COMMANDS.contains(&command))
    }
}

/// A section whose settings protect the user: an unknown one is never ignored.
#[derive(Clone, Copy, Debug)]
pub struct Guarded {
    /// The section, in lower case.
    pub section: &'static str,
    /// The commands that obey it; all if empty.
    pub commands: &'static [&'static str],
    /// Its variables in lower case, sorted.
    pub known: &'static [&'static str],
}

/// Commands that git does not have, so it cannot receive their calls.
const OWN_COMMANDS: &[&str] = &["netsync", "serve", "store", "sync"];

/// Refuses to run `command` with an environment variable that it lacks. `get` returns the value of
/// a variable, and is called only for those that the command lacks.
///
/// # Errors
/// There is one. The call goes to git, if git has the command.
pub(crate) fn check_variables(
    command: &str,
    get: impl Fn(&str) -> Option<OsString>,
) -> Result<(), CliError> {
    let rows = VARIABLES.iter().chain(TRANSPORT_VARIABLES);
    for row in rows.filter(|row| row.concerns(command)) {
        let value = get(row.name);
        let value = value.as_ref().map(|value| value.as_encoded_bytes().into());
        if value.is_some() && row.when.holds(value) {
            return Err(refusal(command, &format!("variable '{}'", row.name)));
        }
    }
    Ok(())
}

/// Refuses to run `command` with a configured variable that it lacks.
///
/// # Errors
/// There is one. The call goes to git, if git has the command.
pub(crate) fn check_config(command: &str, config: &Config) -> Result<(), CliError> {
    for entry in config.iter() {
        let key = Key::split(entry.key);
        let lacks = match key.section.as_bytes() {
            b"hook" => hooks::is_lacking(command, config, &key),
            _ => is_lacking(command, &key, || {
                let last = config.entry_of(entry.key);
                last.and_then(|entry| entry.value)
            }),
        };
        if lacks {
            return Err(refusal(command, &format!("setting '{}'", entry.key)));
        }
    }
    Ok(())
}

/// No table has longer names.
const LONGEST_NAME: usize = 64;

fn is_lacking<'a>(
    command: &str,
    key: &Key<'_>,
    value: impl Fn() -> Option<&'a BStr> + Copy,
) -> bool {
    let mut name = [0; LONGEST_NAME];
    let (section, variable) = (key.section.as_bytes(), key.variable.as_bytes());
    let mut row = || {
        let name = name.get_mut(..section.len() + 1 + variable.len())?;
        name[..section.len()].copy_from_slice(section);
        name[section.len()] = b'.';
        name[section.len() + 1..].copy_from_slice(variable);
        find(KEYS, name).or_else(|| find(TRANSPORT_KEYS, name))
    };
    let lacks = row().is_some_and(|row| {
        let is_there = match row.place {
            Place::Section => key.subsection.is_none(),
            Place::Subsection => key.subsection.is_some(),
            Place::Either => true,
        };
        is_there && row.concerns(command) && row.when.holds(value())
    });
    lacks || is_unknown(command, key)
}

fn find<'a>(rows: &'a [Lacking], name: &[u8]) -> Option<&'a Lacking> {
    let at = rows
        .binary_search_by(|row| row.name.as_bytes().cmp(name))
        .ok()?;
    Some(&rows[at])
}

fn is_unknown(command: &str, key: &Key<'_>) -> bool {
    let guarded = GUARDED
        .iter()
        .find(|guarded| guarded.section.as_bytes() == key.section.as_bytes());
    guarded.is_some_and(|guarded| {
        let variable = key.variable.as_bytes();
        concerns(guarded.commands, command)
            && guarded
                .known
                .binary_search_by(|known| known.as_bytes().cmp(variable))
                .is_err()
    })
}

/// Returns whether `command` is one of `commands`, where an empty list means all commands that read
/// a repository.
fn concerns(commands: &[&str], command: &str) -> bool {
    match commands {
        [] => !["", "help", "version"].contains(&command),
        commands => commands.contains(&command),
    }
}

fn refusal(command: &str, what: &str) -> CliError {
    match OWN_COMMANDS.contains(&command) {
        true => CliError::fatal(format!("'{command}' does not obey {what}"))
            .with_hint("unset it for this call, or use commands of git"),
        false => CliError::unsupported(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_in_lower_case() {
        for rows in [VARIABLES, TRANSPORT_VARIABLES] {
            assert!(rows.is_sorted_by_key(|row| row.name));
        }
        for rows in [KEYS, TRANSPORT_KEYS] {
            assert!(rows.is_sorted_by_key(|row| row.name));
            for row in rows {
                assert_eq!(row.name, row.name.to_ascii_lowercase());
                assert!(row.name.len() <= LONGEST_NAME, "{}", row.name);
                let (section, variable) =
                    row.name.split_once('.').expect("a section and a variable");
                assert!(
                    !section.is_empty() && !variable.contains('.'),
                    "{}",
                    row.name
                );
            }
        }
        for guarded in GUARDED {
            assert!(guarded.known.is_sorted(), "{}", guarded.section);
        }
    }

    #[test]
    fn values_put_settings_in_force() {
        let holds = |when: When, value: &str| when.holds(Some(value.into()));
        assert!(When::True.holds(None) && holds(When::True, "nonsense"));
        assert!(!holds(When::True, "off") && holds(When::False, "no"));
        assert!(!holds(When::False, "nonsense") && !When::False.holds(None));
        assert!(!holds(When::NotEmpty, "") && holds(When::Set, ""));
        assert!(!holds(When::Not(&["a"]), "A") && holds(When::Not(&["a"]), "b"));
    }
}
