//! Bytes to be sent, as slices that do not move until they are written.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

use super::{Counters, Full};

/// Bytes that others hold too: a mapped file, a pack in memory.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A bounded first-in-first-out queue of byte slices.
///
/// Large pieces are handed over ([`push`](Self::push), [`push_shared`](Self::push_shared)) and
/// never copied; small ones are gathered ([`extend_from_slice`](Self::extend_from_slice)) and
/// copied once. Removal at the front is O(1) for each slice.
#[derive(Default)]
pub struct SendQueue {
    slices: VecDeque<Slice>,
    /// The number of bytes of the first slice that are sent.
    gone: usize,
    len: usize,
    limit: usize,
    counters: Counters,
}

enum Slice {
    Owned(Vec<u8>),
    Shared(SharedBytes, Range<usize>),
}

impl Slice {
    fn bytes(&self) -> &[u8] {
        match self {
            Slice::Owned(bytes) => bytes,
            Slice::Shared(bytes, range) => {
                (**bytes).as_ref().get(range.clone()).unwrap_or_default()
            }
        }
    }
}

/// The size of the buffers that small pieces are gathered in.
const GATHERED: usize = 16 * 1024;

/// The most slices that one write is given.
const SLICES_AT_ONCE: usize = 64;

impl SendQueue {
    /// An empty queue that holds at most `limit` bytes at a time.
    pub fn new(limit: usize) -> Self {
        SendQueue {
            limit,
            ..SendQueue::default()
        }
    }

    /// Returns the number of waiting bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that may still be queued.
    pub fn free_bytes(&self) -> usize {
        self.limit.saturating_sub(self.len)
    }

    /// Appends `bytes`. They are copied only if they are no longer than 16 KiB: what holds a small
    /// piece is larger than the piece, and memory shall stay within about twice the limit.
    ///
    /// # Errors
    /// [`Full`] if they would exceed the limit.
    pub fn push(&mut self, bytes: Vec<u8>) -> Result<(), Full> {
        let length = bytes.len();
        if length <= GATHERED {
            return self.extend_from_slice(&bytes);
        }
        self.append(Slice::Owned(bytes), length)
    }

    /// Appends the part `range` of `bytes`, as [`push`](Self::push).
    ///
    /// # Errors
    /// [`Full`] if it would exceed the limit.
    ///
    /// # Panics
    /// If `range` is not within `bytes`.
    pub fn push_shared(&mut self, bytes: SharedBytes, range: Range<usize>) -> Result<(), Full> {
        assert!(
            range.start <= range.end && range.end <= (*bytes).as_ref().len(),
            "a range outside of its bytes"
        );
        let length = range.len();
        if length <= GATHERED {
            return self.extend_from_slice(&(*bytes).as_ref()[range]);
        }
        self.append(Slice::Shared(bytes, range), length)
    }

    /// Appends a copy of `bytes`, all or none of them, gathered with other small pieces.
    ///
    /// # Errors
    /// [`Full`] if they would exceed the limit.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() > self.free_bytes() {
            return Err(Full);
        }
        self.counters.copied(bytes.len());
        if let Some(Slice::Owned(last)) = self.slices.back_mut()
            && last.capacity() - last.len() >= bytes.len()
        {
            last.extend_from_slice(bytes);
            self.len += bytes.len();
            return Ok(());
        }
        let capacity = bytes.len().max(GATHERED);
        self.counters.allocated(capacity);
        let mut gathered = Vec::with_capacity(capacity);
        gathered.extend_from_slice(bytes);
        self.append(Slice::Owned(gathered), bytes.len())
    }

    fn append(&mut self, slice: Slice, length: usize) -> Result<(), Full> {
        if length > self.free_bytes() {
            return Err(Full);
        }
        if length > 0 {
            self.slices.push_back(slice);
            self.len += length;
        }
        Ok(())
    }

    /// The first contiguous piece, empty when nothing waits.
    pub fn front(&self) -> &[u8] {
        self.slices
            .front()
            .map_or(&[], |slice| &slice.bytes()[self.gone..])
    }

    /// Removes `count` bytes from the front.
    ///
    /// # Panics
    /// If fewer bytes are waiting.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len, "consumed more than was waiting");
        self.len -= count;
        self.gone += count;
        while let Some(first) = self.slices.front() {
            let length = first.bytes().len();
            if self.gone < length {
                break;
            }
            self.gone -= length;
            self.slices.pop_front();
        }
    }

    /// Writes once to `sink`, several slices together, and removes the written bytes. Returns their
    /// number.
    ///
    /// # Errors
    /// Those of the sink, except [`io::ErrorKind::Interrupted`], after which it tries again.
    pub fn write_to(&mut self, sink: &mut (impl Write + ?Sized)) -> io::Result<usize> {
        if self.is_empty() {
            return Ok(0);
        }
        let mut skipped = self.gone;
        let slices: Vec<IoSlice<'_>> = (self.slices.iter().take(SLICES_AT_ONCE))
            .map(|slice| IoSlice::new(&slice.bytes()[std::mem::take(&mut skipped)..]))
            .collect();
        let count = loop {
            match sink.write_vectored(&slices) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        drop(slices);
        let count = count.min(self.len);
        self.consume(count);
        Ok(count)
    }

    /// Returns the copies and allocations of this queue.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl std::fmt::Debug for SendQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendQueue")
            .field("len", &self.len)
            .field("slices", &self.slices.len())
            .finish_non_exhaustive()
    }
}
