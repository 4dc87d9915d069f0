//! Writes `packed-refs`: the lock, the text of the file, and the replacement of the file.
//!
//! The lock is held beyond the replacement: a process that deletes refs holds the lock until their
//! loose files are gone, so that no other process packs them meanwhile.

use std::io::Write;
use std::path::PathBuf;

use bstr::{BStr, ByteVec};
use pronto_hash::ObjectId;
use pronto_io::error::IoContext;
use pronto_io::replacement::Replacement;

use super::RefHost;
use super::packed::PackedRef;
use super::patience::timeout;
use pronto_config::durability::Component;
use pronto_config::lock::Lock;
use pronto_config::{ErrorKind, Result};

/// The header line of the file: all tags are peeled, and the refs are sorted by name.
const HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";

/// The lock of `packed-refs`, and the file that will replace `packed-refs`.
#[derive(Debug)]
pub(super) struct PackedLock {
    replacement: Option<Replacement>,
    lock: Lock,
}

impl PackedLock {
    /// Takes the lock. Waits up to `core.packedRefsTimeout`.
    pub(super) fn acquire(repository: &dyn RefHost) -> Result<Self> {
        let patience = timeout(repository.config(), "core.packedrefstimeout", 1000)?;
        let lock = Lock::acquire(repository.refs().common_dir.join("packed-refs"), patience)?;
        let mut lock = lock.recorded(repository.config());
        lock.close();
        Ok(PackedLock {
            replacement: None,
            lock,
        })
    }

    /// Writes `text` to `packed-refs.new`, beside the current file.
    pub(super) fn write(&mut self, repository: &dyn RefHost, text: &[u8]) -> Result<()> {
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

    /// Replaces `packed-refs` with the written file, if there is one. The lock is held until the
    /// value is dropped.
    pub(super) fn rename_into_place(&mut self) -> Result<()> {
        match self.replacement.take() {
            Some(replacement) => {
                let target = self.lock.target();
                let renamed = replacement.rename_to(target);
                renamed.context(ErrorKind::Io, "error replacing", target)
            }
            None => Ok(()),
        }
    }
}

/// The text of `packed-refs` under construction. The refs must be added in order of names.
#[derive(Debug)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// Returns the text of a file without refs.
    pub(super) fn new() -> Self {
        Text(HEADER.into())
    }

    /// Appends one ref.
    pub(super) fn push(&mut self, record: &PackedRef<'_>) {
        self.0.push_str(format!("{} ", record.id));
        self.0.push_str(record.name);
        self.0.push(b'\n');
        if let Some(peeled) = record.peeled {
            self.0.push_str(format!("^{peeled}\n"));
        }
    }

    /// Returns the bytes of the file.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Returns the text of a whole file; the records must be sorted by name.
pub(super) fn whole<'a>(
    records: impl Iterator<Item = (&'a BStr, ObjectId, Option<ObjectId>)>,
) -> Vec<u8> {
    let mut text = Text::new();
    for (name, id, peeled) in records {
        text.push(&PackedRef { name, id, peeled });
    }
    text.into_bytes()
}
