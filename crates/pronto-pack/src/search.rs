//! Searches for deltas: decides which of many objects are stored as deltas of which other objects.
//!
//! Objects are sorted so that probably similar ones are neighbours (by type, name, and size from
//! large to small), and each object is compared with those in a window before it. At the end of a
//! long chain, a delta must be smaller to be chosen. The rules are those that `git-pack-objects(1)`
//! describes for `--window` and `--depth`.
//!
//! Costs: each content is read once, and its table of blocks is computed once while the object is
//! in the window. Memory: the contents and tables of a window for each thread, and the deltas that
//! are kept ([`Options::kept_bytes`]).

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::{self, Workers};
use pronto_io::progress::Meter;

use crate::deflate::Deflater;
use crate::delta::make::{BaseBlocks, LARGEST_BASE_BYTES, make};
use crate::error::{Error, ErrorKind};

/// The size below which objects are not deltified.
pub const SMALLEST_BYTES: u64 = 50;

/// An object that may become a delta or the base of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaCandidate {
    /// The caller's number of the object. Of two objects that are otherwise equal, the one with the
    /// smaller number is younger.
    pub number: u32,
    /// The type of the object; only objects of the same type are compared.
    pub kind: ObjectKind,
    /// The [name hash](crate::bitmap::name_hash), zero if the object has no name.
    pub name_hash: u32,
    /// The size of its content.
    pub size_bytes: u64,
    /// Whether the object can only be a base, because the receiver of the pack has it.
    pub is_base_only: bool,
    /// The pack in which the object is stored as a non-delta, if there is one. Two such objects of
    /// the same pack were compared when that pack was written.
    pub stored: Option<u32>,
    /// The length of the longest chain of deltas that is already based on the object.
    pub height: u32,
}

/// A delta that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDelta {
    /// The number of the object.
    pub number: u32,
    /// The number of the delta base.
    pub base: u32,
    /// The size of the delta.
    pub size_bytes: u64,
    /// The delta as a zlib stream; `None` if the delta must be computed again when it is written.
    pub deflated: Option<Vec<u8>>,
}

/// Options that limit the search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The number of objects with which each object is compared (`--window`, `pack.window`).
    pub window: usize,
    /// The largest length of a chain of deltas (`--depth`, `pack.depth`).
    pub depth: u32,
    /// The number of threads (`--threads`, `pack.threads`).
    pub threads: usize,
    /// The largest memory of a window in bytes; 0 for no limit (`--window-memory`,
    /// `pack.windowMemory`).
    pub window_memory_bytes: usize,
    /// The memory for kept deltas (`pack.deltaCacheSize`).
    pub kept_bytes: usize,
    /// The size above which a delta is kept only if it was expensive to compute
    /// (`pack.deltaCacheLimit`).
    pub kept_delta_bytes: usize,
    /// The zlib level of kept deltas (`pack.compression`).
    pub level: u8,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            window: 10,
            depth: 50,
            threads: 1,
            window_memory_bytes: 0,
            kept_bytes: 256 << 20,
            kept_delta_bytes: 1000,
            level: 6,
        }
    }
}

/// Provides the contents of objects.
pub trait ReadObjects: Sync {
    /// Reads the content of the object with this number into `out`, replacing its content.
    ///
    /// # Errors
    /// Fails if the object cannot be read.
    fn read(&self, number: u32, out: &mut Vec<u8>) -> Result<(), Error>;
}

/// Sorts `candidates` and decides which of them become deltas of which others. `meter` counts
/// processed objects.
///
/// # Errors
/// Fails with the error of `contents`, and with `ErrorKind::Interrupted` if the operation is
/// cancelled.
pub fn search(
    candidates: &mut [DeltaCandidate],
    options: &Options,
    contents: &dyn ReadObjects,
    meter: &Meter,
    interrupt: &Interrupt,
) -> Result<Vec<FoundDelta>, Error> {
    candidates.sort_unstable_by_key(|one| {
        let kind = one.kind as u8;
        let larger_first = u64::MAX - one.size_bytes;
        (
            kind,
            one.name_hash,
            !one.is_base_only,
            larger_first,
            one.number,
        )
    });
    let candidates = &*candidates;
    let segments = segments(candidates, options);
    let work = DeltaSearch {
        candidates,
        options,
        contents,
        meter,
        interrupt,
        kept_bytes: AtomicUsize::new(0),
    };
    let (all, failure) = (Mutex::new(Vec::new()), Mutex::new(None));
    pool::run(
        Workers::Exactly(options.threads.min(segments.len())),
        segments.len(),
        || DeltaWindow::new(&work),
        |window, numbers| {
            for number in numbers {
                if let Err(error) = window.go_over(segments[number].clone()) {
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        },
        |window| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(window.found);
        },
    );
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Divides the sorted candidates into segments for threads, at boundaries between names.
fn segments(candidates: &[DeltaCandidate], options: &Options) -> Vec<Range<usize>> {
    let pieces = match options.threads {
        0 | 1 => 1,
        threads => threads * 8,
    };
    let least = (candidates.len() / pieces).max(options.window * 4).max(64);
    let mut segments = Vec::new();
    let mut start = 0;
    while start < candidates.len() {
        let mut end = (start + least).min(candidates.len());
        while let (Some(last), Some(next)) = (candidates.get(end - 1), candidates.get(end))
            && (last.kind, last.name_hash) == (next.kind, next.name_hash)
            && end - start < 4 * least
        {
            end += 1;
        }
        segments.push(start..end);
        start = end;
    }
    segments
}

struct DeltaSearch<'a> {
    candidates: &'a [DeltaCandidate],
    options: &'a Options,
    contents: &'a dyn ReadObjects,
    meter: &'a Meter,
    interrupt: &'a Interrupt,
    /// The memory of the kept deltas.
    kept_bytes: AtomicUsize,
}

/// One object in the window.
struct WindowSlot {
    candidate: DeltaCandidate,
    /// The length of the chain of deltas of the object.
    depth: u32,
    /// The content; `None` until it is needed.
    content: Option<Vec<u8>>,
    blocks: Option<BaseBlocks>,
}

/// The best delta of one object so far.
struct Best {
    /// The position of the base in the window.
    place: usize,
    depth: u32,
    delta: Vec<u8>,
}

struct DeltaWindow<'a> {
    work: &'a DeltaSearch<'a>,
    /// The objects in the window, oldest first.
    places: Vec<WindowSlot>,
    spare: Vec<Vec<u8>>,
    trial: Vec<u8>,
    deflater: Deflater,
    found: Vec<FoundDelta>,
}

impl<'a> DeltaWindow<'a> {
    fn new(work: &'a DeltaSearch<'a>) -> DeltaWindow<'a> {
        DeltaWindow {
            work,
            places: Vec::new(),
            spare: Vec::new(),
            trial: Vec::new(),
            deflater: Deflater::default(),
            found: Vec::new(),
        }
    }

    fn go_over(&mut self, range: Range<usize>) -> Result<(), Error> {
        self.places.clear();
        for at in range {
            (self.work.interrupt.check())
                .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
            let candidate = self.work.candidates[at];
            self.make_room();
            let mut target = WindowSlot {
                candidate,
                depth: 0,
                content: None,
                blocks: None,
            };
            let deepest = self.work.options.depth.saturating_sub(candidate.height);
            if candidate.is_base_only || deepest == 0 || candidate.size_bytes < SMALLEST_BYTES {
                self.places.push(target);
                continue;
            }
            self.work.meter.add(1);
            let Some(best) = self.best(&mut target, deepest)? else {
                self.places.push(target);
                continue;
            };
            target.depth = best.depth;
            self.keep(&best, candidate);
            // A useful base is moved to the end, so that it stays in the window longest.
            let base = self.places.remove(best.place);
            // At the maximum depth, the object cannot be a base of other objects.
            if target.depth < deepest {
                self.places.push(target);
            }
            self.places.push(base);
        }
        Ok(())
    }

    /// Removes the oldest objects, so that there is space for another one.
    fn make_room(&mut self) {
        let most = self.work.options.window;
        let limit = self.work.options.window_memory_bytes;
        let mut used: usize = match limit {
            0 => 0,
            _ => self.places.iter().map(WindowSlot::memory_bytes).sum(),
        };
        while self.places.len() > most || (used > limit && self.places.len() > 1) {
            let oldest = self.places.remove(0);
            used = used.saturating_sub(oldest.memory_bytes());
            if let Some(content) = oldest.content
                && content.capacity() < 1 << 20
                && self.spare.len() < 2
            {
                self.spare.push(content);
            }
        }
    }

    /// Returns the smallest delta of `target` among the bases in the window, which are tried from
    /// young to old.
    fn best(&mut self, target: &mut WindowSlot, deepest: u32) -> Result<Option<Best>, Error> {
        let mut best: Option<Best> = None;
        for place in (0..self.places.len()).rev() {
            let base = self.places[place].candidate;
            if base.kind != target.candidate.kind {
                break;
            }
            let limit = match self.limit(target, place, best.as_ref(), deepest) {
                0 => continue,
                limit => limit,
            };
            if target.content.is_none() {
                target.content = Some(self.read(&target.candidate)?);
            }
            if self.places[place].content.is_none() {
                self.places[place].content = Some(self.read(&base)?);
            }
            let source = &mut self.places[place];
            let (Some(content), Some(wanted)) = (&source.content, &target.content) else {
                continue;
            };
            if source.blocks.is_none() {
                source.blocks = BaseBlocks::new(content);
            }
            let Some(blocks) = &source.blocks else {
                continue;
            };
            if !make(content, blocks, wanted, limit, &mut self.trial) {
                continue;
            }
            let depth = source.depth + 1;
            let is_better = best
                .as_ref()
                .is_none_or(|best| self.trial.len() < best.delta.len() || depth < best.depth);
            if is_better {
                let mut delta = best.map(|best| best.delta).unwrap_or_default();
                std::mem::swap(&mut delta, &mut self.trial);
                best = Some(Best {
                    place,
                    depth,
                    delta,
                });
            }
        }
        Ok(best)
    }

    /// Returns the largest useful size of a delta with the object at `place` as its base; 0 if the
    /// base is not worth trying.
    fn limit(&self, target: &WindowSlot, place: usize, best: Option<&Best>, deepest: u32) -> usize {
        let (source, wanted) = (&self.places[place], &target.candidate);
        let base = &source.candidate;
        let was_compared = wanted.stored.is_some() && wanted.stored == base.stored;
        if was_compared && !base.is_base_only || source.depth >= deepest {
            return 0;
        }
        let (largest, depth) = match best {
            Some(best) => (best.delta.len() as u64, best.depth),
            None => ((wanted.size_bytes / 2).saturating_sub(20), 1),
        };
        let room = u64::from(deepest - source.depth);
        let largest = largest.saturating_mul(room) / u64::from(deepest + 1 - depth.min(deepest));
        let more = wanted.size_bytes.saturating_sub(base.size_bytes);
        if more >= largest
            || wanted.size_bytes < base.size_bytes / 32
            || base.size_bytes > LARGEST_BASE_BYTES as u64
        {
            return 0;
        }
        usize::try_from(largest).unwrap_or(usize::MAX)
    }

    fn read(&mut self, candidate: &DeltaCandidate) -> Result<Vec<u8>, Error> {
        let mut content = self.spare.pop().unwrap_or_default();
        self.work.contents.read(candidate.number, &mut content)?;
        Ok(content)
    }

    fn keep(&mut self, best: &Best, target: DeltaCandidate) {
        let (base, options) = (self.places[best.place].candidate, self.work.options);
        let len = best.delta.len();
        let was_dear = (base.size_bytes >> 20) + (target.size_bytes >> 21) > (len as u64) >> 10;
        let mut deflated = None;
        if len < options.kept_delta_bytes || was_dear {
            let stream = self.deflater.deflate(options.level, &[], &best.delta);
            let before = self.work.kept_bytes.fetch_add(stream.len(), Relaxed);
            match before + stream.len() <= options.kept_bytes {
                true => deflated = Some(stream.to_vec()),
                false => _ = self.work.kept_bytes.fetch_sub(stream.len(), Relaxed),
            }
        }
        self.found.push(FoundDelta {
            number: target.number,
            base: base.number,
            size_bytes: len as u64,
            deflated,
        });
    }
}

impl WindowSlot {
    fn memory_bytes(&self) -> usize {
        let content = self.content.as_ref().map_or(0, Vec::capacity);
        let blocks = self.blocks.as_ref().map_or(0, BaseBlocks::memory_bytes);
        content + blocks
    }
}
