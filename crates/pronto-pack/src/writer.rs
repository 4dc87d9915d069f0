//! Writes a new pack: entries one after another, then the trailer and the index; finally names the
//! files.
//!
//! Most of the work is deflating, which needs no writer. An [`Encoder`] for each thread makes
//! entries, and the only [`PackWriter`] (behind a lock, if there are several threads) appends them.
//!
//! ```
//! use pronto_hash::{Kind, digest};
//! use pronto_pack::entry::Header;
//! use pronto_pack::writer::{Encoder, Options, PackWriter};
//! # let directory = std::env::temp_dir().join(format!("pronto-writer-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let mut writer = PackWriter::begin(&directory, Options::default())?;
//! let id = digest(Kind::Sha1, &[b"blob 2\0", b"hi"])?;
//! let mut encoder = Encoder::new(1);
//! writer.append(&id, &encoder.encode(Header::Object(gix_object::Kind::Blob), b"hi"))?;
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
use crate::entry::{Entry, Header};
use crate::error::{Error, ErrorKind};
use crate::idx::write::Rows;
use crate::indexer;
use crate::install::{self, Names};
use crate::temporary::Temporary;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Bytes of a stream that are held at a time.
const CHUNK_BYTES: usize = 128 << 10;

/// The default level of zlib and Git.
const DEFAULT_LEVEL: u8 = 6;

/// The position of the number of entries in the header of a pack.
const COUNT_OFFSET: u64 = 8;

/// Options for writing a pack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The zlib level of contents that are [streamed](PackWriter::append_stream), 0 to 9.
    pub level: u8,
    /// The number of entries, if it is known. Then the pack is digested while it is written;
    /// otherwise it is read again at the end.
    pub count: Option<u32>,
    /// Options for its files: hash, permissions, index version, `.rev`, `.keep`, flushing.
    pub files: indexer::Options,
}

impl Default for Options {
    /// At zlib's default level, of as many entries as come.
    fn default() -> Self {
        Options {
            level: DEFAULT_LEVEL,
            count: None,
            files: indexer::Options::default(),
        }
    }
}

/// Makes entries. One for each thread.
#[derive(Debug)]
pub struct Encoder {
    level: u8,
    deflater: Deflater,
    bytes: Vec<u8>,
}

/// An entry ready to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    bytes: &'a [u8],
    crc: u32,
}

impl<'a> Encoded<'a> {
    /// The entry: its header and its zlib stream.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The CRC-32 of the entry, as an index has it.
    pub fn crc(&self) -> u32 {
        self.crc
    }
}

impl Encoder {
    /// One that deflates at `level`, 0 to 9.
    pub fn new(level: u8) -> Encoder {
        Encoder {
            level,
            deflater: Deflater::default(),
            bytes: Vec::new(),
        }
    }

    /// The entry of `content`: of a whole object, or the instructions of a delta. Holds as much
    /// memory as the largest content took so far.
    pub fn encode(&mut self, header: Header, content: &[u8]) -> Encoded<'_> {
        self.bytes.clear();
        entry(header, content.len() as u64).encode(&mut self.bytes);
        let deflated = self.deflater.deflate(self.level, &[], content);
        self.bytes.extend_from_slice(deflated);
        self.encoded()
    }

    /// The same of `size_bytes` that are deflated already: `deflated` is their zlib stream.
    pub fn wrap(&mut self, header: Header, size_bytes: u64, deflated: &[u8]) -> Encoded<'_> {
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

fn entry(header: Header, size_bytes: u64) -> Entry {
    Entry {
        header,
        size_bytes,
        header_len: 0,
    }
}

/// A pack that is being written under a temporary name. Dropping it removes it. It becomes visible
/// only when [`finish`](Self::finish) completes.
pub struct PackWriter {
    directory: PathBuf,
    options: Options,
    temporary: Temporary,
    buffer: Vec<u8>,
    /// The start of the next entry.
    offset: u64,
    /// Of what has been written to the file; `None` if the header is not known yet.
    digester: Option<TrailerDigester>,
    ids: Vec<u8>,
    offsets: Vec<u64>,
    crcs: Vec<u32>,
    /// Something that was appended did not get into the file.
    is_broken: bool,
}

/// A pack that has been written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The pack.
    pub pack: PathBuf,
    /// Its index.
    pub index: PathBuf,
    /// The checksum at its end.
    pub checksum: ObjectId,
    /// The number of entries.
    pub objects: u32,
}

impl PackWriter {
    /// Makes the temporary file in `directory`, which exists.
    ///
    /// # Errors
    /// `Io` when it cannot be made.
    pub fn begin(directory: &Path, options: Options) -> Result<PackWriter, Error> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(b"PACK\0\0\0\x02");
        buffer.extend_from_slice(&options.count.unwrap_or(0).to_be_bytes());
        Ok(PackWriter {
            temporary: Temporary::create(directory, "pack")?,
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

    /// Whether there is no entry yet.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the start of the next entry, from which the distances of deltas are counted.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends the entry of the object `id` and says where it starts. Whether there is one of
    /// that object already is the caller's to know.
    ///
    /// # Errors
    /// `Io` when it cannot be written, `Limit` when the pack is full.
    pub fn append(&mut self, id: &oid, entry: &Encoded<'_>) -> Result<u64, Error> {
        let start = self.offset;
        self.put(entry.bytes)?;
        self.record(id, start, entry.crc)?;
        Ok(start)
    }

    /// Appends an object of `size_bytes` from a stream, which is never held whole, and gives its
    /// id. If `exists` then says that the object is there already, the entry is taken back.
    ///
    /// # Errors
    /// `Io` when it cannot be read or written, `Truncated` when the stream is shorter,
    /// `Collision` when its content is part of a known attack on SHA-1, `Limit` when the pack is
    /// full, and those of `exists`. What was written of the object is taken back; after a failure to
    /// write the pack [cannot be finished](Self::finish).
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
        entry(Header::Object(kind), size_bytes).encode(&mut head);
        let mut digester = Digester::new(self.options.files.kind);
        digester.update(&gix_object::encode::loose_header(kind, size_bytes));
        let level = Level::new(self.options.level.min(9));
        let mut entry = Counted {
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
                    let message = "cannot read what is to be packed";
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

    /// Writes the trailer and the index, waits until all is on the disk if that is wanted, and
    /// gives the files their names, the index last.
    ///
    /// # Errors
    /// `Io` when a file cannot be written or renamed, or could not be written before; `Limit` when
    /// there are not as many entries as were announced, `Collision` when there is another pack of
    /// that name.
    pub fn finish(mut self) -> Result<Written, Error> {
        if self.is_broken {
            let message = "a part of the pack could not be written";
            return Err(Error::new(ErrorKind::Io, message).at_path(&self.temporary.path));
        }
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        if self
            .options
            .count
            .is_some_and(|announced| announced != count)
        {
            let message = format!("pack has {count} entries, not as many as announced");
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
        let rows = Rows {
            kind,
            ids: &self.ids,
            offsets: &self.offsets,
            crcs: &self.crcs,
            order: &order,
        };
        let names = Names::new(&self.directory, &self.options.files, &checksum);
        install::install(
            &names,
            &self.options.files,
            &rows,
            self.temporary,
            &checksum,
        )?;
        Ok(Written {
            pack: names.pack,
            index: names.index,
            checksum,
            objects: count,
        })
    }

    /// Writes the number of entries into the header and digests the file from its start.
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

/// One entry on its way into the pack.
struct Counted<'a> {
    crc: crc32fast::Hasher,
    writer: &'a mut PackWriter,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.writer.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
