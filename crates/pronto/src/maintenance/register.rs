//! Registers repositories for scheduled maintenance, in the user's list `maintenance.repo`.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use crate::config::edit::{edit_file, set_in_file};
use crate::config::{ConfigScope, Loader};
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_repository::Notice;

const KEY: &str = "maintenance.repo";

/// The configuration file that holds the list.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceList {
    /// The configuration file to change (`--config-file`); `None` means the user's global
    /// configuration.
    pub config_file: Option<PathBuf>,
}

/// Adds the repository to `maintenance.repo`, and disables automatic maintenance in it
/// (`maintenance.auto=false`), unless both are set already (`git maintenance register`).
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if a configuration file cannot be read or written.
pub fn register(repository: &Repository, registration: &MaintenanceList) -> Result<()> {
    let own = maintained_path(repository)?;
    let local = repository.git_path("config");
    set_in_file(
        &local,
        "maintenance.auto",
        "false".into(),
        repository.config(),
    )?;
    if !repository.config().contains("maintenance.strategy") {
        set_in_file(
            &local,
            "maintenance.strategy",
            "incremental".into(),
            repository.config(),
        )?;
    }
    // As in Git, a list that has an entry without a value counts as empty.
    if listed(repository, None)?.contains(&own) {
        return Ok(());
    }
    let file = list_file(repository, registration)?;
    let failed = |error: Error| {
        let message = format!("unable to add '{KEY}' value of '{own}'");
        Error::new(ErrorKind::Config, message).because(error)
    };
    let edited = edit_file(
        &file,
        path::as_bytes(&file),
        repository.config(),
        |document| {
            document.add(KEY.into(), own.as_bstr());
            Ok(())
        },
    );
    edited.map_err(failed)
}

/// Removes the repository from `maintenance.repo` (`git maintenance unregister`). Returns `false`
/// if it was not registered.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if a configuration file cannot be read or written.
pub fn unregister(repository: &Repository, registration: &MaintenanceList) -> Result<bool> {
    let own = maintained_path(repository)?;
    let listed = listed(repository, registration.config_file.as_deref())?;
    if !listed.contains(&own) {
        return Ok(false);
    }
    let failed = || {
        let message = format!("unable to unset '{KEY}' value of '{own}'");
        Error::new(ErrorKind::Config, message)
    };
    let file = list_file(repository, registration)?;
    let removed = edit_file(
        &file,
        path::as_bytes(&file),
        repository.config(),
        |document| Ok(document.unset(KEY.into(), true, |value| value == own)),
    );
    match removed {
        Ok(Ok(())) => Ok(true),
        Ok(Err(_)) => Err(failed()),
        Err(error) => Err(failed().because(error)),
    }
}

/// Returns the real path of this repository, as `maintenance.repo` records it.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the directory no longer exists.
pub fn maintained_path(repository: &Repository) -> Result<BString> {
    let place = repository.work_tree().unwrap_or(repository.git_dir());
    let real = std::fs::canonicalize(place).map_err(|error| {
        let message = format!("cannot find '{}'", place.display());
        Error::new(ErrorKind::Io, message).because(error)
    })?;
    Ok(path::as_bytes(&real).into())
}

/// Returns the values of `maintenance.repo`. If an entry has no value, sends a notice and returns
/// no values.
fn listed(repository: &Repository, file: Option<&Path>) -> Result<Vec<BString>> {
    let other = match file {
        Some(file) => {
            let mut loader = Loader::new(repository.environment(), None);
            loader.file(repository.environment().resolve(file), ConfigScope::Unknown);
            Some(loader.load()?)
        }
        None => None,
    };
    let config = other.as_ref().unwrap_or(repository.config());
    let values: Option<Vec<BString>> = config
        .entries(KEY)
        .map(|entry| entry.value.map(BStr::to_owned))
        .collect();
    Ok(values.unwrap_or_else(|| {
        let message = format!("missing value for '{KEY}'");
        repository.notify(Notice::Failure(Error::new(ErrorKind::Config, message)));
        Vec::new()
    }))
}

fn list_file(repository: &Repository, registration: &MaintenanceList) -> Result<PathBuf> {
    let given = registration.config_file.as_ref();
    let given = given.map(|file| repository.environment().resolve(file));
    let file = given.or_else(|| Loader::global_file(repository.environment()));
    file.ok_or_else(|| Error::new(ErrorKind::Config, "$HOME not set"))
}
