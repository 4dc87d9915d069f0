//! Searches deltas: decides which of many objects is best stored as a delta of which other one.
//!
//! Objects are sorted so that probably similar ones are neighbours (type, name, size from large to
//! small), and each is compared with those in a window before it. A delta at the end of a long
//! chain must be smaller to be chosen. The rules are those that `git-pack-objects(1)` describes for
//! `--window` and `--depth`.
//!
//! Costs: each content is read once, and its table of blocks is computed once while it is in the
//! window; memory for as many contents and tables as the window has places, for each thread, and
//! for the deltas that are kept ([`Options::kept_bytes`]).

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::{self, Workers};
use pronto_io::progress::Meter;

use crate::deflate::Deflater;
use crate::delta::make::{Blocks, LARGEST_BASE_BYTES, make};
use crate::error::{Error, ErrorKind};

/// Smaller objects are not made of others.
pub const SMALLEST_BYTES: u64 = 50;

/// An object that may become a delta, or the base of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The caller's number for it. Of two that are otherwise alike the lower one is the younger.
    pub number: u32,
    /// The type: only objects of one type are compared.
    pub kind: ObjectKind,
    /// The [hash of its name](crate::bitmap::name_hash), zero if it has none.
    pub name_hash: u32,
    /// The size of its content.
    pub size_bytes: u64,
    /// Whether the object is only a candidate for a base, which the receiver of the pack has.
    pub is_base_only: bool,
    /// The pack in which it is stored whole, if there is one. Two objects that are stored so in one
    /// pack were compared when that was made.
    pub stored: Option<u32>,
    /// The length of the longest chain of deltas that is already based on it.
    pub height: u32,
}

/// A delta that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number of the object.
    pub number: u32,
    /// The number of its base.
    pub base: u32,
    /// The size of the delta.
    pub size_bytes: u64,
    /// The delta as a zlib stream, unless it is to be made again when it is needed.
    pub deflated: Option<Vec<u8>>,
}

/// Options that bound the search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// With how many each object is compared (`pack.window`).
    pub window: usize,
    /// The longest chain (`pack.depth`).
    pub depth: u32,
    /// The number of threads.
    pub threads: usize,
    /// The largest size of a window in bytes; 0 for no limit (`pack.windowMemory`).
    pub window_memory_bytes: usize,
    /// The memory for kept deltas (`pack.deltaCacheSize`).
    pub kept_bytes: usize,
    /// A larger delta is kept only if making it was dear (`pack.deltaCacheLimit`).
    pub kept_delta_bytes: usize,
    /// The zlib level of what is kept.
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

/// Gives the contents of objects.
pub trait Contents: Sync {
    /// The content of the object with this number into `out`, whose former content is lost.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, number: u32, out: &mut Vec<u8>) -> Result<(), Error>;
}

/// Sorts `candidates` and decides which of them become deltas of which others. `meter` counts
/// processed ones.
///
/// # Errors
/// Those of `contents`; `Interrupted`.
pub fn search(
    candidates: &mut [Candidate],
    options: &Options,
    contents: &dyn Contents,
    meter: &Meter,
    interrupt: &Interrupt,
) -> Result<Vec<Found>, Error> {
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
    let work = Work {
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
        || Window::new(&work),
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

/// Cuts what is sorted into pieces for threads, where one name ends and another begins.
fn segments(candidates: &[Candidate], options: &Options) -> Vec<Range<usize>> {
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

struct Work<'a> {
    candidates: &'a [Candidate],
    options: &'a Options,
    contents: &'a dyn Contents,
    meter: &'a Meter,
    interrupt: &'a Interrupt,
    /// The memory of the kept deltas.
    kept_bytes: AtomicUsize,
}

/// One object in the window.
struct Place {
    candidate: Candidate,
    /// The length of its own chain.
    depth: u32,
    /// Empty until it is needed.
    content: Option<Vec<u8>>,
    blocks: Option<Blocks>,
}

/// The best delta of one object so far.
struct Best {
    /// The place of its base in the window.
    place: usize,
    depth: u32,
    delta: Vec<u8>,
}

struct Window<'a> {
    work: &'a Work<'a>,
    /// From old to young.
    places: Vec<Place>,
    spare: Vec<Vec<u8>>,
    trial: Vec<u8>,
    deflater: Deflater,
    found: Vec<Found>,
}

impl<'a> Window<'a> {
    fn new(work: &'a Work<'a>) -> Window<'a> {
        Window {
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
            let mut target = Place {
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
            // A useful base stays in the window longest.
            let base = self.places.remove(best.place);
            // At the end of its chain it is of no use to others.
            if target.depth < deepest {
                self.places.push(target);
            }
            self.places.push(base);
        }
        Ok(())
    }

    /// Lets go of what is oldest, so that there is a place for one more.
    fn make_room(&mut self) {
        let most = self.work.options.window;
        let limit = self.work.options.window_memory_bytes;
        let mut used: usize = match limit {
            0 => 0,
            _ => self.places.iter().map(Place::memory_bytes).sum(),
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

    /// The smallest delta of `target` of a base in the window, from young to old.
    fn best(&mut self, target: &mut Place, deepest: u32) -> Result<Option<Best>, Error> {
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
                source.blocks = Blocks::new(content);
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

    /// Returns the largest useful size of a delta of the object at `place`; 0 if it is not worth
    /// trying.
    fn limit(&self, target: &Place, place: usize, best: Option<&Best>, deepest: u32) -> usize {
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

    fn read(&mut self, candidate: &Candidate) -> Result<Vec<u8>, Error> {
        let mut content = self.spare.pop().unwrap_or_default();
        self.work.contents.read(candidate.number, &mut content)?;
        Ok(content)
    }

    fn keep(&mut self, best: &Best, target: Candidate) {
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
        self.found.push(Found {
            number: target.number,
            base: base.number,
            size_bytes: len as u64,
            deflated,
        });
    }
}

impl Place {
    fn memory_bytes(&self) -> usize {
        let content = self.content.as_ref().map_or(0, Vec::capacity);
        let blocks = self.blocks.as_ref().map_or(0, Blocks::memory_bytes);
        content + blocks
    }
}
