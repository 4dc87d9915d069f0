//! Verifies existing packs without writing (`git verify-pack`): checks their indexes, and lists
//! their entries.

use super::pipeline::{ReceivedPhase, duplicate};
use super::spool::SpoolStorage;
use super::{IndexContext, Options, index_given, rows};
use crate::entry::{Entry, MAX_HEADER_LEN};
use crate::error::{Error, ErrorKind};
use crate::idx::{self, PackIndex};
use crate::rev;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::view::{FileView, ViewAccess};
use std::io::{self, Write};
use std::path::Path;

/// A valid pack.
pub struct Checked {
    done: ReceivedPhase,
    store: SpoolStorage,
    kind: Kind,
}

/// One entry of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedEntry {
    /// The id of the object.
    pub id: ObjectId,
    /// The type of the object.
    pub kind: ObjectKind,
    /// The inflated size of the entry: of a delta, the size of its instructions.
    pub size_bytes: u64,
    /// The size of the entry in the pack in bytes.
    pub packed_bytes: u64,
    /// The start of the entry in the pack.
    pub offset: u64,
    /// The length of the chain of deltas below the entry.
    pub depth: u32,
    /// The delta base.
    pub base: Option<ObjectId>,
}

/// Indexes the pack in the file `pack` without writing files.
///
/// # Errors
/// Fails as [`index_file`](super::index_file) does.
pub fn check_file(
    pack: &Path,
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<Checked, Error> {
    let (done, store) = index_given(pack, options, context)?;
    Ok(Checked {
        done,
        store,
        kind: options.kind,
    })
}

impl Checked {
    /// Returns the checksum of the pack.
    pub fn checksum(&self) -> &ObjectId {
        &self.done.checksum
    }

    /// Returns whether `index` belongs to the pack.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Duplicate` if the pack contains an object twice, and if reading
    /// fails.
    pub fn has_index(&self, index: &PackIndex) -> Result<bool, Error> {
        let rows = rows(&self.done, self.kind);
        if let Some(pair) = rows
            .order
            .windows(2)
            .find(|pair| rows.id(pair[0]) == rows.id(pair[1]))
        {
            return Err(duplicate(&ObjectId::from_bytes_or_panic(rows.id(pair[0]))));
        }
        let mut comparison = FileComparison::with(index.view());
        idx::write::write_again(&mut comparison, &rows, index, &self.done.checksum)?;
        Ok(comparison.is_same())
    }

    /// Returns whether the file `reverse` is the correct reverse index of the pack. Also returns
    /// `true` if the file does not exist, because reverse indexes are optional.
    ///
    /// # Errors
    /// Fails if reading fails.
    pub fn has_reverse_index(&self, reverse: &Path) -> Result<bool, Error> {
        let view = match FileView::open(reverse, ViewAccess::Auto) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            opened => opened.context(ErrorKind::Io, "cannot open", reverse)?,
        };
        let mut comparison = FileComparison::with(&view);
        let places = crate::install::places(&self.done.order);
        rev::write(&mut comparison, self.kind, &places, &self.done.checksum).context(
            ErrorKind::Io,
            "cannot read",
            reverse,
        )?;
        Ok(comparison.is_same())
    }

    /// Returns all entries in pack order.
    ///
    /// # Errors
    /// Fails if reading fails.
    pub fn entries(&self) -> Result<Vec<VerifiedEntry>, Error> {
        let tables = &self.done.tables;
        let view = self.store.view()?;
        let mut buffer = Vec::new();
        let mut depths = vec![None; tables.len()];
        let mut entries = Vec::new();
        for index in 0..tables.len() as u32 {
            let (offset, packed) = tables.extent(index);
            let len = packed.min(MAX_HEADER_LEN);
            let bytes = view
                .read(offset, len, &mut buffer)
                .map_err(|error| unreadable(error, offset))?;
            let entry = Entry::parse(bytes, self.kind)?;
            let (root, depth) = self.trace(index, &mut depths);
            entries.push(VerifiedEntry {
                id: self.id(index),
                kind: tables.kind(root).unwrap_or(ObjectKind::Blob),
                size_bytes: entry.size_bytes,
                packed_bytes: packed as u64,
                offset,
                depth,
                base: tables.bases[index as usize]
                    .index()
                    .map(|base| self.id(base)),
            });
        }
        Ok(entries)
    }

    fn id(&self, index: u32) -> ObjectId {
        let len = self.kind.len_in_bytes();
        ObjectId::from_bytes_or_panic(&self.done.ids[index as usize * len..][..len])
    }

    /// Returns the end of the delta chain of the entry, and the length of the chain; `known` caches
    /// results.
    fn trace(&self, index: u32, known: &mut [Option<(u32, u32)>]) -> (u32, u32) {
        let mut way = Vec::new();
        let mut at = index;
        let (root, mut depth) = loop {
            if let Some(found) = known[at as usize] {
                break found;
            }
            match self.done.tables.bases[at as usize].index() {
                Some(base) => {
                    way.push(at);
                    at = base;
                }
                None => {
                    known[at as usize] = Some((at, 0));
                    break (at, 0);
                }
            }
        };
        for at in way.into_iter().rev() {
            depth += 1;
            known[at as usize] = Some((root, depth));
        }
        (root, depth)
    }
}

/// A writer that compares the written bytes with an existing file.
struct FileComparison<'a> {
    view: &'a FileView,
    at: u64,
    differs: bool,
    buffer: Vec<u8>,
}

impl<'a> FileComparison<'a> {
    fn with(view: &'a FileView) -> Self {
        FileComparison {
            view,
            at: 0,
            differs: false,
            buffer: Vec::new(),
        }
    }

    fn is_same(&self) -> bool {
        !self.differs && self.at == self.view.len()
    }
}

impl Write for FileComparison<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.at + bytes.len() as u64;
        self.differs |= end > self.view.len();
        if !self.differs {
            let there = self.view.read(self.at, bytes.len(), &mut self.buffer)?;
            self.differs = there != bytes;
        }
        self.at = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn unreadable(error: io::Error, offset: u64) -> Error {
    Error::new(ErrorKind::Io, "cannot read back the pack")
        .because(error)
        .at_offset(offset)
}
