//! Limits for objects in memory, and the directory in which larger objects are built.

use super::InFiles;
use super::buffers::{BufferPool, ObjectBuffer};
use crate::delta;
use crate::error::{Error, ErrorKind};
use crate::inflate::{Inflater, check_claim};
use crate::temporary::{mapped, unnamed};
use gix_object::Kind as ObjectKind;
use sirocco::{Format, inflate};
use std::io::{self, Read as _};

/// The size limits of objects.
#[derive(Clone, Copy)]
pub(super) struct ObjectLimits<'a> {
    /// The largest object that is held in memory.
    pub(super) most_bytes: usize,
    /// The directory for larger blobs.
    pub(super) files: Option<&'a InFiles>,
}

impl ObjectLimits<'_> {
    /// Fails if an object is too large to be held in memory.
    pub(super) fn check(&self, size_bytes: u64) -> Result<(), Error> {
        if size_bytes <= self.most_bytes as u64 {
            return Ok(());
        }
        Err(exceeded(size_bytes, self.most_bytes as u64))
    }

    /// Returns the directory for a blob of this size; `None` if the blob is built in memory.
    fn files(&self, kind: ObjectKind, size_bytes: u64) -> Result<Option<&InFiles>, Error> {
        let files = self.files.filter(|files| size_bytes > files.from_bytes);
        match files.filter(|_| kind == ObjectKind::Blob) {
            Some(files) if size_bytes > files.most_bytes => {
                Err(exceeded(size_bytes, files.most_bytes))
            }
            files => Ok(files),
        }
    }

    /// Inflates `stream` to an object of `size_bytes`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Truncated` if the stream is malformed or has
    /// another size, with `ErrorKind::Limit` if the object is too large, and with `ErrorKind::Io`
    /// if a file cannot be written.
    pub(super) fn inflate(
        &self,
        stream: &[u8],
        inflater: &mut Inflater,
        kind: ObjectKind,
        size_bytes: u64,
        pool: &mut BufferPool,
    ) -> Result<ObjectBuffer, Error> {
        check_claim(stream.len(), size_bytes)?;
        if let Some(files) = self.files(kind, size_bytes)? {
            let file = unnamed(&files.directory, |out| {
                let reader = inflate::Reader::new(Format::Zlib, stream);
                let broken = |error| {
                    let message = "cannot inflate object";
                    Error::new(ErrorKind::Corrupt, message).because(error)
                };
                // One byte more than declared, so that surplus content is detected.
                let most = size_bytes.saturating_add(1);
                match io::copy(&mut reader.take(most), out).map_err(broken)? {
                    len if len == size_bytes => Ok(()),
                    _ => Err(changed()),
                }
            })?;
            return Ok(ObjectBuffer::mapped(mapped(file, &files.directory)?, kind));
        }
        let size = usize::try_from(size_bytes).map_err(|_| changed())?;
        let mut content = pool.take(size, kind);
        inflater.inflate_into(stream, content.as_mut_slice())?;
        Ok(content)
    }

    /// Applies the delta `instructions` to `base`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the instructions do not match the base, with
    /// `ErrorKind::Limit` if the object is too large, and with `ErrorKind::Io` if a file cannot be
    /// written.
    pub(super) fn make(
        &self,
        base: &ObjectBuffer,
        instructions: &[u8],
        pool: &mut BufferPool,
    ) -> Result<ObjectBuffer, Error> {
        self.apply(base, instructions, pool).map_err(|error| {
            let kind = match error.kind() {
                ErrorKind::BaseSize | ErrorKind::DeltaOpcode => ErrorKind::Corrupt,
                kind => kind,
            };
            Error::new(kind, "failed to apply delta").because(error)
        })
    }

    fn apply(
        &self,
        base: &ObjectBuffer,
        instructions: &[u8],
        pool: &mut BufferPool,
    ) -> Result<ObjectBuffer, Error> {
        let sizes = delta::sizes(instructions)?;
        if let Some(files) = self.files(base.kind, sizes.result_bytes)? {
            let file = unnamed(&files.directory, |out| {
                delta::apply_to(base.as_slice(), instructions, out)
            })?;
            return Ok(ObjectBuffer::mapped(
                mapped(file, &files.directory)?,
                base.kind,
            ));
        }
        self.check(sizes.result_bytes)?;
        let len = delta::checked_result_len(base.as_slice().len(), instructions, &sizes)?;
        let mut content = pool.take(len, base.kind);
        let out = content.as_mut_slice();
        delta::apply_into(base.as_slice(), instructions, &sizes, out)?;
        Ok(content)
    }
}

#[cold]
fn exceeded(size_bytes: u64, most_bytes: u64) -> Error {
    let message = format!("object of {size_bytes} bytes exceeds the limit of {most_bytes}");
    Error::new(ErrorKind::Limit, message)
}

#[cold]
fn changed() -> Error {
    Error::new(ErrorKind::Corrupt, "the pack changed while it was indexed")
}
