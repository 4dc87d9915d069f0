//! Files whose blocks are fetched on demand.
//!
//! A [`BlockFile`] has a length and a [`BlockSource`], which fetches blocks of 1 MiB and verifies
//! their digests. A sparse file on a local disk caches the blocks and is mapped. A block is
//! returned only after this process has verified its digest, also if an earlier process wrote the
//! block to the disk. Blocks that cannot be written are kept in memory, within a budget
//! ([`SpareBudget`]).
//!
//! Threads that need the same block share a fetch. After sequential reads, following blocks are
//! prefetched in growing windows, with several requests in flight.
//!
//! A [`Stub`] gives a block file a path: [`View::open`](super::FileView::open) of a stub opens the
//! block file.

mod ahead;
mod disk;
mod fetches;
mod spare;
mod stub;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahead::{BlockRequest, ForwardReaders};
use disk::Disk;
use fetches::{Fetch, Outcome};

pub use fetches::Request;
pub use spare::SpareBudget;
pub(super) use stub::find as find_stub;
pub use stub::{Published, Stub, is_any_published};

/// The size of a block. The last block of a file can be shorter.
pub const BLOCK_BYTES: u64 = 1 << 20;

/// The maximum number of blocks in one request.
pub const REQUEST_BLOCKS: u32 = 8;

/// The state of a block that is not on the disk.
const MISSING: u8 = 0;
/// The state of a block that is on the disk, and whose digest this process has not verified.
const UNVERIFIED: u8 = 1;
/// The state of a block that is on the disk and was verified.
const PRESENT: u8 = 2;
/// A flag in addition to the state: a read of the block triggers the next prefetch.
const MARK: u8 = 0x80;

/// The source from which the blocks of a file are fetched.
pub trait BlockSource: fmt::Debug + Send + Sync + 'static {
    /// Starts to fetch blocks, and returns without waiting. The source calls [`Request::land`] from
    /// any thread when the blocks are available. Dropping the request fails it.
    fn fetch(&self, request: Request);

    /// Verifies the digest of a block.
    ///
    /// # Errors
    /// Fails if the digest differs. The error names the file and the block.
    fn check(&self, block: u32, bytes: &[u8]) -> io::Result<()>;

    /// Receives a report about a fault. No wrong bytes were returned to a reader.
    fn note(&self, note: BlockReport<'_>);
}

/// A report about the source, or about the disk that caches blocks.
#[derive(Debug)]
#[non_exhaustive]
pub enum BlockReport<'a> {
    /// Blocks could not be fetched, or their digests are wrong. Threads that wait for the blocks
    /// receive the error.
    Failed(&'a io::Error),
    /// The digest of a block on the disk is wrong. The block is fetched again.
    Damaged {
        /// The path of the sparse file.
        path: &'a Path,
        /// The number of the damaged block.
        block: u32,
    },
    /// The sparse file had the wrong size, and was created again.
    Replaced {
        /// The path of the sparse file.
        path: &'a Path,
    },
    /// Blocks cannot be written to the disk, and are kept in memory.
    Unwritable {
        /// The path of the sparse file.
        path: &'a Path,
        /// The reason.
        error: &'a io::Error,
    },
}

/// The components of a [`BlockFile`].
#[derive(Clone, Debug)]
pub struct BlockFileParts {
    /// The path of the sparse file, which is created if necessary.
    pub path: PathBuf,
    /// The size of the content, which must not be zero.
    pub len: u64,
    /// The source of the blocks.
    pub source: Arc<dyn BlockSource>,
    /// The memory budget for blocks that cannot be written.
    pub spare: Arc<SpareBudget>,
}

/// A file whose blocks are fetched on demand. `Send + Sync`; reading a block that is on the disk
/// takes no lock. Costs one byte of memory for each block.
pub struct BlockFile {
    parts: BlockFileParts,
    /// The sparse file, or `None` if it cannot be opened or created.
    disk: Option<Disk>,
    states: Box<[AtomicU8]>,
    /// The number of blocks in state `PRESENT`.
    present: AtomicU32,
    /// The number that identifies this file in `SpareBudget`.
    id: u64,
    work: Mutex<BlockFetches>,
}

#[derive(Default)]
struct BlockFetches {
    fetches: HashMap<u32, Arc<Fetch>>,
    streams: ForwardReaders,
}

/// The storage in which a block was found.
enum BlockResidence {
    OnDisk,
    InMemory(Arc<[u8]>),
}

impl BlockFile {
    /// Opens or creates the sparse file, and fetches nothing. A file of a wrong size is replaced.
    /// If the file cannot be opened or created, all blocks are kept in memory.
    pub fn new(parts: BlockFileParts) -> Arc<BlockFile> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let count = count_of(parts.len);
        let states: Box<[AtomicU8]> = (0..count).map(|_| AtomicU8::new(MISSING)).collect();
        let disk = match Disk::open(&parts.path, parts.len) {
            Ok((disk, extents)) => {
                if disk.was_replaced {
                    parts
                        .source
                        .note(BlockReport::Replaced { path: &parts.path });
                }
                for extent in extents {
                    // A block with a hole was not written completely.
                    let first = extent.start.div_ceil(BLOCK_BYTES);
                    let end = match extent.end >= parts.len {
                        true => u64::from(count),
                        false => extent.end / BLOCK_BYTES,
                    };
                    for block in first..end {
                        states[block as usize].store(UNVERIFIED, Ordering::Relaxed);
                    }
                }
                Some(disk)
            }
            Err(error) => {
                let path = &parts.path;
                parts.source.note(BlockReport::Unwritable {
                    path,
                    error: &error,
                });
                None
            }
        };
        Arc::new(BlockFile {
            disk,
            states,
            present: AtomicU32::new(0),
            id: IDS.fetch_add(1, Ordering::Relaxed),
            work: Mutex::default(),
            parts,
        })
    }

    /// Returns the size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> u64 {
        self.parts.len
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        self.states.len() as u32
    }

    /// Starts to fetch a block, unless it is on the disk.
    pub fn prefetch(self: &Arc<Self>, block: u32) {
        if block < self.blocks() {
            let range = block..block + 1;
            self.request(&BlockRequest { range, mark: None }, None);
        }
    }

    /// Starts to fetch the blocks at `offsets` (ascending). Adjacent blocks are fetched together.
    pub(super) fn prefetch_all(self: &Arc<Self>, offsets: &[u64]) {
        let blocks = offsets.iter().map(|offset| offset / BLOCK_BYTES);
        let mut blocks = blocks
            .filter_map(|block| u32::try_from(block).ok())
            .take_while(|block| *block < self.blocks())
            .peekable();
        while let Some(first) = blocks.next() {
            let mut end = first + 1;
            while let Some(next) = blocks.next_if(|next| *next <= end) {
                end = next + 1;
            }
            let range = first..end;
            self.request(&BlockRequest { range, mark: None }, None);
        }
    }

    /// Fetches all missing blocks, and returns whether all blocks are on the disk.
    ///
    /// # Errors
    /// Fails with the errors of the source.
    pub fn fill(self: &Arc<Self>) -> io::Result<bool> {
        for block in 0..self.blocks() {
            let last = (block + REQUEST_BLOCKS - 1).min(self.blocks() - 1);
            self.obtain(block, last)?;
        }
        self.check()?;
        Ok(self.bytes().is_some())
    }

    /// Returns the whole content if all blocks are on the disk and verified.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        let is_whole = self.present.load(Ordering::Acquire) == self.blocks();
        self.disk.as_ref().filter(|_| is_whole).map(Disk::bytes)
    }

    /// Fills `buffer` from `offset`. The range must be inside of the file.
    pub(super) fn read(self: &Arc<Self>, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        let mut at = offset;
        let mut rest = buffer;
        while at < end {
            let within = (at % BLOCK_BYTES) as usize;
            let len = rest.len().min(BLOCK_BYTES as usize - within);
            let (now, later) = rest.split_at_mut(len);
            let last = ((end - 1) / BLOCK_BYTES) as u32;
            match (self.obtain((at / BLOCK_BYTES) as u32, last)?, &self.disk) {
                (BlockResidence::InMemory(bytes), _) => {
                    now.copy_from_slice(&bytes[within..][..len])
                }
                (BlockResidence::OnDisk, Some(disk)) => {
                    now.copy_from_slice(&disk.bytes()[at as usize..][..len]);
                }
                (BlockResidence::OnDisk, None) => return Err(io::ErrorKind::NotFound.into()),
            }
            at += len as u64;
            rest = later;
        }
        self.check()
    }

    /// Returns `len` bytes or more from `offset`, borrowed from the map, or `None` if some of the
    /// blocks are not on the disk. The range must be inside of the file.
    pub(super) fn in_place(self: &Arc<Self>, offset: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let last = ((offset + len.max(1) as u64 - 1) / BLOCK_BYTES) as u32;
        for block in (offset / BLOCK_BYTES) as u32..=last {
            if let BlockResidence::InMemory(_) = self.obtain(block, last)? {
                return Ok(None);
            }
        }
        let end = (u64::from(last) + 1) * BLOCK_BYTES;
        let range = offset as usize..end.min(self.len()) as usize;
        Ok(self.disk.as_ref().map(|disk| &disk.bytes()[range]))
    }

    /// Checks that bytes read from the map are the verified ones: that the sparse file was not
    /// truncated.
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.disk {
            Some(disk) if disk.is_cut_short() => Err(super::cut_short()),
            _ => Ok(()),
        }
    }

    /// Returns a block. The caller also needs the blocks up to `last`.
    #[inline]
    fn obtain(self: &Arc<Self>, block: u32, last: u32) -> io::Result<BlockResidence> {
        match self.state(block) {
            PRESENT => Ok(BlockResidence::OnDisk),
            _ => self.bring(block, last),
        }
    }

    #[cold]
    fn bring(self: &Arc<Self>, block: u32, last: u32) -> io::Result<BlockResidence> {
        loop {
            self.pass_mark(block);
            if self.state(block) & !MARK == UNVERIFIED {
                self.verify(block);
            }
            let mut work = self.work();
            let fetch = work.fetches.get(&block).map(Arc::clone);
            // Blocks land while the lock is held, so the state is final here.
            if fetch.is_none() && self.state(block) & !MARK == PRESENT {
                return Ok(BlockResidence::OnDisk);
            }
            if fetch.is_none()
                && let Some(bytes) = self.parts.spare.get(self.id, block)
            {
                return Ok(BlockResidence::InMemory(bytes));
            }
            let fetch = match fetch {
                Some(fetch) => {
                    drop(work);
                    fetch
                }
                None => {
                    let plan = work.streams.miss(block, last, self.blocks());
                    drop(work);
                    match self.request(&plan, Some(block)) {
                        Some(fetch) => fetch,
                        None => continue,
                    }
                }
            };
            match fetch.wait(block) {
                Outcome::OnDisk => return Ok(BlockResidence::OnDisk),
                Outcome::InMemory(bytes) => return Ok(BlockResidence::InMemory(bytes)),
                Outcome::Failed(error) => return Err(error),
                Outcome::Cancelled => {}
            }
        }
    }

    /// Starts the next prefetch if the block has the mark.
    fn pass_mark(self: &Arc<Self>, block: u32) {
        let Some(state) = self.states.get(block as usize) else {
            return;
        };
        if state.load(Ordering::Relaxed) & MARK == 0
            || state.fetch_and(!MARK, Ordering::AcqRel) & MARK == 0
        {
            return;
        }
        let plan = self.work().streams.reached(block, self.blocks());
        if let Some(plan) = plan {
            self.request(&plan, None);
        }
    }

    /// Verifies the digest of a block that an earlier process wrote to the disk.
    fn verify(&self, block: u32) {
        let Some(disk) = &self.disk else { return };
        let range = self.range_of(block..block + 1);
        let bytes = &disk.bytes()[range.start as usize..range.end as usize];
        let checked = self.parts.source.check(block, bytes);
        if checked.is_ok() && !disk.is_cut_short() {
            return self.set(block, PRESENT);
        }
        // On a file system that does not report holes, a block of zeros is a hole, not damage.
        if bytes.iter().any(|byte| *byte != 0) || disk.is_cut_short() {
            let path = &self.parts.path;
            self.parts.source.note(BlockReport::Damaged { path, block });
        }
        let _work = self.work();
        if self.state(block) & !MARK == UNVERIFIED {
            self.set(block, MISSING);
        }
    }

    /// Requests the missing blocks of a plan. Returns the fetch that contains `wanted`, if there is
    /// one.
    fn request(self: &Arc<Self>, plan: &BlockRequest, wanted: Option<u32>) -> Option<Arc<Fetch>> {
        let mut requests = Vec::new();
        let mut found = None;
        let mut work = self.work();
        let is_missing = |work: &BlockFetches, block: u32| {
            self.state(block) & !MARK == MISSING
                && !work.fetches.contains_key(&block)
                && !self.parts.spare.has(self.id, block)
        };
        let mut block = plan.range.start;
        while block < plan.range.end {
            let first = block;
            let most = plan.range.end.min(first + REQUEST_BLOCKS);
            while block < most && is_missing(&work, block) {
                block += 1;
            }
            if block == first {
                block += 1;
                continue;
            }
            let range = first..block;
            let is_wanted = wanted.is_some_and(|wanted| range.contains(&wanted));
            let fetch = Arc::new(Fetch::new(range.clone()));
            for block in range {
                work.fetches.insert(block, Arc::clone(&fetch));
            }
            if is_wanted {
                found = Some(Arc::clone(&fetch));
            }
            requests.push(Request::new(Arc::clone(self), fetch, !is_wanted));
        }
        if let Some(state) = plan.mark.and_then(|mark| self.states.get(mark as usize)) {
            state.fetch_or(MARK, Ordering::AcqRel);
        }
        drop(work);
        for request in requests {
            self.parts.source.fetch(request);
        }
        found
    }

    /// Writes verified blocks to the disk.
    fn keep(&self, blocks: Range<u32>, bytes: &[u8]) -> io::Result<()> {
        let Some(disk) = &self.disk else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let written = disk.write(self.range_of(blocks).start, bytes);
        if let Err(error) = &written {
            let path = &self.parts.path;
            self.parts
                .source
                .note(BlockReport::Unwritable { path, error });
        }
        written
    }

    fn state(&self, block: u32) -> u8 {
        self.states[block as usize].load(Ordering::Acquire)
    }

    /// Changes the state of a block and keeps its mark.
    fn set(&self, block: u32, to: u8) {
        let state = &self.states[block as usize];
        let change = |old: u8| Some(old & MARK | to);
        let old = state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        if to == PRESENT && old.is_ok_and(|old| old & !MARK != PRESENT) {
            self.present.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns the range of the blocks in bytes.
    fn range_of(&self, blocks: Range<u32>) -> Range<u64> {
        let end = u64::from(blocks.end) * BLOCK_BYTES;
        u64::from(blocks.start) * BLOCK_BYTES..end.min(self.parts.len)
    }

    fn work(&self) -> MutexGuard<'_, BlockFetches> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BlockFile {
    fn drop(&mut self) {
        self.parts.spare.forget(self.id);
    }
}

impl fmt::Debug for BlockFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockFile")
            .field("parts", &self.parts)
            .field("present", &self.present)
            .finish_non_exhaustive()
    }
}

fn count_of(len: u64) -> u32 {
    u32::try_from(len.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
