//! Loose objects: one deflated file for each object, `objects/ab/cdef…`. Format:
//! `gitformat-loose(5)`.

mod few;
pub(crate) mod write;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, Prefix, oid};
use pronto_io::error::IoContext as _;
use rustix::fs::{CWD, Mode, OFlags};
use sirocco::Format;
use sirocco::inflate::{Decoder, Reader};

use crate::error::{Error, ErrorKind};

/// The largest length of the header of a loose object: a type, a space, twenty digits, a NUL.
const MAX_HEADER_LEN: usize = 32;

/// The largest ratio of inflated to deflated bytes in DEFLATE.
const MAX_RATIO: u64 = 1032;

/// The header of a loose object.
struct LooseHeader {
    kind: ObjectKind,
    size_bytes: u64,
    header_len: usize,
}

/// Returns the path of the loose object `id` under `objects`.
pub(crate) fn path(objects: &Path, id: &oid) -> PathBuf {
    let hex = pronto_hash::hex(id);
    let (directory, file) = hex.split_at(2);
    let mut path = PathBuf::with_capacity(objects.as_os_str().len() + hex.len() + 3);
    path.push(objects);
    path.push(directory);
    path.push(file);
    path
}

/// Reads the content of the loose object `id` into `out`, if the object exists.
///
/// # Errors
/// Fails with `ErrorKind::Corrupt` if the file is not a valid loose object, and with
/// `ErrorKind::Io` if the file cannot be read.
pub(crate) fn read(
    objects: &Path,
    id: &oid,
    scratch: &mut LooseBuffers,
    out: &mut Vec<u8>,
) -> Result<Option<ObjectKind>, Error> {
    match read_below(objects, id, scratch, u64::MAX, out)? {
        Some(LooseContent::Whole(kind)) => Ok(Some(kind)),
        Some(LooseContent::Large) => {
            let error = Error::new(
                ErrorKind::Limit,
                "object is too large for the memory of this machine",
            );
            Err(error.on_object(id))
        }
        None => Ok(None),
    }
}

/// The result of [`read_below`].
pub(crate) enum LooseContent {
    /// The whole content has been read.
    Whole(ObjectKind),
    /// The object is not smaller than the bound.
    Large,
}

/// Does the same as [`read`] for an object whose content takes less than `below` bytes, both
/// deflated and inflated. The content of a larger object is not kept. Costs the same as [`read`].
///
/// # Errors
/// Fails as [`read`] does.
pub(crate) fn read_below(
    objects: &Path,
    id: &oid,
    scratch: &mut LooseBuffers,
    below: u64,
    out: &mut Vec<u8>,
) -> Result<Option<LooseContent>, Error> {
    let path = path(objects, id);
    let Some(file) = open(&path)? else {
        return Ok(None);
    };
    read_file(file, &path, &mut scratch.deflated, below)?;
    if scratch.deflated.len() as u64 >= below {
        scratch.deflated = Vec::new();
        return Ok(Some(LooseContent::Large));
    }
    if scratch.is_for_few()
        && let Some(kind) = few::inflate(&scratch.deflated, below, out)
    {
        return Ok(Some(LooseContent::Whole(kind)));
    }
    let kind = inflate(&scratch.deflated, &mut scratch.decoder, below, out);
    scratch.decoder.reset();
    let kind = kind.map_err(|error| error.at_path(&path).on_object(id))?;
    Ok(Some(kind.map_or(LooseContent::Large, LooseContent::Whole)))
}

/// Returns the type and the size of the loose object `id`, if the object exists. Reads one page of
/// the file.
///
/// # Errors
/// Fails as [`read`] does.
pub(crate) fn header(
    objects: &Path,
    id: &oid,
    scratch: &mut LooseBuffers,
) -> Result<Option<gix_object::Header>, Error> {
    let path = path(objects, id);
    let Some(file) = open(&path)? else {
        return Ok(None);
    };
    read_file(file, &path, &mut scratch.deflated, 512)?;
    let mut head = [0; MAX_HEADER_LEN];
    if scratch.is_for_few()
        && let Some(start) = few::start(&scratch.deflated, &mut head)
    {
        return Ok(Some(gix_object::Header {
            kind: start.kind,
            size: start.size_bytes,
        }));
    }
    let progress = scratch
        .decoder
        .decompress(&scratch.deflated, &mut head, false);
    let len = progress.map(|progress| progress.output.len());
    scratch.decoder.reset();
    let start = match len {
        Ok(len) => parse_start(&head[..len]),
        Err(error) => Err(unable_to_unpack(0).because(error)),
    };
    let start = start.map_err(|error| error.at_path(&path).on_object(id))?;
    Ok(Some(gix_object::Header {
        kind: start.kind,
        size: start.size_bytes,
    }))
}

/// Returns whether a loose object `id` exists. Costs one system call.
pub(crate) fn exists(objects: &Path, id: &oid) -> bool {
    path(objects, id).is_file()
}

/// Returns the size in bytes of the file of the loose object `id`, if there is one.
pub(crate) fn size_on_disk(objects: &Path, id: &oid) -> Option<u64> {
    path(objects, id).metadata().ok().map(|found| found.size())
}

/// Returns a reader for the content of the loose object `id`, if the object exists.
///
/// # Errors
/// Fails as [`read`] does.
pub(crate) fn reader(objects: &Path, id: &oid) -> Result<Option<LooseReader>, Error> {
    let path = path(objects, id);
    let Some(file) = open(&path)? else {
        return Ok(None);
    };
    let damaged = |error: Error| error.at_path(&path).on_object(id);
    let mut inner = Reader::new(Format::Zlib, BufReader::with_capacity(64 << 10, file));
    let mut head = [0; MAX_HEADER_LEN];
    let mut len = 0;
    while len < head.len() && !head[..len].contains(&0) {
        match inner.read(&mut head[len..=len]) {
            Ok(0) => break,
            Ok(_) => len += 1,
            Err(error) => return Err(damaged(unable_to_unpack(0).because(error))),
        }
    }
    let start = parse_start(&head[..len]).map_err(damaged)?;
    Ok(Some(LooseReader {
        kind: start.kind,
        size_bytes: start.size_bytes,
        rest: start.size_bytes,
        inner,
    }))
}

/// Reads the content of a large loose object in pieces.
pub(crate) struct LooseReader {
    pub(crate) kind: ObjectKind,
    pub(crate) size_bytes: u64,
    rest: u64,
    inner: Reader<BufReader<File>>,
}

impl Read for LooseReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let len = self.inner.read(buffer)?;
        match self.rest.checked_sub(len as u64) {
            Some(rest) if len > 0 || rest == 0 => {
                self.rest = rest;
                Ok(len)
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "corrupt loose object: its size differs from the header",
            )),
        }
    }
}

/// Buffers and tables to read loose objects; each thread has its own.
pub(crate) struct LooseBuffers {
    decoder: Box<Decoder>,
    deflated: Vec<u8>,
    /// The number of objects that were read.
    count: usize,
}

impl LooseBuffers {
    /// Counts a read. Returns whether the object is one of the first few and small, so that [`few`]
    /// inflates it.
    fn is_for_few(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.count <= few::MOST && self.deflated.len() <= few::LARGEST_BYTES
    }
}

impl Default for LooseBuffers {
    fn default() -> Self {
        LooseBuffers {
            decoder: Box::new(Decoder::new(Format::Zlib)),
            deflated: Vec::new(),
            count: 0,
        }
    }
}

/// Returns which fan-out directories exist in `objects`. Costs one directory listing.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the directory exists and cannot be listed.
pub(crate) fn fanouts(objects: &Path) -> Result<Box<[bool; 256]>, Error> {
    let mut fanouts = Box::new([false; 256]);
    let entries = match std::fs::read_dir(objects) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(fanouts),
        Err(error) => return Err(error).context(ErrorKind::Io, "cannot list", objects),
    };
    for entry in entries {
        let name = entry
            .context(ErrorKind::Io, "cannot list", objects)?
            .file_name();
        let byte = match name.as_encoded_bytes() {
            &[high, low] if !high.is_ascii_uppercase() && !low.is_ascii_uppercase() => {
                let digits = [char::from(high), char::from(low)].map(|digit| digit.to_digit(16));
                digits[0].zip(digits[1]).map(|(high, low)| high << 4 | low)
            }
            _ => None,
        };
        if let Some(byte) = byte {
            fanouts[byte as usize] = true;
        }
    }
    Ok(fanouts)
}

/// Appends the ids of the loose objects in `objects` whose first byte is `first_byte`, unsorted.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the directory exists and cannot be listed.
pub(crate) fn list(
    objects: &Path,
    first_byte: u8,
    kind: Kind,
    out: &mut Vec<ObjectId>,
) -> Result<(), Error> {
    let name = format!("{first_byte:02x}");
    let directory = objects.join(&name);
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(error).context(ErrorKind::Io, "cannot list", &directory),
    };
    let mut hex = Vec::with_capacity(kind.len_in_hex());
    for entry in entries {
        let entry = entry.context(ErrorKind::Io, "cannot list", &directory)?;
        hex.clear();
        hex.extend_from_slice(name.as_bytes());
        hex.extend_from_slice(entry.file_name().as_encoded_bytes());
        // Temporary files and other names that are not ids are skipped.
        let is_id = hex.len() == kind.len_in_hex() && !hex.iter().any(u8::is_ascii_uppercase);
        if let Some(id) = is_id.then(|| pronto_hash::parse_hex(&hex).ok()).flatten() {
            out.push(id);
        }
    }
    Ok(())
}

/// Appends the ids of the loose objects in `objects` that start with `prefix`, unsorted.
///
/// # Errors
/// Fails as [`list`] does.
pub(crate) fn prefix(
    objects: &Path,
    prefix: &Prefix,
    out: &mut Vec<ObjectId>,
) -> Result<(), Error> {
    let kind = prefix.as_oid().kind();
    let first = prefix.as_oid().first_byte();
    let last = match prefix.hex_len() {
        1 => first | 0x0f,
        _ => first,
    };
    let start = out.len();
    for byte in first..=last {
        list(objects, byte, kind, out)?;
    }
    let mut at = start;
    while at < out.len() {
        if prefix.cmp_oid(&out[at]).is_eq() {
            at += 1;
        } else {
            out.swap_remove(at);
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<Option<File>, Error> {
    // With `NONBLOCK`, opening a FIFO instead of an object file does not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::io::retry_on_intr(|| rustix::fs::openat(CWD, path, flags, Mode::empty()));
    match opened.map_err(io::Error::from) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error).context(ErrorKind::Io, "cannot open", path),
    }
}

/// Returns whether `error` means that the file or a parent directory does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Reads at most `limit` bytes of `file`.
fn read_file(file: File, path: &Path, out: &mut Vec<u8>, limit: u64) -> Result<(), Error> {
    let metadata = file
        .metadata()
        .context(ErrorKind::Io, "cannot stat", path)?;
    if !metadata.is_file() {
        let message = "loose object is not a regular file";
        return Err(Error::new(ErrorKind::Corrupt, message).at_path(path));
    }
    out.clear();
    let len = metadata.len().min(limit);
    out.reserve(len as usize);
    file.take(len)
        .read_to_end(out)
        .context(ErrorKind::Io, "cannot read", path)?;
    Ok(())
}

/// Inflates an object; `None` if it takes at least `below` bytes.
fn inflate(
    deflated: &[u8],
    decoder: &mut Decoder,
    below: u64,
    out: &mut Vec<u8>,
) -> Result<Option<ObjectKind>, Error> {
    out.clear();
    out.resize(deflated.len().saturating_mul(4).clamp(256, 1 << 20), 0);
    let first = decoder
        .decompress(deflated, out, true)
        .map(|progress| (progress.consumed, progress.output.len(), progress.done));
    let (mut consumed, mut len, mut done) = match first {
        Ok(first) => first,
        Err(error) => return Err(unable_to_unpack(0).because(error)),
    };
    let start = parse_start(&out[..len])?;
    if start.size_bytes >= below {
        return Ok(None);
    }
    if start.size_bytes / MAX_RATIO > deflated.len() as u64 {
        return Err(Error::new(ErrorKind::Corrupt, "truncated loose object"));
    }
    let whole = usize::try_from(start.size_bytes)
        .ok()
        .and_then(|size| size.checked_add(start.header_len))
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Limit,
                "object is too large for the memory of this machine",
            )
        })?;
    if !done && len <= whole {
        // The buffer has one byte more than the declared size, so that surplus content is detected.
        out.resize(whole + 1, 0);
        match decoder.decompress(&deflated[consumed..], out, true) {
            Ok(rest) => {
                len += rest.output.len();
                consumed += rest.consumed;
                done = rest.done;
            }
            Err(error) => return Err(unable_to_unpack(consumed).because(error)),
        }
    }
    if !done || len != whole {
        let message = "corrupt loose object: its size differs from the header";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(consumed as u64));
    }
    if consumed != deflated.len() {
        let message = "garbage at the end of loose object";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(consumed as u64));
    }
    out.truncate(whole);
    out.drain(..start.header_len);
    Ok(Some(start.kind))
}

fn parse_start(bytes: &[u8]) -> Result<LooseHeader, Error> {
    let unparsable = || {
        let message = "unable to parse header of loose object";
        Error::new(ErrorKind::Corrupt, message).at_offset(0)
    };
    let head = &bytes[..bytes.len().min(MAX_HEADER_LEN)];
    let end = head
        .iter()
        .position(|byte| *byte == 0)
        .ok_or_else(unparsable)?;
    let blank = head[..end]
        .iter()
        .position(|byte| *byte == b' ')
        .ok_or_else(unparsable)?;
    let kind = ObjectKind::from_bytes(&head[..blank])
        .map_err(|_| Error::new(ErrorKind::UnknownType, "invalid object type").at_offset(0))?;
    let digits = &head[blank + 1..end];
    if digits.is_empty() || (digits[0] == b'0' && digits.len() > 1) {
        return Err(unparsable());
    }
    let mut size: u64 = 0;
    for digit in digits {
        let value = digit.checked_sub(b'0').filter(|value| *value <= 9);
        let value = value.ok_or_else(unparsable)?;
        size = size
            .checked_mul(10)
            .and_then(|size| size.checked_add(u64::from(value)))
            .ok_or_else(unparsable)?;
    }
    Ok(LooseHeader {
        kind,
        size_bytes: size,
        header_len: end + 1,
    })
}

#[cold]
fn unable_to_unpack(offset: usize) -> Error {
    Error::new(ErrorKind::Corrupt, "unable to unpack loose object").at_offset(offset as u64)
}
