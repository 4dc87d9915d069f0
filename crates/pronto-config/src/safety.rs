//! Checks whether a repository of another user may be used: `safe.directory` and
//! `safe.bareRepository`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bstr::ByteSlice;

use crate::config::{Config, ConfigEntry, Loader};
use crate::environment::Environment;
use crate::{Error, ErrorKind, Result, path};

/// The paths of a discovered repository.
pub struct DiscoveredPaths<'a> {
    /// The `.git` file that points to the repository, if there is one.
    pub git_file: Option<&'a Path>,
    /// The directory that contains `.git`.
    pub work_tree: Option<&'a Path>,
    /// The directory of the repository.
    pub git_dir: &'a Path,
}

/// Checks that the repository belongs to the user, or that `safe.directory` permits its use.
///
/// # Errors
/// Fails with [`ErrorKind::Unsafe`] if the repository belongs to another user and `safe.directory`
/// does not permit it.
pub fn check_owner(found: &DiscoveredPaths<'_>, environment: &Environment) -> Result<()> {
    let pretend = environment.boolean("GIT_TEST_ASSUME_DIFFERENT_OWNER", false)?;
    let parts = [found.git_file, found.work_tree, Some(found.git_dir)];
    if !pretend
        && parts
            .into_iter()
            .flatten()
            .all(|part| is_owned(part, environment))
    {
        return Ok(());
    }
    let place = found.work_tree.unwrap_or(found.git_dir);
    let real = std::fs::canonicalize(place);
    if let Ok(real) = &real
        && is_allowed(real, &protected_config(environment)?, environment)
    {
        return Ok(());
    }
    let said = place.display();
    let mut quoted = Vec::new();
    pronto_io::shell::quote_if_needed_into(path::as_bytes(place), &mut quoted);
    let message = format!(
        "detected dubious ownership in repository at '{said}'\n\
         To add an exception for this directory, call:\n\n\
         \tgit config --global --add safe.directory {}",
        quoted.as_bstr()
    );
    Err(Error::new(ErrorKind::Unsafe, message))
}

/// Checks that `safe.bareRepository` permits a bare repository that was discovered, not named
/// explicitly.
///
/// # Errors
/// Fails with [`ErrorKind::Unsafe`] if `safe.bareRepository` requires that bare repositories are
/// named explicitly, or with [`ErrorKind::ConfigValue`] if a value of this setting is unknown.
pub fn check_bare(git_dir: &Path, environment: &Environment) -> Result<()> {
    pronto_io::data!("setup", "implicit-bare-repository", git_dir.display());
    let config = protected_config(environment)?;
    let mut entries = config.entries("safe.barerepository");
    let is_known = |entry: &ConfigEntry<'_>| {
        let value = entry.value.unwrap_or_default();
        value == "all" || value == "explicit"
    };
    if let Some(malformed) = entries.find(|entry| !is_known(entry)) {
        return Err(malformed.bad_variable());
    }
    let is_explicit = config
        .raw("safe.barerepository")
        .is_some_and(|value| value == "explicit");
    if !is_explicit || is_inside_ordinary(git_dir) {
        return Ok(());
    }
    let message = format!(
        "cannot use bare repository '{}' (safe.bareRepository is 'explicit')",
        git_dir.display()
    );
    Err(Error::new(ErrorKind::Unsafe, message))
}

/// Returns whether the path is inside of a `.git` directory, which does not count as a bare
/// repository.
fn is_inside_ordinary(git_dir: &Path) -> bool {
    let text = path::as_bytes(git_dir);
    text.ends_with(b"/.git")
        || text.contains_str("/.git/worktrees/")
        || text.contains_str("/.git/modules/")
}

/// Loads the protected configuration, which does not include that of the repository.
fn protected_config(environment: &Environment) -> Result<Config> {
    Loader::new(environment, None)
        .system()?
        .global()
        .command()
        .load()
}

fn is_owned(part: &Path, environment: &Environment) -> bool {
    let Ok(metadata) = part.symlink_metadata() else {
        return false;
    };
    let user = rustix::process::geteuid();
    if !user.is_root() || metadata.uid() == 0 {
        return metadata.uid() == user.as_raw();
    }
    let before_sudo = environment.text("SUDO_UID").and_then(|id| id.parse().ok());
    metadata.uid() == before_sudo.unwrap_or(0)
}

fn is_allowed(place: &Path, config: &Config, environment: &Environment) -> bool {
    let mut allowed = false;
    for entry in config.entries("safe.directory") {
        let value = entry.value.unwrap_or_default();
        if value.is_empty() {
            allowed = false;
            continue;
        }
        if value == "*" {
            allowed = true;
            continue;
        }
        if let Some(path) = path::expand_user(value, environment.home()) {
            allowed |= names(&path, place, environment);
        }
    }
    allowed
}

/// Returns whether a value of `safe.directory` names `place`, which must be a real path. The value
/// is resolved to a real path, too, so its spelling and symbolic links do not matter.
fn names(value: &Path, place: &Path, environment: &Environment) -> bool {
    if value == Path::new(".") {
        let here = std::fs::canonicalize(environment.current_dir());
        return here.is_ok_and(|here| here == place);
    }
    let (base, below) = match path::as_bytes(value).strip_suffix(b"/*") {
        Some(b"") => (path::from_bytes(b"/"), true),
        Some(base) => (path::from_bytes(base), true),
        None => (value.to_owned(), false),
    };
    if !base.is_absolute() {
        return false;
    }
    // A value that does not exist here may be meant for another machine.
    let Ok(base) = std::fs::canonicalize(&base) else {
        return false;
    };
    match below {
        true => place != base && place.starts_with(&base),
        false => place == base,
    }
}
