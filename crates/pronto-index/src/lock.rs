//! `index.lock`: the file that keeps others from writing the index, and becomes the new one.

use crate::error::{Error, ErrorKind};
use crate::index::Identity;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The lock is held while this lives, and given back when it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The index itself, with symbolic links followed.
    index: PathBuf,
    path: PathBuf,
    guard: Guard,
}

/// Links followed before a chain of them is given up as endless.
const LONGEST_CHAIN: usize = 5;

impl Lock {
    /// Takes the lock of the index at `index`. The file need not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] in Git's words if someone else holds it, [`ErrorKind::Io`] if it
    /// cannot be made.
    pub fn acquire(index: &Path) -> Result<Lock, Error> {
        let index = follow(index);
        let mut path = index.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => Ok(Lock {
                file,
                index,
                guard: Guard::new(&path),
                path,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::new(
                ErrorKind::Locked,
                format!("Unable to create '{}': File exists.", absolute.display()),
            )
            .with_hint(
                "another process is changing this repository, or one ended without cleaning up;\n\
                 if no Git process is running here, remove the file and try again",
            )),
            failed => {
                failed.context(ErrorKind::Io, "Unable to create", &absolute)?;
                unreachable!("both other outcomes are taken")
            }
        }
    }

    /// Writes `bytes` as the new index and puts it in place.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; the old index then stays and the lock is gone.
    pub fn commit(mut self, bytes: &[u8]) -> Result<Identity, Error> {
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.metadata());
        let metadata = written.context(ErrorKind::Io, "unable to write", &self.path)?;
        std::fs::rename(&self.path, &self.index).context(
            ErrorKind::Io,
            "unable to write new index file",
            &self.index,
        )?;
        self.guard.keep();
        Ok(Identity::of(&metadata))
    }

    /// Like [`commit`](Lock::commit), if the index is still the one that `read` identifies
    /// (`None`: there was no file). Otherwise nothing is written and the answer is `None`.
    ///
    /// # Errors
    /// As [`commit`](Lock::commit).
    pub fn commit_if_unchanged(
        self,
        bytes: &[u8],
        read: Option<Identity>,
    ) -> Result<Option<Identity>, Error> {
        let now = std::fs::metadata(&self.index)
            .ok()
            .map(|metadata| Identity::of(&metadata));
        if now != read {
            return Ok(None);
        }
        self.commit(bytes).map(Some)
    }

    /// The path of the lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The file that a symbolic link stands for, so that the rename does not replace the link.
fn follow(index: &Path) -> PathBuf {
    let mut path = index.to_owned();
    for _ in 0..LONGEST_CHAIN {
        let Ok(target) = std::fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}
