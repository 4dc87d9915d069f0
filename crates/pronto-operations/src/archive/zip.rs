//! Writes the format zip (PKWARE's APPNOTE), with the extensions for large files and for times.

use std::io::{self, Read, Write};

use bstr::ByteSlice;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pronto_hash::ObjectId;

use super::contents::EntryBody;
use super::tar::unreadable;
use super::{ArchiveMember, EntryWriter, MemberKind, from_output};
use crate::{Error, ErrorKind, Result};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DATA_DESCRIPTOR: u32 = 0x0807_4b50;
const DIRECTORY_HEADER: u32 = 0x0201_4b50;
const DIRECTORY_END: u32 = 0x0605_4b50;
const DIRECTORY_END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;

/// The versions of the format that a reader needs: 1.0, and the first version with 64-bit sizes.
const VERSION: u16 = 10;
const VERSION_64: u16 = 45;

/// The version of the format that has permissions of Unix: 2.3.
const CREATOR_UNIX: u16 = 0x0317;

/// The flags of entries: the sizes follow the content, and the name is UTF-8.
const STREAMED: u16 = 1 << 3;
const UTF8: u16 = 1 << 11;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The number of bytes at the start of a file that decide whether the file is text.
const LOOKED_AT_BYTES: usize = 8000;

const MOST_32: u64 = u32::MAX as u64;

/// Writes an archive.
pub(super) struct Zip<'w> {
    output: Counting<'w>,
    level: u32,
    modified: i64,
    dos_date: u16,
    dos_time: u16,
    /// The central directory, which follows the contents.
    directory: Vec<u8>,
    entries: u64,
    creator: u16,
    /// Whether a field of the end of central directory record overflows.
    overflows: bool,
}

/// Counts the bytes of the archive.
struct Counting<'w> {
    inner: &'w mut dyn Write,
    written: u64,
}

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The content of an entry that is written in pieces.
enum Packing<'a, 'w> {
    Stored(&'a mut Counting<'w>),
    Deflated(DeflateEncoder<&'a mut Counting<'w>>),
}

impl Packing<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Packing::Stored(output) => output.write_all(bytes),
            Packing::Deflated(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Packing::Stored(_) => Ok(()),
            Packing::Deflated(encoder) => encoder.finish().map(|_| ()),
        }
    }
}

/// The values of an entry that its local and central header share.
struct Headed {
    offset: u64,
    creator: u16,
    version: u16,
    flags: u16,
    method: u16,
    crc: u32,
    compressed: u64,
    size: u64,
    is_text: bool,
    attributes: u32,
}

impl<'w> Zip<'w> {
    /// Starts an archive whose entries have the modification time `modified`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the format cannot represent the time.
    pub(super) fn new(output: &'w mut dyn Write, modified: i64, level: u32) -> Result<Self> {
        let (dos_date, dos_time) = dos(modified)?;
        Ok(Zip {
            output: Counting {
                inner: output,
                written: 0,
            },
            level,
            modified,
            dos_date,
            dos_time,
            directory: Vec::new(),
            entries: 0,
            creator: 0,
            overflows: false,
        })
    }

    /// Writes the central directory, with the commit id as comment.
    pub(super) fn finish(mut self, commit: Option<&ObjectId>) -> Result<()> {
        let comment = commit.map(ToString::to_string).unwrap_or_default();
        let offset = self.output.written;
        let size = self.directory.len() as u64;
        let mut end = std::mem::take(&mut self.directory);
        let entries = u16::try_from(self.entries).unwrap_or(u16::MAX);
        let overflows = self.overflows
            || u64::from(entries) != self.entries
            || size > MOST_32
            || offset > MOST_32;
        if overflows {
            let start = offset + size;
            put_u32(&mut end, DIRECTORY_END_64);
            put_u64(&mut end, 44);
            put_u16(&mut end, self.creator);
            put_u16(&mut end, VERSION_64);
            put_u64(&mut end, 0);
            put_u64(&mut end, self.entries);
            put_u64(&mut end, self.entries);
            put_u64(&mut end, size);
            put_u64(&mut end, offset);
            put_u32(&mut end, LOCATOR_64);
            put_u32(&mut end, 0);
            put_u64(&mut end, start);
            put_u32(&mut end, 1);
        }
        put_u32(&mut end, DIRECTORY_END);
        put_u32(&mut end, 0);
        put_u16(&mut end, entries);
        put_u16(&mut end, entries);
        put_u32(&mut end, clamped(size));
        put_u32(&mut end, clamped(offset));
        put_u16(&mut end, u16::try_from(comment.len()).unwrap_or(0));
        end.extend_from_slice(comment.as_bytes());
        self.output.write_all(&end).map_err(from_output)
    }

    fn local_header(&mut self, item: &ArchiveMember<'_>, headed: &Headed) -> Result<()> {
        let is_large = headed.version == VERSION_64;
        let mut header = Vec::new();
        put_u32(&mut header, LOCAL_HEADER);
        put_u16(&mut header, headed.version);
        put_u16(&mut header, headed.flags);
        put_u16(&mut header, headed.method);
        put_u16(&mut header, self.dos_time);
        put_u16(&mut header, self.dos_date);
        put_u32(&mut header, headed.crc);
        let shown = |size: u64| if is_large { u32::MAX } else { clamped(size) };
        put_u32(&mut header, shown(headed.compressed));
        put_u32(&mut header, shown(headed.size));
        put_u16(&mut header, name_length(item)?);
        put_u16(&mut header, if is_large { 9 + 20 } else { 9 });
        header.extend_from_slice(item.path);
        self.put_time(&mut header);
        if is_large {
            put_u16(&mut header, 1);
            put_u16(&mut header, 16);
            put_u64(&mut header, headed.size);
            put_u64(&mut header, headed.compressed);
        }
        self.output.write_all(&header).map_err(from_output)
    }

    /// Appends the extra field for a time in UTC.
    fn put_time(&self, header: &mut Vec<u8>) {
        put_u16(header, 0x5455);
        put_u16(header, 5);
        header.push(1);
        let low = self.modified.cast_unsigned() & MOST_32;
        put_u32(header, clamped(low));
    }

    fn directory_header(&mut self, item: &ArchiveMember<'_>, headed: &Headed) -> Result<()> {
        let large = [headed.size, headed.compressed, headed.offset];
        let large = large.into_iter().filter(|value| *value >= MOST_32);
        let large: Vec<u64> = large.collect();
        let length = large.len() * 8;
        let mut extra = Vec::new();
        self.put_time(&mut extra);
        if !large.is_empty() {
            put_u16(&mut extra, 1);
            put_u16(&mut extra, u16::try_from(length).unwrap_or(0));
            large.iter().for_each(|value| put_u64(&mut extra, *value));
        }
        let is_text = u16::from(headed.is_text);
        let directory = &mut self.directory;
        put_u32(directory, DIRECTORY_HEADER);
        put_u16(directory, headed.creator);
        put_u16(directory, headed.version);
        put_u16(directory, headed.flags);
        put_u16(directory, headed.method);
        put_u16(directory, self.dos_time);
        put_u16(directory, self.dos_date);
        put_u32(directory, headed.crc);
        put_u32(directory, clamped(headed.compressed));
        put_u32(directory, clamped(headed.size));
        put_u16(directory, name_length(item)?);
        put_u16(directory, u16::try_from(extra.len()).unwrap_or(0));
        put_u16(directory, 0);
        put_u16(directory, 0);
        put_u16(directory, is_text);
        put_u32(directory, headed.attributes);
        put_u32(directory, clamped(headed.offset));
        directory.extend_from_slice(item.path);
        directory.extend_from_slice(&extra);
        self.overflows |= headed.offset > MOST_32;
        self.entries += 1;
        Ok(())
    }

    fn whole(
        &mut self,
        item: &ArchiveMember<'_>,
        content: &[u8],
        mut headed: Headed,
    ) -> Result<Headed> {
        headed.size = content.len() as u64;
        headed.compressed = headed.size;
        let mut deflated = Vec::new();
        if item.kind != MemberKind::Directory {
            headed.crc = crc32fast::hash(content);
            let head = &content[..content.len().min(LOOKED_AT_BYTES)];
            headed.is_text = !item.is_binary.unwrap_or_else(|| head.contains(&0));
        }
        if headed.method == DEFLATED && !content.is_empty() {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(self.level));
            let written = encoder.write_all(content);
            deflated = written
                .and_then(|()| encoder.finish())
                .map_err(from_output)?;
        }
        let mut body = content;
        match headed.method == DEFLATED && deflated.len() < content.len() {
            true => {
                body = &deflated;
                headed.compressed = deflated.len() as u64;
            }
            false => headed.method = STORED,
        }
        if headed.size > MOST_32 || headed.compressed > MOST_32 {
            headed.version = VERSION_64;
        }
        self.local_header(item, &headed)?;
        self.output.write_all(body).map_err(from_output)?;
        Ok(headed)
    }

    fn stream(
        &mut self,
        item: &ArchiveMember<'_>,
        from: &mut dyn Read,
        mut headed: Headed,
    ) -> Result<Headed> {
        headed.flags |= STREAMED;
        if headed.size > MOST_32 >> 1 {
            headed.version = VERSION_64;
        }
        if headed.method == STORED {
            headed.compressed = headed.size;
        }
        self.local_header(item, &headed)?;
        let start = self.output.written;
        let (mut crc, mut left) = (crc32fast::Hasher::new(), headed.size);
        let mut piece = vec![0; 64 * 1024];
        let mut is_first = true;
        let level = Compression::new(self.level);
        let mut packing = match headed.method {
            STORED => Packing::Stored(&mut self.output),
            _ => Packing::Deflated(DeflateEncoder::new(&mut self.output, level)),
        };
        while left > 0 {
            let most = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            let read = from.read(&mut piece[..most]);
            let read = read.map_err(|error| unreadable(item, &error))?;
            if read == 0 {
                return Err(unreadable(item, &io::ErrorKind::UnexpectedEof.into()));
            }
            let bytes = &piece[..read];
            if is_first {
                let head = &bytes[..read.min(LOOKED_AT_BYTES)];
                headed.is_text = !item.is_binary.unwrap_or_else(|| head.contains(&0));
                is_first = false;
            }
            crc.update(bytes);
            packing.write(bytes).map_err(from_output)?;
            left -= read as u64;
        }
        packing.finish().map_err(from_output)?;
        headed.crc = crc.finalize();
        headed.compressed = self.output.written - start;
        self.descriptor(&headed)?;
        Ok(headed)
    }

    fn descriptor(&mut self, headed: &Headed) -> Result<()> {
        let mut descriptor = Vec::new();
        put_u32(&mut descriptor, DATA_DESCRIPTOR);
        put_u32(&mut descriptor, headed.crc);
        for size in [headed.compressed, headed.size] {
            match headed.version {
                VERSION_64 => put_u64(&mut descriptor, size),
                _ => put_u32(&mut descriptor, clamped(size)),
            }
        }
        self.output.write_all(&descriptor).map_err(from_output)
    }
}

impl EntryWriter for Zip<'_> {
    fn write(&mut self, item: &ArchiveMember<'_>, body: EntryBody<'_>) -> Result<()> {
        let (creator, attributes) = match item.kind {
            MemberKind::Directory => (0, 16),
            MemberKind::Link => (CREATOR_UNIX, 0o120_777 << 16),
            MemberKind::File {
                is_executable: true,
            } => (CREATOR_UNIX, 0o100_755 << 16),
            MemberKind::File { .. } => (0, 0),
        };
        let is_file = matches!(item.kind, MemberKind::File { .. });
        let is_utf8 = !item.path.is_ascii() && item.path.to_str().is_ok();
        let headed = Headed {
            offset: self.output.written,
            creator,
            version: VERSION,
            flags: if is_utf8 { UTF8 } else { 0 },
            method: match is_file && self.level > 0 {
                true => DEFLATED,
                false => STORED,
            },
            crc: 0,
            compressed: 0,
            size: 0,
            is_text: false,
            attributes,
        };
        self.creator = self.creator.max(creator);
        let headed = match body {
            EntryBody::Bytes(content) => self.whole(item, content, headed)?,
            EntryBody::Stream { size, from } => {
                self.stream(item, from, Headed { size, ..headed })?
            }
        };
        self.directory_header(item, &headed)
    }
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Returns the value of a 32-bit field, or its maximum on overflow.
fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn name_length(item: &ArchiveMember<'_>) -> Result<u16> {
    u16::try_from(item.path.len()).map_err(|_| {
        let (length, id, path) = (item.path.len(), item.id, item.path);
        let message = format!("path too long ({length} chars, SHA1: {id}): {path}");
        Error::new(ErrorKind::InvalidInput, message)
    })
}

/// Returns the date and time in DOS format, in the local time zone.
fn dos(seconds: i64) -> Result<(u16, u16)> {
    let too_large = || {
        let message = format!("timestamp too large for this system: {seconds}");
        Error::new(ErrorKind::InvalidInput, message)
    };
    let time = Timestamp::from_second(seconds).map_err(|_| too_large())?;
    let time = time.to_zoned(TimeZone::system()).datetime();
    let unsigned = |value: i8| i32::from(value);
    let date =
        unsigned(time.day()) + unsigned(time.month()) * 32 + (i32::from(time.year()) - 1980) * 512;
    let clock =
        i32::from(time.second()) / 2 + unsigned(time.minute()) * 32 + unsigned(time.hour()) * 2048;
    // As in Git, only the low bits of a later date are written.
    let low = |value: i32| (value & 0xffff).cast_unsigned() as u16;
    Ok((low(date), low(clock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_clamped() {
        assert_eq!(clamped(7), 7);
        assert_eq!(clamped(1 << 32), u32::MAX);
    }
}
