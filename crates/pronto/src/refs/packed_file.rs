//! Writing `packed-refs`: its lock, its text, and the file that takes its place.
//!
//! The lock outlives the moment when the new file is in place: whoever deletes references holds it
//! until their own files are gone too, so that nobody packs these meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as Io, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteVec};
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::packed::PackedRef;
use super::transaction::timeout;
use crate::durability::Component;
use crate::lock::Lock;
use crate::{ErrorKind, Repository, Result};

/// The first line of the file: all tags are peeled, the names sorted.
const HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";

/// The lock of `packed-refs`, and what takes the place of the file.
#[derive(Debug)]
pub(super) struct PackedLock {
    replacement: Option<Replacement>,
    lock: Lock,
}

impl PackedLock {
    /// Takes the lock; waits for `core.packedRefsTimeout`.
    pub(super) fn acquire(repository: &Repository) -> Result<Self> {
        let patience = timeout(repository.config(), "core.packedrefstimeout", 1000);
        let mut lock = Lock::acquire(repository.common_dir().join("packed-refs"), patience)?;
        lock.close();
        Ok(PackedLock {
            replacement: None,
            lock,
        })
    }

    /// Writes `text` beside the file.
    pub(super) fn write(&mut self, repository: &Repository, text: &[u8]) -> Result<()> {
        let mut new = self.lock.target().to_owned().into_os_string();
        new.push(".new");
        let mut replacement = Replacement::create(PathBuf::from(new))?;
        let file = &mut replacement.file;
        let written = file.write_all(text);
        let sync = repository.fsync()?.of(Component::Reference);
        let written = written.and_then(|()| sync.apply(file));
        written.context(ErrorKind::Io, "unable to write", &replacement.path)?;
        self.replacement = Some(replacement);
        Ok(())
    }

    /// Puts what was written in place, if anything was. The lock stays until the value is dropped.
    pub(super) fn put_in_place(&mut self) -> Result<()> {
        match self.replacement.take() {
            Some(replacement) => replacement.rename(self.lock.target()),
            None => Ok(()),
        }
    }
}

/// A new file: without a name where the file system can do that, so that a killed process leaves
/// nothing that stands in Git's way.
#[derive(Debug)]
struct Replacement {
    file: File,
    path: PathBuf,
    guard: Option<Guard>,
}

impl Replacement {
    fn create(path: PathBuf) -> Result<Self> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)) {
            return Ok(Replacement {
                file: file.into(),
                path,
                guard: None,
            });
        }
        let guard = Guard::new(&path);
        let file = create_named(&path).context(ErrorKind::Io, "unable to create file", &path)?;
        Ok(Replacement {
            file,
            path,
            guard: Some(guard),
        })
    }

    fn rename(self, target: &Path) -> Result<()> {
        let guard = match self.guard {
            Some(guard) => guard,
            None => {
                let linked = link(&self.file, &self.path);
                linked.context(ErrorKind::Io, "unable to create file", &self.path)?;
                Guard::new(&self.path)
            }
        };
        let renamed = std::fs::rename(&self.path, target);
        renamed.context(ErrorKind::Io, "error replacing", target)?;
        guard.keep();
        Ok(())
    }
}

/// Creates `path`. One that is there was left by a killed process: whoever writes holds the lock.
fn create_named(path: &Path) -> std::io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match create() {
        Err(error) if error.kind() == Io::AlreadyExists => {
            std::fs::remove_file(path)?;
            create()
        }
        other => other,
    }
}

/// Gives the nameless `file` the name `path`, as [`create_named`] would.
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = || rustix::fs::linkat(CWD, &own, CWD, path, AtFlags::SYMLINK_FOLLOW);
    match link() {
        Err(Errno::EXIST) => {
            rustix::fs::unlink(path)?;
            link()
        }
        other => other,
    }
}

/// The text of a file, as it grows. The records must come sorted by name.
#[derive(Debug)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// A file without references.
    pub(super) fn new() -> Self {
        Text(HEADER.into())
    }

    /// Adds one reference.
    pub(super) fn push(&mut self, record: &PackedRef<'_>) {
        self.0.push_str(format!("{} ", record.id));
        self.0.push_str(record.name);
        self.0.push(b'\n');
        if let Some(peeled) = record.peeled {
            self.0.push_str(format!("^{peeled}\n"));
        }
    }

    /// The bytes of the file.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The text of a whole file; the records must be sorted by name.
pub(super) fn whole<'a>(
    records: impl Iterator<Item = (&'a BStr, ObjectId, Option<ObjectId>)>,
) -> Vec<u8> {
    let mut text = Text::new();
    for (name, id, peeled) in records {
        text.push(&PackedRef { name, id, peeled });
    }
    text.into_bytes()
}
