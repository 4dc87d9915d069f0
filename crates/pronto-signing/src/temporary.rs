//! A directory for the files that a program reads and writes, which no other user can enter.

use std::fs::{DirBuilder, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pronto_config::Environment;
use pronto_io::cleanup::Guard;

/// A private directory. Dropping it, or the end of the process, removes it with its files.
pub(crate) struct Temporary {
    path: PathBuf,
    _guard: Guard,
}

impl Temporary {
    /// Makes a directory below `TMPDIR`, or below `/tmp`.
    ///
    /// # Errors
    /// Those of `mkdir(2)`.
    pub(crate) fn new(environment: &Environment) -> io::Result<Self> {
        let parent = environment.path("TMPDIR");
        let parent = parent.filter(|path| !path.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("/tmp"));
        let parent = environment.absolute(parent);
        let random = RandomState::new();
        let mut attempt = 0_u32;
        loop {
            let number = random.hash_one((std::process::id(), attempt));
            let path = parent.join(format!(".git_signing_{number:016x}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let _guard = Guard::new(&path);
                    return Ok(Temporary { path, _guard });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes a new file that only this user can read. Returns its path.
    ///
    /// # Errors
    /// Those of `open(2)` and `write(2)`.
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
