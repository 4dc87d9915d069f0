//! Bytes to be sent, as slices that do not move until they are written.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;

use super::{QueueFull, QueueMemory};

/// Shared bytes, such as a mapped file or a pack in memory.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A bounded first-in-first-out queue of byte slices.
///
/// Large slices are queued without a copy ([`push`](Self::push),
/// [`push_shared`](Self::push_shared)). Small ones are copied once into a common buffer
/// ([`extend_from_slice`](Self::extend_from_slice)). Removal from the front takes constant time for
/// each slice.
#[derive(Default)]
pub struct SendQueue {
    slices: VecDeque<Slice>,
    /// The number of bytes of the first slice that are already sent.
    gone: usize,
    len: usize,
    limit: usize,
    counters: QueueMemory,
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

/// The size of the buffers in which small slices are gathered.
const GATHERED: usize = 16 * 1024;

/// The maximum number of slices in one vectored write.
const SLICES_AT_ONCE: usize = 64;

impl SendQueue {
    /// Creates an empty queue that holds at most `limit` bytes at a time.
    pub fn new(limit: usize) -> Self {
        SendQueue {
            limit,
            ..SendQueue::default()
        }
    }

    /// Returns the number of queued bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of bytes that still fit into the limit.
    pub fn free_bytes(&self) -> usize {
        self.limit.saturating_sub(self.len)
    }

    /// Appends `bytes`. They are copied only if they are at most 16 KiB long: a small slice has
    /// more overhead than content, and the total memory should stay within about twice the limit.
    ///
    /// # Errors
    /// Fails with [`QueueFull`] if `bytes` would exceed the limit.
    pub fn push(&mut self, bytes: Vec<u8>) -> Result<(), QueueFull> {
        let length = bytes.len();
        if length <= GATHERED {
            return self.extend_from_slice(&bytes);
        }
        self.append(Slice::Owned(bytes), length)
    }

    /// Appends the part `range` of `bytes`, like [`push`](Self::push).
    ///
    /// # Errors
    /// Fails with [`QueueFull`] if the part would exceed the limit.
    ///
    /// # Panics
    /// Panics if `range` is not within `bytes`.
    pub fn push_shared(
        &mut self,
        bytes: SharedBytes,
        range: Range<usize>,
    ) -> Result<(), QueueFull> {
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

    /// Appends a copy of all of `bytes`, gathered with other small slices, or nothing on an error.
    ///
    /// # Errors
    /// Fails with [`QueueFull`] if `bytes` would exceed the limit.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), QueueFull> {
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() > self.free_bytes() {
            return Err(QueueFull);
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

    fn append(&mut self, slice: Slice, length: usize) -> Result<(), QueueFull> {
        if length > self.free_bytes() {
            return Err(QueueFull);
        }
        if length > 0 {
            self.slices.push_back(slice);
            self.len += length;
        }
        Ok(())
    }

    /// Returns the first contiguous slice, which is empty if the queue is empty.
    pub fn front(&self) -> &[u8] {
        self.slices
            .front()
            .map_or(&[], |slice| &slice.bytes()[self.gone..])
    }

    /// Removes `count` bytes from the front.
    ///
    /// # Panics
    /// Panics if fewer than `count` bytes are queued.
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

    /// Writes several slices to `sink` with one vectored write, and removes the written bytes.
    /// Returns the number of written bytes.
    ///
    /// # Errors
    /// Fails with the errors of `sink`, except [`io::ErrorKind::Interrupted`], after which the
    /// write is retried.
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

    /// Returns the copied and allocated bytes of this queue.
    pub fn counters(&self) -> QueueMemory {
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
