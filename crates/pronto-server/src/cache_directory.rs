//! The directory of cached packs, which must exist before the first pack needs it.

use std::io::ErrorKind as Io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Access, access};

use crate::config::CacheConfig;
use crate::{Error, ErrorKind, Result};

/// The advice for a directory that cannot be used.
const ADVICE: &str =
    "set 'directory' in [cache] to a writable directory, or 'bytes = 0' to disable the cache";

/// The mode bit of a directory in which users cannot remove files of other users.
const STICKY: u32 = 0o1000;

/// Checks that packs can be cached: the directory exists or can be created, belongs to this user,
/// to root or to all users, and permits the creation of files. The check leaves no file.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if one of these conditions does not hold.
pub(crate) fn check(cache: &CacheConfig) -> Result<()> {
    if cache.bytes == 0 {
        return Ok(());
    }
    let directory = &cache.directory;
    match std::fs::metadata(directory) {
        Ok(_) => usable(directory),
        Err(error) if error.kind() == Io::NotFound => {
            let above = directory.parent().unwrap_or(Path::new("/"));
            match access(above, Access::WRITE_OK | Access::EXEC_OK) {
                Ok(()) => Ok(()),
                Err(error) => Err(unusable(directory, "cannot be created", &error.into())),
            }
        }
        Err(error) => Err(unusable(directory, "cannot be used", &error)),
    }
}

/// Creates the directory if it does not exist, for this user only, and checks it.
///
/// # Errors
/// Fails for the same reasons as [`check`].
pub(crate) fn prepare(cache: &CacheConfig) -> Result<()> {
    if cache.bytes == 0 {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&cache.directory);
    match made {
        Err(error) if error.kind() != Io::AlreadyExists => {
            Err(unusable(&cache.directory, "cannot be created", &error))
        }
        _ => usable(&cache.directory),
    }
}

fn usable(directory: &Path) -> Result<()> {
    let found = std::fs::metadata(directory)
        .map_err(|error| unusable(directory, "cannot be used", &error))?;
    if !found.is_dir() {
        let error = Io::NotADirectory.into();
        return Err(unusable(directory, "cannot be used", &error));
    }
    let own = rustix::process::geteuid();
    // In a directory for all users, each user has separate files.
    let is_for_all = found.mode() & STICKY != 0;
    let is_own = own.is_root() || found.uid() == own.as_raw() || found.uid() == 0;
    if !is_own && !is_for_all {
        let message = format!(
            "cache directory '{}' belongs to another user, who could read the cached packs",
            directory.display()
        );
        return Err(Error::new(ErrorKind::Config, message).with_hint(ADVICE));
    }
    match tempfile::tempfile_in(directory) {
        Ok(_) => Ok(()),
        Err(error) => Err(unusable(directory, "is not writable", &error)),
    }
}

fn unusable(directory: &Path, what: &str, error: &std::io::Error) -> Error {
    let message = format!(
        "cache directory '{}' {what}: {}",
        directory.display(),
        pronto_io::error::reason(error)
    );
    Error::new(ErrorKind::Config, message).with_hint(ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_checked_without_a_trace_and_made_once() {
        let folder = tempfile::tempdir().expect("a directory");
        let cache = |name: &str, bytes| CacheConfig {
            directory: folder.path().join(name),
            bytes,
            ..CacheConfig::default()
        };
        let new = cache("new", 1);
        check(&new).expect("it can be made");
        assert!(!new.directory.exists());
        prepare(&new).expect("it can be made");
        prepare(&new).expect("it is there");
        check(&new).expect("it is there");
        let mut left = std::fs::read_dir(&new.directory).expect("readable");
        assert!(left.next().is_none(), "nothing is left");
        std::fs::write(folder.path().join("file"), "x").expect("a file");
        for (name, expected) in [
            ("file", "not a directory"),
            ("file/below", "not a directory"),
            ("no/such", "no such file"),
        ] {
            for result in [check(&cache(name, 1)), prepare(&cache(name, 1))] {
                let text = result.expect_err(name).to_string().to_lowercase();
                assert!(text.contains(expected), "{name}: {text}");
            }
            check(&cache(name, 0)).expect("no packs are kept");
        }
    }
}
