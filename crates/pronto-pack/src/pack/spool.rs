//! Builds large deltified objects in files: each step of the chain is written to an unnamed file,
//! which is mapped as the base of the next step, so memory does not grow with the object.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::oid;
use pronto_io::error::IoContext as _;
use pronto_io::view::FileView;

use super::decode::base_of;
use super::{EntryReader, PackOffset, PackReader};
use crate::delta;
use crate::entry::{Entry, EntryHeader};
use crate::error::{Error, ErrorKind};
use crate::temporary::{mapped, unnamed};

/// An object in an unnamed file, whose file position is at the start.
#[derive(Debug)]
pub struct Spooled {
    /// The type of the object.
    pub kind: ObjectKind,
    /// The file with the content of the object.
    pub file: File,
    /// The size in bytes.
    pub size_bytes: u64,
}

/// A delta of the chain.
struct SpooledDelta {
    data_offset: u64,
    size_bytes: u64,
    offset: PackOffset,
}

impl PackReader {
    /// Builds the object at `offset` in an unnamed file in `directory`; `find` returns the offset
    /// in this pack of a base that is named by its id. Takes half a MiB of memory, independent of
    /// the size of the object. Writes the object once for each step of its chain.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt`, `ErrorKind::Truncated` or `ErrorKind::Missing` if the pack
    /// is damaged, and with `ErrorKind::Io` if the pack cannot be read or the file cannot be
    /// written.
    pub fn spool(
        self: &Arc<Self>,
        offset: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
        directory: &Path,
    ) -> Result<Spooled, Error> {
        let mut chain = Vec::new();
        let at = self.follow(offset, find, &mut |offset, entry| {
            chain.push(SpooledDelta {
                data_offset: offset.0 + entry.header_len as u64,
                size_bytes: entry.size_bytes,
                offset,
            });
        })?;
        let mut whole = self
            .reader(at)?
            .ok_or_else(|| self.corrupt("corrupt pack: delta chain has no base", at.0))?;
        let kind = whole.kind();
        let mut file = unnamed(directory, |out| self.copy(&mut whole, out, at))?;
        while let Some(link) = chain.pop() {
            file = self.step(file, &link, directory)?;
        }
        let size_bytes = file
            .metadata()
            .context(ErrorKind::Io, "cannot stat in", directory)?;
        Ok(Spooled {
            kind,
            file,
            size_bytes: size_bytes.len(),
        })
    }

    /// Returns the offset of the end of the chain of deltas that begins at `offset`: an object that
    /// is not a delta. Reads one header for each step.
    ///
    /// # Errors
    /// Fails as [`spool`](Self::spool) does, except for errors of writing.
    pub fn root(
        &self,
        offset: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
    ) -> Result<PackOffset, Error> {
        self.follow(offset, find, &mut |_, _| {})
    }

    /// Follows the chain from `offset` to an entry that is not a delta, and passes the deltas to
    /// the caller.
    fn follow(
        &self,
        offset: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
        visit: &mut dyn FnMut(PackOffset, &Entry),
    ) -> Result<PackOffset, Error> {
        let (mut at, mut length) = (offset, 0);
        loop {
            let entry = self.entry(at)?;
            if matches!(entry.header, EntryHeader::Object(_)) {
                return Ok(at);
            }
            if length >= self.len() {
                return Err(self.corrupt("corrupt pack: delta chain is a cycle", at.0));
            }
            visit(at, &entry);
            length += 1;
            at = base_of(self, at, &entry, find)?;
        }
    }

    /// Applies the delta `link` to the base in the file `base`. Returns the file with the result.
    fn step(
        self: &Arc<Self>,
        base: File,
        link: &SpooledDelta,
        directory: &Path,
    ) -> Result<File, Error> {
        let mut stream = self.stream(link.data_offset, link.size_bytes, ObjectKind::Blob);
        let delta = unnamed(directory, |out| self.copy(&mut stream, out, link.offset))?;
        let (delta, base) = (mapped(delta, directory)?, mapped(base, directory)?);
        let bytes = FileView::bytes;
        unnamed(directory, |out| {
            let (base, delta) = (bytes(&base), bytes(&delta));
            delta::apply_to(base.unwrap_or_default(), delta.unwrap_or_default(), out)
                .map_err(|error| error.at_path(self.path()).at_offset(link.offset.0))
        })
    }

    fn copy(
        &self,
        from: &mut EntryReader,
        out: &mut dyn io::Write,
        at: PackOffset,
    ) -> Result<(), Error> {
        let copied = io::copy(from, out);
        copied
            .map(drop)
            .map_err(|error| self.corrupt("cannot inflate object", at.0).because(error))
    }
}
