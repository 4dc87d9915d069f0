//! Writing `packed-refs`: its lock, its text, and the file that replaces it.
//!
//! The lock is held beyond the replacement: a process that deletes refs holds it until their loose
//! files are gone, so that no other process packs them meanwhile.

use std::io::Write;
use std::path::PathBuf;

use bstr::{BStr, ByteVec};
use pronto_hash::ObjectId;
use pronto_io::error::IoContext;
use pronto_io::replacement::Replacement;

use super::Host;
use super::packed::PackedRef;
use super::patience::timeout;
use pronto_config::durability::Component;
use pronto_config::lock::Lock;
use pronto_config::{ErrorKind, Result};

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
    pub(super) fn acquire(repository: &dyn Host) -> Result<Self> {
        let patience = timeout(repository.config(), "core.packedrefstimeout", 1000)?;
        let mut lock = Lock::acquire(repository.refs().common_dir.join("packed-refs"), patience)?;
        lock.close();
        Ok(PackedLock {
            replacement: None,
            lock,
        })
    }

    /// Writes `text` beside the file.
    pub(super) fn write(&mut self, repository: &dyn Host, text: &[u8]) -> Result<()> {
        let mut new = self.lock.target().to_owned().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let created = Replacement::create(new.clone());
        let replacement = created.context(ErrorKind::Io, "unable to create file", &new)?;
        let mut file = replacement.file();
        let written = file.write_all(text);
        let sync = repository.fsync()?.of(Component::Reference);
        let written = written.and_then(|()| sync.apply(file));
        written.context(ErrorKind::Io, "unable to write", &new)?;
        self.replacement = Some(replacement);
        Ok(())
    }

    /// Puts what was written in place, if anything was. The lock stays until the value is dropped.
    pub(super) fn put_in_place(&mut self) -> Result<()> {
        match self.replacement.take() {
            Some(replacement) => {
                let target = self.lock.target();
                let renamed = replacement.put_in_place_of(target);
                renamed.context(ErrorKind::Io, "error replacing", target)
            }
            None => Ok(()),
        }
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
