//! Edits of the repository's configuration file for changes of remotes.

use bstr::{BStr, BString, ByteSlice};

use super::StaleDefault;
use crate::config::edit::{self, Document, EditRefusal};
use crate::config::{ConfigScope, canonical};
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::Notice;

/// The message for a value that cannot be set.
pub(super) fn cannot_set(key: &BStr, value: &BStr) -> String {
    format!("could not set '{key}' to '{value}'")
}

/// The message for a value that cannot be removed.
pub(super) fn cannot_unset(key: &BStr) -> String {
    format!("could not unset '{key}'")
}

/// Edits the configuration file of `repository` under its lock. `failure` is the error message if
/// the file cannot be locked, read or written.
///
/// # Errors
/// Fails with `failure` as message if the file cannot be locked, read or written, or with the error
/// of `change`. The file is unchanged then.
pub(super) fn edit<T>(
    repository: &Repository,
    failure: &str,
    change: impl FnOnce(&mut Document) -> Result<T>,
) -> Result<T> {
    let path = repository.common_dir().join("config");
    let display_path = crate::path::as_bytes(&repository.display_path(&path)).to_owned();
    let edited = edit::edit_file(&path, display_path.as_bstr(), repository.config(), change);
    edited.map_err(|error| match error.kind() {
        ErrorKind::Locked | ErrorKind::Io | ErrorKind::Config => {
            Error::new(error.kind(), failure).reported_after(error.to_string())
        }
        _ => error,
    })
}

/// Sets `key` to `value`, replacing the value for which `counts` returns true.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if several values match. The error is reported with Git's
/// message.
pub(super) fn set(
    repository: &Repository,
    document: &mut Document,
    change: &SetValue<'_>,
    counts: impl Fn(&BStr) -> bool,
) -> Result<()> {
    let (key, value) = (change.key, change.value);
    check(key, || cannot_set(key, value))?;
    document
        .set(key, value, false, counts)
        .map_err(|refusal| refused(repository, key, refusal, cannot_set(key, value)))
}

/// A setting to write, with the values that it replaces.
pub(super) struct SetValue<'a> {
    pub(super) key: &'a BStr,
    pub(super) value: &'a BStr,
}

/// Adds `value` to the values of `key`. An empty value is replaced.
///
/// # Errors
/// The same as for [`set`].
pub(super) fn append(
    repository: &Repository,
    document: &mut Document,
    change: &SetValue<'_>,
) -> Result<()> {
    set(repository, document, change, |value| value.is_empty())
}

/// Removes all values of `key` for which `counts` returns true. Returns whether there were any.
pub(super) fn unset_all(
    document: &mut Document,
    key: &BStr,
    counts: impl Fn(&BStr) -> bool,
) -> Result<bool> {
    check(key, || cannot_unset(key))?;
    Ok(document.unset(key, true, counts).is_ok())
}

/// Removes the only value of `key`, if there is one.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if there are several values.
pub(super) fn unset(repository: &Repository, document: &mut Document, key: &BStr) -> Result<()> {
    check(key, || cannot_unset(key))?;
    match document.unset(key, false, |_| true) {
        Err(EditRefusal::Multiple) => {
            let failure = cannot_unset(key);
            Err(refused(repository, key, EditRefusal::Multiple, failure))
        }
        _ => Ok(()),
    }
}

/// Checks that `key` is a valid configuration key.
fn check(key: &BStr, failure: impl Fn() -> String) -> Result<()> {
    match canonical(key) {
        Ok(_) => Ok(()),
        Err(error) => {
            let failed = Error::new(ErrorKind::InvalidInput, failure());
            Err(failed.reported_after(error.message()))
        }
    }
}

fn refused(repository: &Repository, key: &BStr, refusal: EditRefusal, failure: String) -> Error {
    if refusal == EditRefusal::Multiple {
        let key = canonical(key).unwrap_or_else(|_| key.to_owned());
        repository.notify(Notice::MultipleValues(key));
    }
    Error::new(ErrorKind::Refused, failure)
}

/// Changes `remote.pushDefault` from `old` to `new`, or removes the setting, if the repository's
/// file configures it. Returns the setting of another file that still names `old`.
///
/// # Errors
/// Fails if the file has several values of `remote.pushDefault`.
pub(super) fn change_push_default(
    repository: &Repository,
    document: &mut Document,
    old: &BStr,
    new: Option<&BStr>,
) -> Result<Option<StaleDefault>> {
    let key = BStr::new("remote.pushDefault");
    let entries = repository.config().entries(key);
    let Some(entry) = entries.rev().find(|entry| entry.value == Some(old)) else {
        return Ok(None);
    };
    match entry.origin.scope {
        ConfigScope::Local | ConfigScope::Worktree => {
            match new {
                Some(value) => {
                    set(repository, document, &SetValue { key, value }, |_| true)?;
                }
                None => unset(repository, document, key)?,
            }
            Ok(None)
        }
        ConfigScope::Command => Ok(None),
        scope => Ok(Some(StaleDefault {
            scope,
            source: entry.origin.prefix(),
            line: entry.line,
            name: BString::from(old),
        })),
    }
}
