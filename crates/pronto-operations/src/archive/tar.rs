//! Writes the format ustar, with extended headers of pax (POSIX.1-2001, "pax Interchange Format").

use std::io::{Read, Write};

use bstr::ByteSlice;
use pronto_hash::ObjectId;

use super::contents::EntryBody;
use super::{ArchiveMember, EntryWriter, MemberKind, from_output};
use crate::{Error, ErrorKind, Result};

/// The size of headers; contents are padded to a multiple of it.
const RECORD_BYTES: usize = 512;

/// The archive is padded to a multiple of this size.
const BLOCK_BYTES: u64 = 20 * RECORD_BYTES as u64;

/// The largest size and time that the fields of a header hold.
const MOST_IN_FIELD: u64 = 0o77_777_777_777;

/// The lengths of the fields for a name, for the directory before it, and for the target of a link.
const NAME_BYTES: usize = 100;
const PREFIX_BYTES: usize = 155;

/// Writes an archive.
pub(super) struct Tar<'w> {
    output: &'w mut dyn Write,
    modified: u64,
    umask: u32,
    written: u64,
}

/// The fields of a header that differ between entries.
struct TarHeader<'a> {
    name: &'a [u8],
    prefix: &'a [u8],
    link: &'a [u8],
    kind: u8,
    mode: u32,
    size: u64,
}

impl<'w> Tar<'w> {
    /// Starts an archive whose entries have the modification time `modified` and lack the
    /// permission bits `umask`.
    pub(super) fn new(output: &'w mut dyn Write, modified: i64, umask: u32) -> Self {
        Tar {
            output,
            modified: modified.try_into().unwrap_or(0),
            umask,
            written: 0,
        }
    }

    /// Writes the global pax header. It contains the commit id, and a modification time that is too
    /// late for the headers of entries.
    pub(super) fn global_header(&mut self, commit: Option<&ObjectId>) -> Result<()> {
        let mut records = Vec::new();
        if let Some(commit) = commit {
            push_record(&mut records, "comment", commit.to_string().as_bytes());
        }
        if self.modified > MOST_IN_FIELD {
            push_record(&mut records, "mtime", self.modified.to_string().as_bytes());
            self.modified = MOST_IN_FIELD;
        }
        match records.is_empty() {
            true => Ok(()),
            false => self.write_records(b"pax_global_header", b'g', &records),
        }
    }

    /// Pads the archive.
    pub(super) fn finish(&mut self) -> Result<()> {
        let mut tail = BLOCK_BYTES - self.written % BLOCK_BYTES;
        if tail < 2 * RECORD_BYTES as u64 {
            tail += BLOCK_BYTES;
        }
        self.pad(tail)
    }

    fn write_records(&mut self, name: &[u8], kind: u8, records: &[u8]) -> Result<()> {
        self.header(&TarHeader {
            name,
            prefix: b"",
            link: b"",
            kind,
            mode: 0o666,
            size: records.len() as u64,
        })?;
        self.padded(records)
    }

    fn header(&mut self, header: &TarHeader<'_>) -> Result<()> {
        let mut record = [0; RECORD_BYTES];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, header.name);
        put(100, format!("{:07o}", header.mode & 0o7777).as_bytes());
        put(108, b"0000000");
        put(116, b"0000000");
        put(124, format!("{:011o}", header.size).as_bytes());
        put(136, format!("{:011o}", self.modified).as_bytes());
        // The checksum is computed with spaces in its own field.
        put(148, b"        ");
        put(156, &[header.kind]);
        put(157, header.link);
        put(257, b"ustar\x0000");
        put(265, b"root");
        put(297, b"root");
        put(329, b"0000000");
        put(337, b"0000000");
        put(345, header.prefix);
        let sum: u32 = record.iter().copied().map(u32::from).sum();
        record[148..156].copy_from_slice(format!("{sum:07o}\0").as_bytes());
        self.put(&record)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(from_output)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn pad(&mut self, mut count: u64) -> Result<()> {
        const ZEROS: [u8; RECORD_BYTES] = [0; RECORD_BYTES];
        while count > 0 {
            let piece = count.min(RECORD_BYTES as u64);
            self.put(&ZEROS[..usize::try_from(piece).unwrap_or(RECORD_BYTES)])?;
            count -= piece;
        }
        Ok(())
    }

    fn padded(&mut self, bytes: &[u8]) -> Result<()> {
        self.put(bytes)?;
        self.pad((bytes.len() as u64).wrapping_neg() % RECORD_BYTES as u64)
    }

    fn stream(&mut self, item: &ArchiveMember<'_>, size: u64, from: &mut dyn Read) -> Result<()> {
        let mut piece = vec![0; 64 * 1024];
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            let read = from.read(&mut piece[..most]);
            let read = read.map_err(|error| unreadable(item, &error))?;
            if read == 0 {
                return Err(unreadable(item, &std::io::ErrorKind::UnexpectedEof.into()));
            }
            self.put(&piece[..read])?;
            left -= read as u64;
        }
        self.pad(size.wrapping_neg() % RECORD_BYTES as u64)
    }
}

/// Returns the error for a streamed blob that ends too early.
pub(super) fn unreadable(item: &ArchiveMember<'_>, error: &std::io::Error) -> Error {
    let message = format!("cannot stream blob {}", item.id);
    Error::new(ErrorKind::Object, message).because(error.to_string())
}

/// Appends a record of an extended header. The length of a record includes the digits of the
/// length.
fn push_record(records: &mut Vec<u8>, keyword: &str, value: &[u8]) {
    let rest = keyword.len() + value.len() + 3;
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} {keyword}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// Splits a path that is too long for the name field; `None` if it does not fit into both fields.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.strip_suffix(b"/").unwrap_or(path);
    let end = &end[..end.len().min(PREFIX_BYTES)];
    let slash = end.rfind_byte(b'/').unwrap_or(0);
    let rest = path.get(slash + 1..)?;
    (slash > 0 && rest.len() <= NAME_BYTES).then_some((&path[..slash], rest))
}

impl EntryWriter for Tar<'_> {
    fn write(&mut self, item: &ArchiveMember<'_>, body: EntryBody<'_>) -> Result<()> {
        let size = match &body {
            EntryBody::Bytes(bytes) => bytes.len() as u64,
            EntryBody::Stream { size, .. } => *size,
        };
        let (kind, mode) = match item.kind {
            MemberKind::Directory => (b'5', 0o777 & !self.umask),
            MemberKind::Link => (b'2', 0o777),
            MemberKind::File {
                is_executable: true,
            } => (b'0', 0o777 & !self.umask),
            MemberKind::File { .. } => (b'0', 0o666 & !self.umask),
        };
        let mut records = Vec::new();
        let (named, linked) = (
            format!("{}.data", item.id),
            format!("see {}.paxheader", item.id),
        );
        let mut header = TarHeader {
            name: item.path,
            prefix: b"",
            link: b"",
            kind,
            mode,
            size: 0,
        };
        if item.path.len() > NAME_BYTES {
            if let Some((prefix, name)) = split(item.path) {
                (header.prefix, header.name) = (prefix, name);
            } else {
                header.name = named.as_bytes();
                push_record(&mut records, "path", item.path);
            }
        }
        if let (MemberKind::Link, EntryBody::Bytes(target)) = (item.kind, &body) {
            header.link = target;
            if target.len() > NAME_BYTES {
                header.link = linked.as_bytes();
                push_record(&mut records, "linkpath", target);
            }
        }
        if kind == b'0' {
            header.size = size;
            if size > MOST_IN_FIELD {
                header.size = 0;
                push_record(&mut records, "size", size.to_string().as_bytes());
            }
        }
        if !records.is_empty() {
            let name = format!("{}.paxheader", item.id);
            self.write_records(name.as_bytes(), b'x', &records)?;
        }
        self.header(&header)?;
        match body {
            _ if kind != b'0' => Ok(()),
            EntryBody::Bytes(bytes) => self.padded(bytes),
            EntryBody::Stream { size, from } => self.stream(item, size, from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_count_their_own_length() {
        for length in 0..1100 {
            let mut records = Vec::new();
            push_record(&mut records, "path", &vec![b'a'; length]);
            let text = records.to_str().expect("it is ASCII");
            let (count, _) = text.split_once(' ').expect("a space follows");
            assert_eq!(count.parse(), Ok(records.len()));
        }
    }

    #[test]
    fn long_paths_are_split_at_a_slash() {
        let long = [vec![b'a'; 120], b"/b".to_vec()].concat();
        assert_eq!(split(&long).map(|parts| parts.1), Some(&b"b"[..]));
        assert_eq!(split(&[b'a'; 120]), None);
        let directory = [vec![b'a'; 120], b"/".to_vec()].concat();
        assert_eq!(split(&directory), None);
    }
}
