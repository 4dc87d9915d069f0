//! A temporary directory for the files of a program, which no other user can access.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pronto_config::Environment;
use pronto_io::cleanup::Guard;

/// A private temporary directory, which is removed with its files when the value is dropped or the
/// process ends.
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    _guard: Guard,
}

impl PrivateDirectory {
    /// Creates a directory in `TMPDIR`, or in `/tmp`.
    ///
    /// # Errors
    /// Fails with the errors of `mkdir(2)`.
    pub(crate) fn new(environment: &Environment) -> io::Result<Self> {
        let parent = environment.path("TMPDIR");
        let parent = parent.filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("/tmp"));
        let parent = environment.absolute(parent);
        let made = tempfile::Builder::new()
            .prefix(".git_signing_")
            .tempdir_in(parent)?;
        let path = made.keep();
        let _guard = Guard::new(&path);
        Ok(PrivateDirectory { path, _guard })
    }

    /// Writes a new file that only this user can read. Returns its path.
    ///
    /// # Errors
    /// Fails with the errors of `open(2)` and `write(2)`.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(content)?;
        Ok(path)
    }
}
