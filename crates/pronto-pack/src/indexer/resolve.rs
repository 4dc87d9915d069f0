//! Resolves the remaining deltas, tree by tree, on all threads. A walk holds only the contents on
//! its path that have unresolved children: at most one for each halving of the tree.

use super::StageContext;
use super::buffers::{BufferPool, ObjectBuffer};
use super::digesting::{DigestWorker, NumberedIds, UndigestedObject};
use super::forest::{DeltaNode, Forest};
use super::kept::{self, DeltaArena};
use super::reader::Reader;
use super::tables::EntryTables;
use crate::error::Error;
use pronto_io::view::FileView;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The number of contents from which they are hashed together, several for each lane, …
const QUEUE_ITEMS: usize = 64;
/// … if they also have this many bytes, …
const QUEUE_BYTES: usize = 1 << 20;
/// … or the number of bytes from which they are hashed in any case.
const QUEUE_LIMIT_BYTES: usize = 12 << 20;
/// The largest number of waiting contents, independent of their size.
const QUEUE_LIMIT_ITEMS: usize = 1024;

/// A part of a tree: a content, and its children that are to be resolved.
pub(super) struct DeltaSubtree {
    pub(super) content: Arc<ObjectBuffer>,
    pub(super) children: Range<u32>,
}

/// The state that the threads share.
pub(super) struct DeltaResolution<'a> {
    pub(super) surroundings: &'a StageContext<'a>,
    pub(super) tables: &'a EntryTables,
    pub(super) forest: &'a Forest,
    pub(super) arenas: &'a [DeltaArena],
    pub(super) view: &'a FileView,
    next_root: AtomicUsize,
    /// The number of idle threads, which is checked between any two deltas without a lock.
    hungry: AtomicUsize,
    failed: AtomicBool,
    threads: usize,
    given: Mutex<DonatedWork>,
    wake: Condvar,
}

/// Work that busy threads have passed to idle ones.
#[derive(Default)]
struct DonatedWork {
    frames: Vec<DeltaSubtree>,
    waiting: usize,
    over: bool,
}

impl<'a> DeltaResolution<'a> {
    pub(super) fn new(
        surroundings: &'a StageContext<'a>,
        tables: &'a EntryTables,
        forest: &'a Forest,
        arenas: &'a [DeltaArena],
        view: &'a FileView,
    ) -> Self {
        DeltaResolution {
            surroundings,
            tables,
            forest,
            arenas,
            view,
            next_root: AtomicUsize::new(0),
            hungry: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            threads: 1,
            given: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    /// Resolves all trees of the forest with `threads` threads. Returns the ids that each thread
    /// has computed.
    pub(super) fn run(&mut self, threads: usize) -> Result<Vec<NumberedIds>, Error> {
        self.threads = threads.max(1);
        let work = &*self;
        if work.threads == 1 {
            return Ok(vec![Walker::new(work).run()?]);
        }
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..work.threads)
                .map(|_| scope.spawn(|| Walker::new(work).run()))
                .collect();
            let mut results = vec![Walker::new(work).run()];
            for other in others {
                results.push(match other.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
            }
            super::first_real_error(results)
        })
    }

    fn lock(&self) -> MutexGuard<'_, DonatedWork> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work from another thread; `None` if no thread has any work left.
    fn wait(&self) -> Option<DeltaSubtree> {
        let mut given = self.lock();
        given.waiting += 1;
        loop {
            if given.over {
                return None;
            }
            if let Some(frame) = given.frames.pop() {
                given.waiting -= 1;
                self.count_hungry(&given);
                return Some(frame);
            }
            if given.waiting == self.threads {
                given.over = true;
                self.wake.notify_all();
                return None;
            }
            self.count_hungry(&given);
            given = self
                .wake
                .wait(given)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give(&self, frame: DeltaSubtree) {
        let mut given = self.lock();
        given.frames.push(frame);
        self.count_hungry(&given);
        self.wake.notify_one();
    }

    fn count_hungry(&self, given: &DonatedWork) {
        let hungry = given.waiting.saturating_sub(given.frames.len());
        self.hungry.store(hungry, Relaxed);
    }

    fn fail(&self) {
        self.failed.store(true, Relaxed);
        self.lock().over = true;
        self.wake.notify_all();
    }
}

/// Ends the other threads if this thread panics, so that they do not wait for it.
struct Alarm<'a>(&'a DeltaResolution<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

/// One resolving thread.
pub(super) struct Walker<'a> {
    work: &'a DeltaResolution<'a>,
    pool: BufferPool,
    reader: Reader<'a>,
    digests: DigestWorker,
    stack: Vec<DeltaSubtree>,
    queue: Vec<(u32, Arc<ObjectBuffer>)>,
    queue_bytes: usize,
}

impl<'a> Walker<'a> {
    pub(super) fn new(work: &'a DeltaResolution<'a>) -> Self {
        let kind = work.surroundings.kind;
        Walker {
            work,
            pool: BufferPool::default(),
            reader: Reader::new(kind, work.view, work.tables, work.surroundings.limits),
            digests: DigestWorker::new(kind),
            stack: Vec::new(),
            queue: Vec::new(),
            queue_bytes: 0,
        }
    }

    /// Resolves trees until there are no more.
    fn run(mut self) -> Result<NumberedIds, Error> {
        let _alarm = Alarm(self.work);
        let result = self.walk_all();
        if result.is_err() {
            self.work.fail();
        }
        result.map(|()| self.digests.ids)
    }

    fn walk_all(&mut self) -> Result<(), Error> {
        loop {
            self.walk_stack()?;
            let number = self.work.next_root.fetch_add(1, Relaxed);
            if let Some(root) = self.work.forest.roots.get(number) {
                let content = self.reader.whole(*root, &mut self.pool)?;
                self.stack.push(DeltaSubtree {
                    content: Arc::new(content),
                    children: self.work.forest.children(*root),
                });
                continue;
            }
            self.flush()?;
            if self.stack.is_empty() {
                match self.work.wait() {
                    Some(frame) => self.stack.push(frame),
                    None => return Ok(()),
                }
            }
        }
    }

    /// Resolves all deltas based on `frame`, for a caller with a single walker.
    pub(super) fn walk(&mut self, frame: DeltaSubtree) -> Result<(), Error> {
        self.stack.push(frame);
        while !self.stack.is_empty() {
            self.walk_stack()?;
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the ids computed so far.
    pub(super) fn into_ids(self) -> NumberedIds {
        self.digests.ids
    }

    fn walk_stack(&mut self) -> Result<(), Error> {
        while let Some(frame) = self.stack.last_mut() {
            let Some(child) = frame.children.next() else {
                self.pop();
                continue;
            };
            let base = if frame.children.is_empty() {
                match self.stack.pop() {
                    Some(frame) => frame.content,
                    None => return Ok(()),
                }
            } else {
                Arc::clone(&frame.content)
            };
            let node = self.work.forest.nodes[child as usize];
            self.child(&base, node)?;
            self.pool.release(base);
            if self.work.hungry.load(Relaxed) > 0 {
                self.share();
            }
        }
        Ok(())
    }

    fn pop(&mut self) {
        if let Some(frame) = self.stack.pop() {
            self.pool.release(frame.content);
        }
    }

    /// Resolves the delta `node`.
    fn child(&mut self, base: &ObjectBuffer, node: DeltaNode) -> Result<(), Error> {
        let offset = self.work.tables.offsets[node.index as usize];
        let delta = match kept::get(self.work.arenas, node.kept) {
            Some(delta) => delta,
            None => self.reader.delta(node.index)?,
        };
        let limits = self.work.surroundings.limits;
        let content = limits
            .make(base, delta, &mut self.pool)
            .map_err(|error| error.at_offset(offset))?;
        let content = Arc::new(content);
        let children = self.work.forest.children(node.index);
        if !children.is_empty() {
            self.stack.push(DeltaSubtree {
                content: Arc::clone(&content),
                children,
            });
        }
        if node.known {
            self.pool.release(content);
            return Ok(());
        }
        self.queue_bytes += content.as_slice().len();
        self.queue.push((node.index, content));
        let enough = self.queue.len() >= QUEUE_ITEMS && self.queue_bytes >= QUEUE_BYTES;
        if enough || self.queue_bytes >= QUEUE_LIMIT_BYTES || self.queue.len() >= QUEUE_LIMIT_ITEMS
        {
            self.flush()?;
        }
        Ok(())
    }

    /// Computes the ids of resolved objects, and finds the deltas that name them as bases by id.
    fn flush(&mut self) -> Result<(), Error> {
        if self.work.failed.load(Relaxed) {
            return Err(super::stopped());
        }
        self.work.surroundings.check()?;
        let objects: Vec<UndigestedObject<'_>> = self
            .queue
            .iter()
            .map(|(index, content)| UndigestedObject {
                index: *index,
                kind: content.kind,
                content: content.as_slice(),
            })
            .collect();
        self.digests.digest(self.work.surroundings, &objects)?;
        for ((index, content), id) in self.queue.iter().zip(self.digests.last()) {
            if let Some(group) = self.work.forest.group(id)
                && group.claim(*index)
            {
                self.stack.push(DeltaSubtree {
                    content: Arc::clone(content),
                    children: group.nodes.clone(),
                });
            }
        }
        self.work.surroundings.resolving.add(objects.len() as u64);
        drop(objects);
        self.queue_bytes = 0;
        for (_, content) in self.queue.drain(..) {
            self.pool.release(content);
        }
        Ok(())
    }

    /// Passes work to an idle thread: the lowest frame of the stack, or half of the only frame.
    #[cold]
    fn share(&mut self) {
        if self.stack.len() > 1 {
            let frame = self.stack.remove(0);
            self.work.give(frame);
        } else if let Some(frame) = self.stack.first_mut()
            && frame.children.len() > 1
        {
            let middle = frame.children.start + frame.children.len() as u32 / 2;
            let children = frame.children.start..middle;
            frame.children.start = middle;
            let content = Arc::clone(&frame.content);
            self.work.give(DeltaSubtree { content, children });
        }
    }
}
