//! Settings, environment variables and hooks of Git that this library does not implement.
//!
//! An operation that would have to obey such a setting refuses to begin: it calls [`require`] before its first side
//! effect. [`check`] returns all settings, variables and hooks that an operation lacks, so that a program can run git
//! instead, or show them to the user.
//!
//! The rows of [`SETTINGS`], [`VARIABLES`] and [`GUARDED`] name the operations. A repository is compared with them once,
//! in a pass over its configuration and the variables of its [`Environment`]; after that, [`require`] tests one number.
//! Settings that apply to some URLs only are checked by [`remote::connection`], which knows the URL.
//!
//! [`remote::connection`]: https://docs.rs/pronto/latest/pronto/remote/connection/index.html

mod guarded;
mod operation;
mod row;
mod settings;
mod variables;

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use crate::config::{Config, ConfigEntry, ConfigKey};
use crate::environment::Environment;
use crate::{Error, ErrorKind, Repository, Result, hooks};

pub use guarded::{GUARDED, GuardedSection};
pub use operation::{Operation, Operations};
pub use row::{KeyForm, LackingRow, ValueCondition};
pub use settings::SETTINGS;
pub use variables::VARIABLES;

/// The hook of operations that write the index, which none of them runs.
const INDEX_HOOK: &str = "post-index-change";

/// No row of [`SETTINGS`] has a longer name.
const LONGEST_NAME: usize = 64;

/// A setting, an environment variable or a hook that is in effect, and that an operation does not implement.
///
/// `Display` writes the kind and the name for users, without the value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lacking {
    /// Whether this is a setting, a variable or a hook.
    pub source: LackingSource,
    /// The key in canonical form, the name of the variable, or the event of the hook.
    pub name: BString,
    /// The value; `None` for hooks, and for keys without a value.
    pub value: Option<BString>,
    /// The effect in Git that the operation would not have.
    pub reason: &'static str,
}

/// The form of a [`Lacking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LackingSource {
    /// A configured variable.
    Setting,
    /// An environment variable.
    Variable,
    /// A hook: a file in the directory of hooks, or `hook.<name>.command`.
    Hook,
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = match self.source {
            LackingSource::Setting => "setting",
            LackingSource::Variable => "variable",
            LackingSource::Hook => "hook",
        };
        write!(f, "{noun} '{}'", self.name)
    }
}

impl Lacking {
    fn into_error(self) -> Error {
        let message = format!("{self} is not implemented natively: {}", self.reason);
        let hint = match self.source {
            LackingSource::Setting | LackingSource::Variable => {
                "unset it, or run git for this operation"
            }
            LackingSource::Hook => "remove it, or run git for this operation",
        };
        Error::new(ErrorKind::Unsupported, message).with_hint(hint)
    }
}

/// Returns all settings, variables and hooks that are in effect in `repository` and that `operation`, or an operation
/// that `operation` implies, does not implement. Costs a pass over the configuration at the first call for a repository,
/// and another pass if the result is not empty. Any thread may call this function.
pub fn check(repository: &Repository, operation: Operation) -> Vec<Lacking> {
    let mut all = Vec::new();
    if lacking_of(repository).intersects(operation.with_implied()) {
        all = check_settings(operation, repository.config(), repository.environment());
    }
    all.extend(lacking_hook(operation, repository));
    all
}

/// Fails if the result of [`check`] is not empty. Costs a pass over the configuration at the first call for a repository,
/// and nothing later; for operations that write the index also one system call. Any thread may call this function.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`]. The message names the first setting, variable or hook and the reason, and the
/// hint advises how to continue.
pub fn require(repository: &Repository, operation: Operation) -> Result<()> {
    let wanted = operation.with_implied();
    if lacking_of(repository).intersects(wanted) {
        require_settings(operation, repository.config(), repository.environment())?;
    }
    match lacking_hook(operation, repository) {
        None => Ok(()),
        Some(hook) => Err(hook.into_error()),
    }
}

/// Does the same as [`check`] for an operation that works without a repository or creates one, with the given
/// configuration and environment. Costs a pass over both. Hooks are not checked.
pub fn check_settings(
    operation: Operation,
    config: &Config,
    environment: &Environment,
) -> Vec<Lacking> {
    let mut all: Vec<Lacking> = Vec::new();
    for found in found(config, environment) {
        if found.operations.intersects(operation.with_implied()) {
            let lacking = found.into_lacking();
            if !all.contains(&lacking) {
                all.push(lacking);
            }
        }
    }
    all
}

/// Does the same as [`require`] for an operation that works without a repository or creates one, with the given
/// configuration and environment. Costs a pass over both. Hooks are not checked.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`], as [`require`] does.
pub fn require_settings(
    operation: Operation,
    config: &Config,
    environment: &Environment,
) -> Result<()> {
    let wanted = operation.with_implied();
    match found(config, environment).find(|found| found.operations.intersects(wanted)) {
        None => Ok(()),
        Some(found) => Err(found.into_lacking().into_error()),
    }
}

/// Returns the operations that do not implement a setting or a variable of `repository`.
fn lacking_of(repository: &Repository) -> Operations {
    *repository.lacking.get_or_init(|| {
        let all = found(repository.config(), repository.environment());
        all.fold(Operations::NONE, |all, found| all.or(found.operations))
    })
}

fn lacking_hook(operation: Operation, repository: &Repository) -> Option<Lacking> {
    let may_lack = operation.with_implied().contains(Operation::RefreshIndex);
    let lacks = may_lack
        && *repository
            .has_index_hook
            .get_or_init(|| hooks::exists(repository, INDEX_HOOK));
    lacks.then(|| Lacking {
        source: LackingSource::Hook,
        name: INDEX_HOOK.into(),
        value: None,
        reason: "pronto does not run this hook after it changes the index",
    })
}

/// A row that is in effect.
struct EffectiveRow<'a> {
    operations: Operations,
    source: LackingSource,
    name: &'a BStr,
    value: Option<&'a BStr>,
    reason: &'static str,
}

impl EffectiveRow<'_> {
    fn into_lacking(self) -> Lacking {
        Lacking {
            source: self.source,
            name: self.name.to_owned(),
            value: self.value.map(ToOwned::to_owned),
            reason: self.reason,
        }
    }
}

/// Returns the rows that are in effect: variables in the order of their names, then settings in reading order.
fn found<'a>(
    config: &'a Config,
    environment: &'a Environment,
) -> impl Iterator<Item = EffectiveRow<'a>> + 'a {
    let variables = environment.with_prefix("GIT_");
    let variables = variables.filter_map(|(name, value)| variable(name, value));
    variables.chain(config.iter().filter_map(|entry| setting(config, &entry)))
}

fn variable<'a>(name: &'a [u8], value: &'a [u8]) -> Option<EffectiveRow<'a>> {
    let row = find(VARIABLES, name)?;
    let (name, value) = (name.as_bstr(), Some(value.as_bstr()));
    row.when.holds(value).then_some(EffectiveRow {
        operations: row.operations,
        source: LackingSource::Variable,
        name,
        value,
        reason: row.reason,
    })
}

fn setting<'a>(config: &'a Config, entry: &ConfigEntry<'a>) -> Option<EffectiveRow<'a>> {
    let key = ConfigKey::split(entry.key);
    let mut found = EffectiveRow {
        operations: Operations::NONE,
        source: LackingSource::Setting,
        name: entry.key,
        value: entry.value,
        reason: "",
    };
    if let Some(row) = find_setting(&key) {
        // The last value counts.
        found.value = config.entry_of(entry.key).and_then(|last| last.value);
        if row.place.admits(&key) && row.when.holds(found.value) {
            (found.operations, found.reason) = (row.operations, row.reason);
            return Some(found);
        }
    }
    let guarded = guarded::find(&key)?;
    (found.operations, found.reason) = (guarded.operations, guarded::REASON);
    Some(found)
}

fn find_setting(key: &ConfigKey<'_>) -> Option<&'static LackingRow> {
    let mut name = [0; LONGEST_NAME];
    let (section, variable) = (key.section.as_bytes(), key.variable.as_bytes());
    let name = name.get_mut(..section.len() + 1 + variable.len())?;
    name[..section.len()].copy_from_slice(section);
    name[section.len()] = b'.';
    name[section.len() + 1..].copy_from_slice(variable);
    find(SETTINGS, name)
}

fn find(rows: &'static [LackingRow], name: &[u8]) -> Option<&'static LackingRow> {
    let at = rows
        .binary_search_by(|row| row.name.as_bytes().cmp(name))
        .ok()?;
    Some(&rows[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_in_lower_case() {
        assert!(VARIABLES.is_sorted_by_key(|row| row.name));
        assert!(VARIABLES.iter().all(|row| row.name.starts_with("GIT_")));
        assert!(SETTINGS.is_sorted_by_key(|row| row.name));
        for row in SETTINGS {
            assert_eq!(row.name, row.name.to_ascii_lowercase());
            assert!(row.name.len() <= LONGEST_NAME, "{}", row.name);
            let parts = row.name.split_once('.').expect("a section and a variable");
            assert!(
                !parts.0.is_empty() && !parts.1.contains('.'),
                "{}",
                row.name
            );
        }
        for guarded in GUARDED {
            assert!(guarded.known.is_sorted(), "{}", guarded.section);
        }
    }

    #[test]
    fn every_row_has_operations_and_a_reason() {
        for row in SETTINGS.iter().chain(VARIABLES) {
            assert!(row.operations != Operations::NONE, "{}", row.name);
            assert!(!row.reason.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn an_operation_implies_what_its_parts_imply() {
        let fetch = Operation::Fetch.with_implied();
        for implied in [
            Operation::Fetch,
            Operation::FetchPack,
            Operation::Connect,
            Operation::WriteRefs,
            Operation::Read,
        ] {
            assert!(fetch.contains(implied), "{implied:?}");
        }
        assert!(!fetch.contains(Operation::RefreshIndex));
        let switch = Operation::Switch.with_implied();
        assert!(switch.contains(Operation::RefreshIndex));
    }
}
