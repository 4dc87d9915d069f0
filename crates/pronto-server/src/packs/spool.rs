//! A spool: the bytes of a pack, with one writer and any number of readers.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pronto::upload_pack::PackCounts;
use pronto::{Error, ErrorKind};
use pronto_io::interrupt::Interrupt;

use super::SpoolBudget;

/// The size in bytes of the largest pack that is kept in memory.
const MEMORY_BYTES: usize = 256 << 10;

/// The memory in bytes of a spool, without the bytes of its pack.
const SPOOL_BYTES: usize = 1 << 10;

/// The number of bytes that are reserved at once.
const STEP_BYTES: u64 = 1 << 20;

/// The number of bytes that are reserved at once within the first [`STEP_BYTES`].
const SMALL_STEP_BYTES: u64 = 32 << 10;

/// The number of bytes by which the writer of an uncached pack may be ahead of its slowest reader.
const WINDOW_BYTES: usize = 8 << 20;

/// The size of the pieces in which readers copy.
const PIECE_BYTES: usize = 256 << 10;

/// The interval at which a waiting reader checks whether the server ends.
const TICK: Duration = Duration::from_secs(1);

/// The bytes of one pack, in memory, in a file, or in a window.
#[derive(Debug)]
pub(super) struct PackSpool {
    directory: PathBuf,
    state: Mutex<SpoolState>,
    changed: Condvar,
    /// The cached bytes of a pack that is not in memory. The file has no name.
    file: OnceLock<File>,
    budget: Arc<SpoolBudget>,
}

#[derive(Debug, Default)]
struct SpoolState {
    /// The cached bytes of a small pack. The buffer is empty after the file was created.
    memory: Vec<u8>,
    /// The number of cached bytes, in memory or in the file.
    kept: u64,
    /// The number of all written bytes.
    written: u64,
    /// The bytes after the cached ones, if the pack is no longer cached, that at least one reader
    /// has not read.
    window: VecDeque<Vec<u8>>,
    /// The offset in the pack of the start of the window.
    window_start: u64,
    window_bytes: usize,
    /// Whether no more readers may join.
    is_closed: bool,
    /// The number of bytes that the budget counts for this spool.
    reserved: u64,
    /// The number of bytes that the memory budget counts for this spool.
    in_memory: u64,
    end: Option<Result<PackCounts, (ErrorKind, String)>>,
    /// The offset in the pack of each reader.
    readers: BTreeMap<u64, u64>,
    next_reader: u64,
    /// Whether the pack was aborted because it had no more readers.
    is_abandoned: bool,
}

/// A request that reads a spool, and may have to write it.
pub(super) struct Joined {
    pub(super) spool: Arc<PackSpool>,
    /// The id of the reader.
    pub(super) reader: u64,
    /// Whether this request generates the pack.
    pub(super) makes: bool,
}

/// The budget for the bytes of spools.
pub(super) trait SpoolRoom {
    /// Reserves bytes for `spool`. Returns whether there is room.
    fn reserve(&self, spool: &PackSpool, bytes: u64) -> bool;

    /// Reserves bytes in memory, in addition to those of [`reserve`](Self::reserve). Returns
    /// whether there is room.
    fn reserve_memory(&self, spool: &PackSpool, bytes: u64) -> bool;
}

/// The writing end of a spool.
pub(super) struct SpoolWriter<'a, R> {
    spool: &'a PackSpool,
    room: &'a R,
    /// The number of bytes that are reserved and not written yet.
    left: u64,
    is_ended: bool,
}

impl PackSpool {
    /// Returns a spool with one reader.
    pub(super) fn begin(directory: &Path, budget: Arc<SpoolBudget>) -> (PackSpool, u64) {
        let spool = PackSpool {
            directory: directory.to_owned(),
            state: Mutex::default(),
            changed: Condvar::new(),
            file: OnceLock::new(),
            budget,
        };
        let reader = spool.state().add_reader();
        (spool, reader)
    }

    fn state(&self) -> MutexGuard<'_, SpoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reader at the start of the pack. Returns `None` if the spool accepts no more readers.
    pub(super) fn join(&self) -> Option<u64> {
        let mut state = self.state();
        (!state.is_closed).then(|| state.add_reader())
    }

    /// Returns whether the pack is complete and the spool has no reader.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.end.is_some() && state.readers.is_empty()
    }

    /// Returns whether the pack was aborted because it had no more clients.
    pub(super) fn is_abandoned(&self) -> bool {
        self.state().is_abandoned
    }

    /// Returns the number of bytes that the budget counts for this spool.
    pub(super) fn reserved(&self) -> u64 {
        self.state().reserved
    }

    /// Adds bytes to the budget, until the spool is dropped.
    pub(super) fn reserve(&self, bytes: u64) {
        self.state().reserved += bytes;
        self.budget.bytes.inc_by(bytes.cast_signed());
    }

    /// Adds bytes to the memory budget, until they are in a file or the spool is dropped.
    pub(super) fn reserve_memory(&self, bytes: u64) {
        self.state().in_memory += bytes;
        self.budget.memory.inc_by(bytes.cast_signed());
    }

    /// Returns whether the pack is complete, the spool has no reader, and the pack is in memory.
    pub(super) fn is_idle_in_memory(&self) -> bool {
        self.is_idle() && self.state().in_memory > 0
    }

    /// Returns the writing end. A spool must have only one writer.
    pub(super) fn writer<'a, R: SpoolRoom>(&'a self, room: &'a R) -> SpoolWriter<'a, R> {
        SpoolWriter {
            spool: self,
            room,
            left: 0,
            is_ended: false,
        }
    }

    /// Copies the whole pack to `out`, at the speed of `out`, and returns the counts of the pack.
    fn copy(
        &self,
        reader: u64,
        out: &mut dyn Write,
        interrupt: &Interrupt,
    ) -> pronto::Result<PackCounts> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let mut position = 0;
        loop {
            piece.clear();
            if let Some(counts) = self.next(position, &mut piece, interrupt)? {
                return Ok(counts);
            }
            out.write_all(&piece).map_err(unwritable)?;
            position += piece.len() as u64;
            self.state().readers.insert(reader, position);
            self.changed.notify_all();
        }
    }

    /// Waits for bytes at `position` and adds them to `piece`. Returns the counts at the end of the
    /// pack, and `None` before the end.
    fn next(
        &self,
        position: u64,
        piece: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> pronto::Result<Option<PackCounts>> {
        let mut state = self.state();
        while position == state.written {
            match &state.end {
                Some(Ok(counts)) => return Ok(Some(*counts)),
                Some(Err((kind, message))) => return Err(Error::new(*kind, message.clone())),
                None => {}
            }
            interrupt
                .check()
                .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
            let waited = self.changed.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if position < state.memory.len() as u64 {
            let rest = state.memory.get(position as usize..).unwrap_or_default();
            piece.extend_from_slice(rest.get(..PIECE_BYTES).unwrap_or(rest));
            return Ok(None);
        }
        if position >= state.kept {
            state.read_window(position, piece);
            return Ok(None);
        }
        let len = (state.kept - position).min(PIECE_BYTES as u64) as usize;
        drop(state);
        piece.resize(len, 0);
        let file = self
            .file
            .get()
            .ok_or_else(|| failure("a cached pack has no file"))?;
        file.read_exact_at(piece, position).map_err(unreadable)?;
        Ok(None)
    }

    fn leave(&self, reader: u64) {
        self.state().readers.remove(&reader);
        self.changed.notify_all();
    }
}

impl Drop for PackSpool {
    fn drop(&mut self) {
        let (reserved, in_memory) = {
            let state = self.state();
            (state.reserved, state.in_memory)
        };
        self.budget.bytes.dec_by(reserved.cast_signed());
        self.budget.memory.dec_by(in_memory.cast_signed());
    }
}

impl SpoolState {
    fn add_reader(&mut self) -> u64 {
        let reader = self.next_reader;
        self.next_reader += 1;
        self.readers.insert(reader, 0);
        reader
    }

    fn add_kept(&mut self, bytes: usize) {
        self.kept += bytes as u64;
        self.written = self.kept;
    }

    /// Adds the bytes of the window at `position` to `piece`.
    fn read_window(&self, position: u64, piece: &mut Vec<u8>) {
        let mut start = self.window_start;
        for part in &self.window {
            let end = start + part.len() as u64;
            if position < end {
                let skipped = position.saturating_sub(start) as usize;
                piece.extend_from_slice(part.get(skipped..).unwrap_or_default());
                return;
            }
            start = end;
        }
    }

    /// Removes the bytes that all readers have read from the window.
    fn shrink_window(&mut self) {
        let slowest = self.readers.values().min().copied();
        let slowest = slowest.unwrap_or(self.written);
        while let Some(part) = self.window.front() {
            let end = self.window_start + part.len() as u64;
            if end > slowest {
                return;
            }
            self.window_bytes -= part.len();
            self.window_start = end;
            self.window.pop_front();
        }
    }
}

impl Joined {
    /// Writes the pack to `out`.
    ///
    /// # Errors
    /// Fails if the pack was not generated, its spool cannot be read, `out` cannot be written, or
    /// the request was interrupted.
    pub(super) fn read(
        &self,
        out: &mut dyn Write,
        interrupt: &Interrupt,
    ) -> pronto::Result<PackCounts> {
        self.spool.copy(self.reader, out, interrupt)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.spool.leave(self.reader);
    }
}

impl<R> SpoolWriter<'_, R> {
    /// Returns whether all written bytes are cached.
    pub(super) fn is_kept(&self) -> bool {
        !self.spool.state().is_closed
    }

    /// Ends the pack with the result of its generation.
    pub(super) fn end(mut self, made: &pronto::Result<PackCounts>) {
        let end = match made {
            Ok(counts) => Ok(*counts),
            Err(error) => Err((error.kind(), error.message().to_owned())),
        };
        self.finish(end);
    }

    fn finish(&mut self, end: Result<PackCounts, (ErrorKind, String)>) {
        self.is_ended = true;
        let mut state = self.spool.state();
        state.reserved -= self.left;
        self.spool.budget.bytes.dec_by(self.left.cast_signed());
        state.is_closed |= end.is_err();
        state.memory.shrink_to_fit();
        state.end = Some(end);
        self.spool.changed.notify_all();
    }
}

impl<R: SpoolRoom> SpoolWriter<'_, R> {
    /// Returns whether the budget has room for `bytes` more.
    fn fits(&mut self, bytes: u64) -> bool {
        if self.left < bytes {
            // Most packs are small.
            let step = match self.spool.reserved() < STEP_BYTES {
                true => SMALL_STEP_BYTES,
                false => STEP_BYTES,
            };
            let needed = bytes - self.left;
            let steps = [step.max(needed), needed];
            let fits = |step: &u64| self.room.reserve(self.spool, *step);
            let Some(step) = steps.into_iter().find(fits) else {
                return false;
            };
            self.left += step;
        }
        self.left -= bytes;
        true
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let spool = self.spool;
        if spool.file.get().is_none() && self.keep_in_memory(bytes) {
            return Ok(());
        }
        let file = match spool.file.get() {
            Some(file) => file,
            None => self.move_to_file()?,
        };
        // Readers do not read beyond the cached bytes.
        let kept = spool.state().kept;
        file.write_all_at(bytes, kept)?;
        spool.state().add_kept(bytes.len());
        Ok(())
    }

    /// Adds `bytes` to the buffer in memory. Returns whether there is room.
    fn keep_in_memory(&self, bytes: &[u8]) -> bool {
        let spool = self.spool;
        let len = spool.state().memory.len();
        let own = if len == 0 { SPOOL_BYTES } else { 0 };
        let fits = len + bytes.len() <= MEMORY_BYTES;
        if !fits || !self.room.reserve_memory(spool, (own + bytes.len()) as u64) {
            return false;
        }
        let mut state = spool.state();
        state.memory.extend_from_slice(bytes);
        state.add_kept(bytes.len());
        true
    }

    /// Creates the file, and moves the bytes in memory there.
    fn move_to_file(&self) -> io::Result<&File> {
        let spool = self.spool;
        let file = tempfile::tempfile_in(&spool.directory)?;
        let mut state = spool.state();
        file.write_all_at(&state.memory, 0)?;
        state.memory = Vec::new();
        let in_memory = std::mem::take(&mut state.in_memory);
        spool.budget.memory.dec_by(in_memory.cast_signed());
        Ok(spool.file.get_or_init(|| file))
    }

    /// Passes `bytes` to the current readers, and waits for the slowest one.
    fn pass(&self, bytes: &[u8]) {
        let mut state = self.spool.state();
        if !state.is_closed {
            state.is_closed = true;
            state.window_start = state.written;
        }
        loop {
            state.shrink_window();
            if state.window_bytes < WINDOW_BYTES || state.readers.is_empty() {
                break;
            }
            let waited = self.spool.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        for part in bytes.chunks(PIECE_BYTES) {
            state.window.push_back(part.to_vec());
        }
        state.window_bytes += bytes.len();
        state.written += bytes.len() as u64;
    }
}

impl<R: SpoolRoom> Write for SpoolWriter<'_, R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_closed = {
            let mut state = self.spool.state();
            if state.readers.is_empty() {
                (state.is_abandoned, state.is_closed) = (true, true);
                let message = "no client waits for the pack";
                return Err(io::Error::new(io::ErrorKind::BrokenPipe, message));
            }
            state.is_closed
        };
        if bytes.is_empty() {
            return Ok(0);
        }
        // A full or broken disk does not fail the request: the pack is not cached in this case.
        if is_closed || !self.fits(bytes.len() as u64) || self.keep(bytes).is_err() {
            self.pass(bytes);
        }
        self.spool.changed.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends the pack with an error for all readers if its writer panicked.
impl<R> Drop for SpoolWriter<'_, R> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.finish(Err((
                ErrorKind::Io,
                "internal error: the request panicked".into(),
            )));
        }
    }
}

/// Returns an error of the cache.
pub(super) fn failure(message: &str) -> Error {
    Error::new(ErrorKind::Io, message)
}

fn unwritable(error: io::Error) -> Error {
    failure("unable to write pack").because(error)
}

fn unreadable(error: io::Error) -> Error {
    failure("cannot read a cached pack").because(error)
}
