//! Fetches in flight, and the threads that wait for them.

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{BLOCK_BYTES, BlockFile, BlockReport, MISSING, PRESENT};

/// A fetch of consecutive blocks, for which threads wait.
#[derive(Debug)]
pub(super) struct Fetch {
    blocks: Range<u32>,
    landed: Mutex<Option<Landed>>,
    arrived: Condvar,
}

#[derive(Debug)]
enum Landed {
    /// The result of each block.
    Blocks(Vec<FetchedBlock>),
    Failed(SharedError),
    Cancelled,
}

#[derive(Debug)]
enum FetchedBlock {
    OnDisk,
    InMemory(Arc<[u8]>),
    Wrong(SharedError),
}

/// The result of a fetch for a thread that waits for one block.
pub(super) enum Outcome {
    OnDisk,
    InMemory(Arc<[u8]>),
    Failed(io::Error),
    /// The request was cancelled. This is not an error.
    Cancelled,
}

impl Fetch {
    pub(super) fn new(blocks: Range<u32>) -> Self {
        Fetch {
            blocks,
            landed: Mutex::new(None),
            arrived: Condvar::new(),
        }
    }

    /// Waits for a block of this fetch.
    pub(super) fn wait(&self, block: u32) -> Outcome {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let found = match &*landed {
                None => {
                    let waited = self.arrived.wait(landed);
                    landed = waited.unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                Some(Landed::Cancelled) => return Outcome::Cancelled,
                Some(Landed::Failed(error)) => return Outcome::Failed(error.to_error()),
                Some(Landed::Blocks(blocks)) => blocks.get((block - self.blocks.start) as usize),
            };
            return match found {
                Some(FetchedBlock::OnDisk) => Outcome::OnDisk,
                Some(FetchedBlock::InMemory(bytes)) => Outcome::InMemory(Arc::clone(bytes)),
                Some(FetchedBlock::Wrong(error)) => Outcome::Failed(error.to_error()),
                None => Outcome::Cancelled,
            };
        }
    }
}

/// A request for blocks, which a [`BlockSource`](super::BlockSource) must answer. Dropping the
/// request fails the waiting threads.
#[derive(Debug)]
pub struct Request {
    file: Arc<BlockFile>,
    fetch: Arc<Fetch>,
    is_ahead: bool,
    is_done: bool,
}

impl Request {
    pub(super) fn new(file: Arc<BlockFile>, fetch: Arc<Fetch>, is_ahead: bool) -> Self {
        Request {
            file,
            fetch,
            is_ahead,
            is_done: false,
        }
    }

    /// Returns the numbers of the requested blocks.
    pub fn blocks(&self) -> Range<u32> {
        self.fetch.blocks.clone()
    }

    /// Returns the range of the file in bytes.
    pub fn range(&self) -> Range<u64> {
        self.file.range_of(self.blocks())
    }

    /// Whether the request is a prefetch: no thread waited for the blocks when the request was
    /// made, so it may be [cancelled](Self::cancel).
    pub fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// Cancels the request. Waiting threads request their blocks again.
    pub fn cancel(mut self) {
        self.end(Landed::Cancelled);
    }

    /// Completes the request with the bytes of the whole range, or with the error of the fetch.
    /// Verifies the digest of each block and writes the blocks to the disk, which takes some
    /// milliseconds.
    pub fn land(mut self, answer: io::Result<&[u8]>) {
        let bytes = match answer {
            Ok(bytes) => bytes,
            Err(error) => return self.fail(error),
        };
        let range = self.range();
        if bytes.len() as u64 != range.end - range.start {
            let error = io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "received blocks have the wrong size",
            );
            return self.fail(error);
        }
        let mut blocks = Vec::new();
        for (block, part) in self.blocks().zip(bytes.chunks(BLOCK_BYTES as usize)) {
            let source = &self.file.parts.source;
            blocks.push(match source.check(block, part) {
                Ok(()) => FetchedBlock::OnDisk,
                Err(error) => {
                    source.note(BlockReport::Failed(&error));
                    FetchedBlock::Wrong(SharedError::new(error))
                }
            });
        }
        self.keep(&mut blocks, bytes);
        self.end(Landed::Blocks(blocks));
    }

    /// Writes verified blocks to the disk: with one write if all are verified. Blocks that cannot
    /// be written are kept in memory.
    fn keep(&self, blocks: &mut [FetchedBlock], bytes: &[u8]) {
        let first = self.fetch.blocks.start;
        let is_right = |block: &FetchedBlock| matches!(block, FetchedBlock::OnDisk);
        if blocks.iter().all(is_right) && self.file.keep(self.blocks(), bytes).is_ok() {
            return;
        }
        for (at, part) in bytes.chunks(BLOCK_BYTES as usize).enumerate() {
            let number = first + at as u32;
            if is_right(&blocks[at]) && self.file.keep(number..number + 1, part).is_err() {
                let kept: Arc<[u8]> = part.into();
                self.file.parts.spare.put(self.file.id, number, &kept);
                blocks[at] = FetchedBlock::InMemory(kept);
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.file.parts.source.note(BlockReport::Failed(&error));
        self.end(Landed::Failed(SharedError::new(error)));
    }

    fn end(&mut self, landed: Landed) {
        self.is_done = true;
        let mut work = self.file.work();
        for (at, block) in self.fetch.blocks.clone().enumerate() {
            work.fetches.remove(&block);
            if let Landed::Blocks(blocks) = &landed {
                let is_there = matches!(blocks.get(at), Some(FetchedBlock::OnDisk));
                self.file
                    .set(block, if is_there { PRESENT } else { MISSING });
            }
        }
        drop(work);
        let mut slot = self.fetch.landed.lock();
        *slot
            .as_deref_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut()) = Some(landed);
        drop(slot);
        self.fetch.arrived.notify_all();
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_done {
            let error = io::Error::other("the source of the file was closed");
            self.end(Landed::Failed(SharedError::new(error)));
        }
    }
}

/// An error that several threads receive.
#[derive(Clone, Debug)]
struct SharedError {
    kind: io::ErrorKind,
    error: Arc<io::Error>,
}

impl SharedError {
    fn new(error: io::Error) -> Self {
        SharedError {
            kind: error.kind(),
            error: Arc::new(error),
        }
    }

    fn to_error(&self) -> io::Error {
        io::Error::new(self.kind, self.clone())
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
