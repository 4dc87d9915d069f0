//! The settings that native commands do not implement. If such a setting is in effect, git runs the
//! whole call.
//!
//! `docs/settings.tsv` lists every setting of Git. A setting with the status `handed over` is in
//! the tables of [`pronto::support`] if an operation of the library would have to obey the setting,
//! or in [`KEYS`] and [`VARIABLES`] if the setting concerns the command line alone. The code that
//! needs any other such setting checks the value itself.

mod operations;
mod table;
mod values;

use std::ffi::OsString;

use pronto::config::Config;
use pronto::support::{self, ValueCondition};
use pronto::{Environment, Repository};

use crate::error::CliError;

pub use operations::operations_of;
pub use table::{KEYS, VARIABLES};
pub use values::{
    ADVICE, COLORS, Colors, KEYS as TYPED_KEYS, KEYS_OF_EACH, Kind, Readers, TypedKey, readers_of,
};
pub(crate) use values::{check as check_values, unread, warn_again};

/// A setting that the native form of some commands does not implement.
#[derive(Clone, Copy, Debug)]
pub struct CommandSetting {
    /// The name of the environment variable, or the key `section.variable` in lower case.
    pub name: &'static str,
    /// The commands that do not implement the setting. An empty list stands for all commands.
    pub commands: &'static [&'static str],
    /// The values that put the setting into effect.
    pub when: ValueCondition,
}

impl CommandSetting {
    /// Returns whether `command` lacks it. Traces concern Git's commands.
    pub fn concerns(&self, command: &str) -> bool {
        let is_trace = self.name.starts_with("GIT_TRACE") || self.name.starts_with("trace2.");
        let is_listed = match self.commands {
            [] => !operations_of(command).is_empty(),
            commands => commands.contains(&command),
        };
        is_listed && !(is_trace && OWN_COMMANDS.contains(&command))
    }
}

/// Commands that git does not have, so it cannot receive their calls.
const OWN_COMMANDS: &[&str] = &["netsync", "serve", "store", "sync"];

/// An upper bound of the length of the keys in the tables, in bytes.
const LONGEST_NAME: usize = 64;

/// Refuses to run `command` with an environment variable that the command line does not implement.
/// `get` returns the value of a variable, and is called only for variables that `command` does not
/// implement.
///
/// # Errors
/// Fails if such an environment variable is in effect. Git runs the call.
pub(crate) fn check_variables(
    command: &str,
    get: impl Fn(&str) -> Option<OsString>,
) -> Result<(), CliError> {
    for row in VARIABLES.iter().filter(|row| row.concerns(command)) {
        let value = get(row.name);
        let value = value.as_ref().map(|value| value.as_encoded_bytes().into());
        if value.is_some() && row.when.holds(value) {
            return Err(lacking(&format!("variable '{}'", row.name)));
        }
    }
    Ok(())
}

/// Refuses to run `command` with a configuration variable that the command line does not implement.
///
/// # Errors
/// Fails if such a setting is in effect. Git runs the call.
pub(crate) fn check_config(command: &str, config: &Config) -> Result<(), CliError> {
    for row in KEYS.iter().filter(|row| row.concerns(command)) {
        if let Some(entry) = config.entry_of(row.name)
            && row.when.holds(entry.value)
        {
            return Err(lacking(&format!("setting '{}'", row.name)));
        }
    }
    Ok(())
}

/// Checks that the operations of `command` support the settings and hooks of `repository`.
///
/// # Errors
/// Fails if an operation does not support a setting or hook. Git runs the call, if git has the
/// command.
pub(crate) fn check_support(command: &str, repository: &Repository) -> Result<(), CliError> {
    let mut operations = operations_of(command).iter();
    operations
        .try_for_each(|&operation| support::require(repository, operation).map_err(unsupported))
}

/// Performs the check of [`check_support`] for a command that runs without a repository, or creates
/// a repository.
///
/// # Errors
/// Fails under the conditions of [`check_support`].
pub(crate) fn check_support_without_repository(
    command: &str,
    config: &Config,
    environment: &Environment,
) -> Result<(), CliError> {
    let mut operations = operations_of(command).iter();
    operations.try_for_each(|&operation| {
        support::require_settings(operation, config, environment).map_err(unsupported)
    })
}

/// Converts the error of an operation that does not support a setting.
fn unsupported(error: pronto::Error) -> CliError {
    let hint = error.hint().map(ToOwned::to_owned);
    let lacking = CliError::of(error);
    match hint {
        Some(hint) => lacking.with_hint(hint),
        None => lacking,
    }
}

fn lacking(setting: &str) -> CliError {
    CliError::lacking(format!("{setting} is not implemented natively"))
        .with_hint("unset it, or run git for this call")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(VARIABLES.is_sorted_by_key(|row| row.name));
        assert!(KEYS.is_sorted_by_key(|row| row.name));
        for row in KEYS {
            assert_eq!(row.name, row.name.to_ascii_lowercase());
        }
    }
}
