//! Writes a new pack: entries one after another, then the trailer and the index; finally renames
//! the files.
//!
//! Most of the work is deflating, which needs no writer. Each thread encodes entries with its own
//! [`Encoder`], and a single [`PackWriter`] (behind a lock, if there are several threads) appends
//! them.
//!
//! ```
//! use pronto_hash::{Kind, digest};
//! use pronto_pack::entry::EntryHeader;
//! use pronto_pack::writer::{Encoder, Options, PackWriter};
//! # let directory = std::env::temp_dir().join(format!("pronto-writer-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let mut writer = PackWriter::begin(&directory, Options::default())?;
//! let id = digest(Kind::Sha1, &[b"blob 2\0", b"hi"])?;
//! let mut encoder = Encoder::new(1);
//! writer.append(&id, &encoder.encode(EntryHeader::Object(gix_object::Kind::Blob), b"hi"))?;
//! let written = writer.finish()?;
//! assert!(written.objects == 1 && written.index.exists());
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod sink;

use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Digester, ObjectId, TrailerDigester, oid};
use pronto_io::error::IoContext as _;
use sirocco::Format;
use sirocco::deflate::{Level, Writer};

use crate::deflate::Deflater;
use crate::entry::{Entry, EntryHeader};
use crate::error::{Error, ErrorKind};
use crate::idx::write::IndexTable;
use crate::indexer;
use crate::install::{self, PackFileNames};
use crate::temporary::TemporaryFile;

/// The size of the write buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// The number of bytes of a stream that are held in memory at a time.
const CHUNK_BYTES: usize = 128 << 10;

/// The default compression level of zlib and Git.
const DEFAULT_LEVEL: u8 = 6;

/// The offset of the number of entries in the header of a pack.
const COUNT_OFFSET: u64 = 8;

/// Options for writing a pack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The zlib level for [streamed](PackWriter::append_stream) contents, 0 to 9
    /// (`pack.compression`).
    pub level: u8,
    /// The number of entries, if it is known. Then the pack is hashed while it is written;
    /// otherwise it is read again at the end.
    pub count: Option<u32>,
    /// Options for the files: hash function, permissions, index version, `.rev`, `.keep`, flushing.
    pub files: indexer::Options,
}

impl Default for Options {
    /// Returns options with the default level and an unknown number of entries.
    fn default() -> Self {
        Options {
            level: DEFAULT_LEVEL,
            count: None,
            files: indexer::Options::default(),
        }
    }
}

/// Encodes pack entries. Each thread needs its own encoder.
#[derive(Debug)]
pub struct Encoder {
    level: u8,
    deflater: Deflater,
    bytes: Vec<u8>,
}

/// An encoded entry, ready to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    bytes: &'a [u8],
    crc: u32,
}

impl<'a> Encoded<'a> {
    /// Returns the bytes of the entry: its header and its zlib stream.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the CRC-32 of the entry, as an index stores it.
    pub fn crc(&self) -> u32 {
        self.crc
    }
}

impl Encoder {
    /// Returns an encoder that deflates at `level`, 0 to 9.
    pub fn new(level: u8) -> Encoder {
        Encoder {
            level,
            deflater: Deflater::default(),
            bytes: Vec::new(),
        }
    }

    /// Encodes an entry with `content`: an object, or the instructions of a delta. The buffers stay
    /// as large as the largest content required.
    pub fn encode(&mut self, header: EntryHeader, content: &[u8]) -> Encoded<'_> {
        self.bytes.clear();
        entry(header, content.len() as u64).encode(&mut self.bytes);
        let deflated = self.deflater.deflate(self.level, &[], content);
        self.bytes.extend_from_slice(deflated);
        self.encoded()
    }

    /// Encodes an entry with a content of `size_bytes` whose zlib stream is `deflated`.
    pub fn wrap(&mut self, header: EntryHeader, size_bytes: u64, deflated: &[u8]) -> Encoded<'_> {
        self.bytes.clear();
        entry(header, size_bytes).encode(&mut self.bytes);
        self.bytes.extend_from_slice(deflated);
        self.encoded()
    }

    fn encoded(&self) -> Encoded<'_> {
        Encoded {
            crc: crc32fast::hash(&self.bytes),
            bytes: &self.bytes,
        }
    }
}

fn entry(header: EntryHeader, size_bytes: u64) -> Entry {
    Entry {
        header,
        size_bytes,
        header_len: 0,
    }
}

/// A pack that is being written to a temporary file. Dropping the value removes the file. The pack
/// becomes visible only when [`finish`](Self::finish) completes.
pub struct PackWriter {
    directory: PathBuf,
    options: Options,
    temporary: TemporaryFile,
    buffer: Vec<u8>,
    /// The offset of the next entry.
    offset: u64,
    /// The hash of the written bytes; `None` if the number of entries in the header is not known
    /// yet.
    digester: Option<TrailerDigester>,
    ids: Vec<u8>,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
    /// Whether an appended entry could not be written.
    is_broken: bool,
}

/// A pack that has been written.
#[derive(Clone, Debug)]
pub struct WrittenPack {
    /// The path of the pack.
    pub pack: PathBuf,
    /// The path of the index.
    pub index: PathBuf,
    /// The checksum at the end of the pack.
    pub checksum: ObjectId,
    /// The number of entries.
    pub objects: u32,
}

impl PackWriter {
    /// Creates the temporary file in the existing `directory`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be created.
    pub fn begin(directory: &Path, options: Options) -> Result<PackWriter, Error> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(b"PACK\0\0\0\x02");
        buffer.extend_from_slice(&options.count.unwrap_or(0).to_be_bytes());
        Ok(PackWriter {
            temporary: TemporaryFile::create(directory, "pack")?,
            directory: directory.to_owned(),
            offset: buffer.len() as u64,
            digester: (options.count).map(|_| TrailerDigester::new(options.files.kind)),
            buffer,
            ids: Vec::new(),
            offsets: Vec::new(),
            crcs: Vec::new(),
            is_broken: false,
            options,
        })
    }

    /// Returns the number of entries so far.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether there are no entries yet.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the start of the next entry, from which the distances of deltas are counted.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends the entry of the object `id` and returns its offset. The caller must ensure that the
    /// pack does not contain the object yet.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the entry cannot be written, and with `ErrorKind::Limit` if
    /// the pack has too many entries.
    pub fn append(&mut self, id: &oid, entry: &Encoded<'_>) -> Result<u64, Error> {
        let start = self.offset;
        self.put(entry.bytes)?;
        self.record(id, start, entry.crc)?;
        Ok(start)
    }

    /// Appends an object of `size_bytes` from a stream, without holding it in memory. Returns the
    /// id of the object. If `exists` then reports that the object exists already, the entry is
    /// removed.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the stream cannot be read or the entry cannot be written, with
    /// `ErrorKind::Truncated` if the stream is shorter than `size_bytes`, with
    /// `ErrorKind::Collision` if the content is part of a known attack on SHA-1, with
    /// `ErrorKind::Limit` if the pack has too many entries, and with the error of `exists`. The
    /// written part of the entry is removed; after a failed write, the pack [cannot be
    /// finished](Self::finish).
    pub fn append_stream(
        &mut self,
        kind: ObjectKind,
        size_bytes: u64,
        from: &mut dyn Read,
        exists: &mut dyn FnMut(&oid) -> Result<bool, Error>,
    ) -> Result<ObjectId, Error> {
        self.flush()?;
        let (start, digester) = (self.offset, self.digester.clone());
        let streamed = self.deflate_stream(kind, size_bytes, from);
        let known = streamed.and_then(|(id, crc)| Ok((id, crc, exists(&id)?)));
        if let Ok((id, crc, false)) = known {
            self.record(&id, start, crc)?;
            return Ok(id);
        }
        self.buffer.clear();
        (self.offset, self.digester) = (start, digester);
        let mut file = &self.temporary.file;
        let truncated = file.set_len(start);
        let truncated = truncated.and_then(|()| file.seek(SeekFrom::Start(start)));
        self.is_broken |= truncated.is_err();
        truncated.context(ErrorKind::Io, "cannot truncate", &self.temporary.path)?;
        known.map(|(id, ..)| id)
    }

    fn deflate_stream(
        &mut self,
        kind: ObjectKind,
        size_bytes: u64,
        from: &mut dyn Read,
    ) -> Result<(ObjectId, u32), Error> {
        let mut head = Vec::new();
        entry(EntryHeader::Object(kind), size_bytes).encode(&mut head);
        let mut digester = Digester::new(self.options.files.kind);
        digester.update(&gix_object::encode::loose_header(kind, size_bytes));
        let level = Level::new(self.options.level.min(9));
        let mut entry = PackEntryWriter {
            crc: crc32fast::Hasher::new(),
            writer: self,
        };
        let unwritable =
            |error: io::Error| Error::new(ErrorKind::Io, "unable to write pack").because(error);
        entry.write_all(&head).map_err(unwritable)?;
        let mut deflater = Writer::new(Format::Zlib, level, entry);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut rest = size_bytes;
        while rest > 0 {
            let room = usize::try_from(rest).map_or(CHUNK_BYTES, |rest| rest.min(CHUNK_BYTES));
            let len = match from.read(&mut chunk[..room]) {
                Ok(0) => return Err(Error::new(ErrorKind::Truncated, "short read")),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = "cannot read the objects to pack";
                    return Err(Error::new(ErrorKind::Io, message).because(error));
                }
            };
            digester.update(&chunk[..len]);
            deflater.write_all(&chunk[..len]).map_err(unwritable)?;
            rest -= len as u64;
        }
        let entry = deflater.finish().map_err(unwritable)?;
        let crc = entry.crc.finalize();
        let id = digester.finish().map_err(|collision| {
            let message = "SHA-1 appears to be part of a collision attack";
            Error::new(ErrorKind::Collision, message).because(collision)
        })?;
        Ok((id, crc))
    }

    fn record(&mut self, id: &oid, start: u64, crc: u32) -> Result<(), Error> {
        let most = self.options.count.unwrap_or(u32::MAX) as usize;
        if self.offsets.len() >= most {
            return Err(Error::new(ErrorKind::Limit, "pack has too many entries"));
        }
        self.ids.extend_from_slice(id.as_bytes());
        self.offsets.push(start);
        self.crcs.push(crc);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            self.write(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Some(digester) = &mut self.digester {
            digester.update(bytes);
        }
        let written = (&self.temporary.file).write_all(bytes);
        self.is_broken |= written.is_err();
        written.context(ErrorKind::Io, "unable to write", &self.temporary.path)
    }

    /// Writes the trailer and the index, flushes all files if this is configured, and renames the
    /// files, the index last.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a file cannot be written or renamed, or could not be written
    /// before, with `ErrorKind::Limit` if the number of entries differs from the announced one, and
    /// with `ErrorKind::Collision` if another pack of this name exists.
    pub fn finish(mut self) -> Result<WrittenPack, Error> {
        if self.is_broken {
            let message = "cannot write a part of the pack";
            return Err(Error::new(ErrorKind::Io, message).at_path(&self.temporary.path));
        }
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        if self
            .options
            .count
            .is_some_and(|announced| announced != count)
        {
            let message =
                format!("the pack has {count} entries, but its header announces another number");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.flush()?;
        let kind = self.options.files.kind;
        let (checksum, order) = std::thread::scope(|scope| {
            let ids = &self.ids;
            let sorting = || install::sort_by_id(ids, kind, 1);
            let sorted = match count {
                0..1000 => None,
                _ => Some(scope.spawn(sorting)),
            };
            let checksum = match &self.digester {
                Some(digester) => Ok(digester.clone().finish()),
                None => self.digest_again(count),
            };
            let order = match sorted {
                Some(sorted) => sorted.join().unwrap_or_else(|_| sorting()),
                None => sorting(),
            };
            (checksum, order)
        });
        let checksum = checksum?;
        self.digester = None;
        self.write(checksum.as_slice())?;
        self.temporary.sync(self.options.files.sync)?;
        let rows = IndexTable {
            kind,
            ids: &self.ids,
            offsets: &self.offsets,
            crcs: &self.crcs,
            order: &order,
        };
        let names = PackFileNames::new(&self.directory, &self.options.files, &checksum);
        install::install(
            &names,
            &self.options.files,
            &rows,
            self.temporary,
            &checksum,
        )?;
        Ok(WrittenPack {
            pack: names.pack,
            index: names.index,
            checksum,
            objects: count,
        })
    }

    /// Writes the number of entries to the header and hashes the file from its start.
    fn digest_again(&self, count: u32) -> Result<ObjectId, Error> {
        let file = &self.temporary.file;
        let digest = || -> io::Result<ObjectId> {
            file.write_all_at(&count.to_be_bytes(), COUNT_OFFSET)?;
            let mut digester = TrailerDigester::new(self.options.files.kind);
            let mut chunk = vec![0; BUFFER_BYTES];
            let mut at = 0;
            while at < self.offset {
                let room = (self.offset - at).min(BUFFER_BYTES as u64) as usize;
                file.read_exact_at(&mut chunk[..room], at)?;
                digester.update(&chunk[..room]);
                at += room as u64;
            }
            Ok(digester.finish())
        };
        digest().context(ErrorKind::Io, "unable to complete", &self.temporary.path)
    }
}

impl std::fmt::Debug for PackWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackWriter")
            .field("directory", &self.directory)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// An entry that is being written to the pack, with its CRC-32.
struct PackEntryWriter<'a> {
    crc: crc32fast::Hasher,
    writer: &'a mut PackWriter,
}

impl Write for PackEntryWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.writer.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
