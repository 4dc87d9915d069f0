//! A new file that atomically replaces another file.
//!
//! A replacement differs from a committed [`LockFile`](crate::lock_file::LockFile): the lock file
//! of the path remains, with its mark, until its holder releases the lock.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind as Io};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::cleanup::Guard;

/// The directory in which the kernel lists the open files of this process. An unnamed file is
/// linked through it.
const OWN_DESCRIPTORS: &str = "/proc/self/fd";

/// A new file, which has no name (`O_TMPFILE`) if the file system supports that, so that a killed
/// process leaves no file. Dropping the value removes the file.
///
/// Only one process at a time may create a replacement of the same path, so the process must hold a
/// lock.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    path: PathBuf,
    guard: Option<Guard>,
}

impl Replacement {
    /// Creates an empty file. Its name is `path`: from the start if the file system has no unnamed
    /// files, else only for the moment before the rename. An existing file at `path` is removed,
    /// because a killed process has left it.
    ///
    /// Costs two system calls.
    ///
    /// # Errors
    /// Fails with the errors of the system.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let can_be_named = Path::new(OWN_DESCRIPTORS).exists();
        if can_be_named
            && let Ok(file) = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666))
        {
            return Ok(Replacement {
                file: file.into(),
                path,
                guard: None,
            });
        }
        let guard = Guard::new(&path);
        let file = create_named(&path)?;
        Ok(Replacement {
            file,
            path,
            guard: Some(guard),
        })
    }

    /// Returns the open file, for writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the name that the file has before the rename.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file to `target`, which must be on the same file system.
    ///
    /// Costs two system calls.
    ///
    /// # Errors
    /// Fails with the errors of the system; `target` is then unchanged.
    pub fn rename_to(self, target: &Path) -> io::Result<()> {
        let guard = match self.guard {
            Some(guard) => guard,
            None => {
                link(&self.file, &self.path)?;
                Guard::new(&self.path)
            }
        };
        std::fs::rename(&self.path, target)?;
        guard.keep();
        Ok(())
    }
}

fn create_named(path: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match create() {
        Err(error) if error.kind() == Io::AlreadyExists => {
            std::fs::remove_file(path)?;
            create()
        }
        other => other,
    }
}

/// Links the unnamed `file` to `path`, and replaces an existing file like [`create_named`].
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    let own = format!("{OWN_DESCRIPTORS}/{}", file.as_raw_fd());
    let link = || rustix::fs::linkat(CWD, &own, CWD, path, AtFlags::SYMLINK_FOLLOW);
    match link() {
        Err(Errno::EXIST) => {
            rustix::fs::unlink(path)?;
            link()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn takes_the_place_of_a_file_and_of_what_was_left_under_its_name() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (target, name) = (scratch.path().join("a"), scratch.path().join("a.new"));
        std::fs::write(&target, "old").expect("a file");
        std::fs::write(&name, "left by a killed process").expect("a file");
        let replacement = Replacement::create(name.clone()).expect("a file");
        replacement.file().write_all(b"new").expect("it is written");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"old");
        replacement.rename_to(&target).expect("it is renamed");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"new");
        assert!(!name.exists());
    }
}
