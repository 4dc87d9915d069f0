//! Recovers objects of a damaged pack, one entry after another, like `git unpack-objects -r`. After
//! an entry that cannot be inflated, the next entry is expected at the position where inflation
//! stopped.
//!
//! This position, and the messages about it, depend on zlib, so a port of zlib inflates here.

mod stream;

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, oid};

use self::stream::{BUFFER_ERROR, Reader, STREAM_END, ZlibStream};
use crate::delta;
use crate::error::{Error, ErrorKind};

/// The number of bytes that are allocated for an object at a time; more only when these are filled.
const ROOM_BYTES: usize = 1 << 16;

/// The receiver of recovered objects, and the source of bases that are not in the pack.
pub trait Salvage {
    /// Called with the declared number of entries of the pack.
    fn begin(&mut self, count: u32);

    /// Stores an object and returns its id.
    ///
    /// # Errors
    /// Fails if the object cannot be stored; the rest of the pack is then not read.
    fn object(&mut self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, Error>;

    /// Stores a blob of `size_bytes` that is too large to be held in memory. Returns its id.
    ///
    /// # Errors
    /// Fails as [`object`](Self::object) does, and if `content` cannot be read.
    fn large_blob(&mut self, size_bytes: u64, content: &mut dyn Read) -> Result<ObjectId, Error>;

    /// Returns the base `id`, if it exists.
    ///
    /// # Errors
    /// Fails if the existence cannot be determined.
    fn base(&mut self, id: &oid) -> Result<Option<(ObjectKind, Vec<u8>)>, Error>;

    /// Called for damage that prevents an object from being recovered.
    fn damaged(&mut self, damage: Damage);

    /// Called after each entry, whether it was recovered or not.
    ///
    /// # Errors
    /// Fails if the operation is cancelled.
    fn advanced(&mut self) -> Result<(), Error>;
}

/// Damage of a pack that loses an object. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// An entry has an unknown type.
    UnknownType(u8),
    /// The base of a delta was stored, but cannot be read.
    MissingBase(ObjectId),
    /// zlib rejects a stream. [`Inflate`](Self::Inflate) or an error follows.
    Stream {
        /// Git's name of the error.
        error: &'static str,
        /// The message of zlib.
        reason: &'static str,
    },
    /// Inflation ended with this return code of zlib.
    Inflate(i32),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::UnknownType(kind) => write!(f, "bad object type {kind}"),
            Damage::MissingBase(id) => write!(f, "failed to read delta-pack base object {id}"),
            Damage::Stream { error, reason } => write!(f, "inflate: {error} ({reason})"),
            Damage::Inflate(code) => write!(f, "inflate returned {code}"),
        }
    }
}

/// The default size from which blobs are not held in memory.
const LARGE_BYTES: u64 = 512 << 20;

/// Options to salvage a pack (`git unpack-objects`).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hash function of object ids.
    pub kind: Kind,
    /// The largest number of bytes that are read (`--max-input-size`).
    pub limit_bytes: Option<u64>,
    /// The size above which blobs are not held in memory (`core.bigFileThreshold`).
    pub large_bytes: u64,
    /// Only examine objects, without resolving deltas (`-n`).
    pub dry_run: bool,
}

impl Options {
    /// Returns the options for a pack whose object ids are of `kind`, without a size limit.
    pub fn new(kind: Kind) -> Self {
        Options {
            kind,
            limit_bytes: None,
            large_bytes: LARGE_BYTES,
            dry_run: false,
        }
    }
}

/// Reads a pack from `input` and passes its recoverable objects to `into`. Returns the bytes that
/// were read after the pack.
///
/// Memory: one object, the deltas that wait for their base, the bases of the current chain, and 32
/// bytes for each object.
///
/// # Errors
/// Fails with `ErrorKind::Truncated`, `ErrorKind::Corrupt`, `ErrorKind::Unsupported` or
/// `ErrorKind::Limit` and Git's message if the pack cannot be read further, and with the error of
/// `into`. Objects that were stored before stay.
pub fn salvage(
    input: &mut dyn Read,
    options: &Options,
    into: &mut dyn Salvage,
) -> Result<Vec<u8>, Error> {
    let mut reader = Reader::new(input, options.kind, options.limit_bytes);
    let mut header = [0; 12];
    header.copy_from_slice(&reader.fill(12)?[..12]);
    let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    if header[..4] != *b"PACK" {
        return Err(Error::new(ErrorKind::Corrupt, "bad pack file"));
    }
    if !matches!(number(4), 2 | 3) {
        let message = format!("unknown pack file version {}", number(4));
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    reader.take(12)?;
    into.begin(number(8));
    let mut unpacking = Unpacking {
        reader,
        options,
        into,
        ids: HashMap::new(),
        waiting: HashMap::new(),
        waiting_count: 0,
    };
    for number in 0..number(8) {
        unpacking.entry(number)?;
        unpacking.into.advanced()?;
    }
    if unpacking.waiting_count > 0 {
        let message = "unresolved deltas left after unpacking";
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    unpacking.reader.finish(options.kind)
}

/// The base of a delta.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SalvagedBase {
    Offset(u64),
    Id(ObjectId),
}

/// A delta whose base is unknown.
struct Delta {
    number: u32,
    offset: u64,
    instructions: Vec<u8>,
}

struct Unpacking<'a> {
    reader: Reader<'a>,
    options: &'a Options,
    into: &'a mut dyn Salvage,
    /// The ids of the stored objects, by the start of their entries.
    ids: HashMap<u64, ObjectId>,
    waiting: HashMap<SalvagedBase, Vec<Delta>>,
    waiting_count: usize,
}

impl Unpacking<'_> {
    /// Reads the entry with this number.
    fn entry(&mut self, number: u32) -> Result<(), Error> {
        let offset = self.reader.consumed;
        let mut byte = self.reader.byte()?;
        let kind = (byte >> 4) & 7;
        let (mut size, mut shift) = (u64::from(byte & 15), 4);
        while byte & 0x80 != 0 {
            byte = self.reader.byte()?;
            size = size.wrapping_add(u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0));
            shift = (shift + 7).min(64);
        }
        let object_kind = match kind {
            1 => ObjectKind::Commit,
            2 => ObjectKind::Tree,
            3 => ObjectKind::Blob,
            4 => ObjectKind::Tag,
            6 => return self.offset_delta(number, offset, size),
            7 => return self.id_delta(number, offset, size),
            _ => {
                self.into.damaged(Damage::UnknownType(kind));
                return Ok(());
            }
        };
        let is_large = object_kind == ObjectKind::Blob && size > self.options.large_bytes;
        if is_large && !self.options.dry_run {
            return self.large_blob(offset, size);
        }
        match self.inflate(size)? {
            Some(content) => self.added(offset, object_kind, content),
            None => Ok(()),
        }
    }

    fn offset_delta(&mut self, number: u32, offset: u64, size: u64) -> Result<(), Error> {
        let mut byte = self.reader.byte()?;
        let mut distance = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            distance += 1;
            if distance >> 56 != 0 {
                let message = "offset value overflow for delta base object";
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            byte = self.reader.byte()?;
            distance = (distance << 7) + u64::from(byte & 0x7f);
        }
        if distance == 0 || distance >= offset {
            let message = "offset value out of bound for delta base object";
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        let base = offset - distance;
        let Some(instructions) = self.inflate(size)? else {
            return Ok(());
        };
        let delta = Delta {
            number,
            offset,
            instructions,
        };
        match self.ids.get(&base).copied() {
            Some(id) => self.apply_to(&id, delta),
            None => {
                self.wait(SalvagedBase::Offset(base), delta);
                Ok(())
            }
        }
    }

    fn id_delta(&mut self, number: u32, offset: u64, size: u64) -> Result<(), Error> {
        let len = self.options.kind.len_in_bytes();
        let base = ObjectId::from_bytes_or_panic(&self.reader.fill(len)?[..len]);
        self.reader.take(len)?;
        let Some(instructions) = self.inflate(size)? else {
            return Ok(());
        };
        let delta = Delta {
            number,
            offset,
            instructions,
        };
        match self.into.base(&base)? {
            Some((kind, content)) => self.resolve(delta, kind, Arc::new(content)),
            None => {
                self.wait(SalvagedBase::Id(base), delta);
                Ok(())
            }
        }
    }

    fn wait(&mut self, base: SalvagedBase, delta: Delta) {
        self.waiting_count += 1;
        self.waiting.entry(base).or_default().push(delta);
    }

    fn apply_to(&mut self, base: &oid, delta: Delta) -> Result<(), Error> {
        match self.into.base(base)? {
            Some((kind, content)) => self.resolve(delta, kind, Arc::new(content)),
            None => {
                self.into.damaged(Damage::MissingBase(base.to_owned()));
                Ok(())
            }
        }
    }

    fn added(&mut self, offset: u64, kind: ObjectKind, content: Vec<u8>) -> Result<(), Error> {
        let mut stack = Vec::new();
        self.keep(offset, kind, content, &mut stack)?;
        self.unwind(kind, stack)
    }

    fn resolve(&mut self, delta: Delta, kind: ObjectKind, base: Arc<Vec<u8>>) -> Result<(), Error> {
        self.unwind(kind, vec![(delta, base)])
    }

    /// Applies the deltas on the stack, and the deltas that wait for their results. The chain is
    /// not followed by recursion, because chains can be long.
    fn unwind(
        &mut self,
        kind: ObjectKind,
        mut stack: Vec<(Delta, Arc<Vec<u8>>)>,
    ) -> Result<(), Error> {
        while let Some((delta, base)) = stack.pop() {
            let mut content = Vec::new();
            if delta::apply(&base, &delta.instructions, &mut content).is_err() {
                return Err(Error::new(ErrorKind::Corrupt, "failed to apply delta"));
            }
            self.keep(delta.offset, kind, content, &mut stack)?;
        }
        Ok(())
    }

    /// Stores an object, and pushes the deltas that wait for it onto the stack, the youngest on
    /// top.
    fn keep(
        &mut self,
        offset: u64,
        kind: ObjectKind,
        content: Vec<u8>,
        stack: &mut Vec<(Delta, Arc<Vec<u8>>)>,
    ) -> Result<(), Error> {
        let id = self.into.object(kind, &content)?;
        self.ids.insert(offset, id);
        let keys = [SalvagedBase::Offset(offset), SalvagedBase::Id(id)];
        let mut ready: Vec<Delta> = Vec::new();
        for key in keys {
            ready.extend(self.waiting.remove(&key).unwrap_or_default());
        }
        self.waiting_count -= ready.len();
        ready.sort_unstable_by_key(|delta| delta.number);
        let content = Arc::new(content);
        stack.extend(ready.into_iter().map(|delta| (delta, content.clone())));
        Ok(())
    }

    /// Inflates the next stream of `size` bytes. Returns `None` in a dry run, and for a malformed
    /// stream, which is reported.
    fn inflate(&mut self, size: u64) -> Result<Option<Vec<u8>>, Error> {
        let too_large = |_| {
            Error::new(
                ErrorKind::Limit,
                "object is too large for the memory of this machine",
            )
        };
        let size = usize::try_from(size).map_err(too_large)?;
        let mut stream = ZlibStream::new(&mut self.reader);
        // The whole content, or in a dry run only the last piece.
        let mut out = Vec::new();
        let mut done = 0;
        let code = loop {
            let start = if self.options.dry_run { 0 } else { done };
            out.resize(start + (size - done).min(ROOM_BYTES), 0);
            let step = stream.step(&mut out[start..])?;
            done += step.produced;
            out.truncate(start + step.produced);
            match step.code {
                Some(STREAM_END) if done == size => {
                    return Ok((!self.options.dry_run).then_some(out));
                }
                Some(code) => break code,
                None => {}
            }
        };
        if let Some(damage) = stream.damage() {
            self.into.damaged(damage);
        }
        self.into.damaged(Damage::Inflate(code));
        Ok(None)
    }

    /// Passes a blob to the receiver in pieces.
    fn large_blob(&mut self, offset: u64, size: u64) -> Result<(), Error> {
        let mut stream = ZlibStream::new(&mut self.reader);
        let given = self.into.large_blob(size, &mut stream);
        // At the end of the content, the checksum of the zlib stream follows.
        let end = loop {
            if stream.code.is_some() || stream.failure.is_some() || given.is_err() {
                break stream.code;
            }
            if stream.step(&mut [0])?.produced > 0 {
                break Some(BUFFER_ERROR);
            }
        };
        if let Some(failure) = stream.failure.take() {
            return Err(failure);
        }
        if end.is_some_and(|code| code != STREAM_END) {
            if let Some(damage) = stream.damage() {
                self.into.damaged(damage);
            }
            let message = format!("inflate returned ({})", end.unwrap_or_default());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        self.ids.insert(offset, given?);
        Ok(())
    }
}
