//! Views of generations on the disk of a server, within a size limit.
//!
//! ```text
//! DIRECTORY/lock                     held by the process that uses it
//! DIRECTORY/REPOSITORY/file/NAME     downloaded files; REPOSITORY stands for the name and the random number of the
//!                                    manifest
//! DIRECTORY/REPOSITORY/view/N-DIGEST views, with the number and the digest of the generation
//! DIRECTORY/REPOSITORY/push/NUMBER   views for one push each
//! ```
//!
//! Views contain hard links to the files. A view is removed when a newer one was created or room is
//! needed, and no request uses the view. Then the files of the view are removed.
//!
//! Numbers in manifests are untrusted data of the store: a repository that was copied within the
//! bucket has the same numbers as its original. So two names never share data, and a view is used
//! only for the manifest from which it was created, or for an older manifest of the same name.

mod space;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_refs::store::tables as ref_tables;

use crate::blocking::{BlockingStore, StoredRepository};
use crate::blocks::{BlockCache, BlockCounts, RangedView, sums_of};
use crate::change::Uploaded;
use crate::digest::Digest;
use crate::repository::Generation;
use crate::upload::NewPack;
use crate::view::kept_name;
use crate::{Error, ErrorKind, Result};

/// The interval at which the files of all repositories are measured.
const MEASURE: Duration = Duration::from_secs(60);

/// The number of digits of a digest in the name of a directory.
const DIGITS: usize = 32;

/// The views of generations, in a directory that this process uses exclusively. `Send + Sync`.
pub struct ViewCache {
    directory: PathBuf,
    most_bytes: AtomicU64,
    shelves: Mutex<HashMap<String, Arc<Shelf>>>,
    /// The counter of uses, which orders repositories by their last use.
    clock: AtomicU64,
    /// The number of the next view for a push.
    next: AtomicU64,
    measured: Mutex<Instant>,
    counts: CacheCounters,
    /// The blocks of large packs.
    blocks: Arc<BlockCache>,
    /// The lock that excludes other processes.
    _lock: CacheLock,
}

/// The lock of a cache directory.
#[derive(Debug)]
struct CacheLock(File);

impl Drop for CacheLock {
    /// Releases the lock. Closing the file is not sufficient, because a child process inherits the
    /// file until it executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// The counters of a [`ViewCache`].
#[derive(Debug, Default)]
pub struct CacheCounters {
    /// The number of requests whose view existed.
    pub hits: AtomicU64,
    /// The number of requests for which a view was created.
    pub misses: AtomicU64,
    /// The number of repositories whose view was removed to make room.
    pub evictions: AtomicU64,
}

/// The files and the view of one repository.
struct Shelf {
    directory: PathBuf,
    /// The newest view. The mutex is locked while another view is created.
    current: Mutex<Option<Arc<GenerationView>>>,
    used: AtomicU64,
    /// The size in bytes of the files, as of the last measurement.
    bytes: AtomicU64,
}

/// A generation as a bare repository on disk, which must not be changed. The repository exists at
/// least as long as this value.
#[derive(Debug)]
pub struct GenerationView {
    directory: PathBuf,
    ranged: RangedView,
    number: u64,
    digest: Digest,
    /// The guard that removes the view.
    _guard: Guard,
}

impl GenerationView {
    /// Returns the directory of the repository.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of the generation of the view.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether requests for `generation`, a generation of the same repository name, may use
    /// the view, because the view shows this generation or a later one.
    fn serves(&self, generation: &Generation) -> bool {
        let is_later = self.number > generation.number();
        is_later || self.number == generation.number() && self.digest == generation.digest
    }

    /// Makes the view readable for other programs; see [`RangedView::fill`].
    ///
    /// # Errors
    /// Fails for the same reasons as [`RangedView::fill`].
    pub fn fill(&self, watch: &Watch<'_>) -> Result<()> {
        self.ranged.fill(watch)
    }
}

/// A view that its owner may change. It borrows the objects of another view, and is removed when
/// this value is dropped.
#[derive(Debug)]
pub struct PushView {
    directory: PathBuf,
    _guard: Guard,
    _base: Arc<GenerationView>,
}

impl PushView {
    /// Returns the directory of the repository.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl ViewCache {
    /// Opens the cache in `directory`, which is created if it does not exist, for views and files
    /// of at most `most_bytes`. Large packs are read by range, through `blocks`. Views of a killed
    /// process are removed, and complete files are kept.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the directory cannot be used, and with [`ErrorKind::InUse`]
    /// if another process uses it.
    pub fn open(directory: &Path, most_bytes: u64, blocks: Arc<BlockCache>) -> Result<Self> {
        let failed = "cannot use the cache directory";
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .context(ErrorKind::Io, failed, directory)?;
        // Paths in the cache are written into files.
        let directory = fs::canonicalize(directory).context(ErrorKind::Io, failed, directory)?;
        let path = directory.join("lock");
        let mut options = fs::OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).open(&path);
        let lock = lock.context(ErrorKind::Io, failed, &path)?;
        if lock.try_lock().is_err() {
            let message = "cache directory is in use by another process";
            let hint = "use a separate cache directory for each server";
            return Err(Error::new(ErrorKind::InUse, message)
                .at_path(&directory)
                .with_hint(hint));
        }
        let cache = ViewCache {
            shelves: Mutex::new(space::tidy(&directory)?),
            directory,
            most_bytes: AtomicU64::new(most_bytes),
            clock: AtomicU64::new(1),
            next: AtomicU64::new(0),
            measured: Mutex::new(Instant::now()),
            counts: CacheCounters::default(),
            blocks,
            _lock: CacheLock(lock),
        };
        cache.make_room(None, most_bytes);
        Ok(cache)
    }

    /// Changes the size limit.
    pub fn set_most_bytes(&self, most_bytes: u64) {
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
        self.make_room(None, most_bytes);
    }

    /// Returns the counters.
    pub fn counts(&self) -> &CacheCounters {
        &self.counts
    }

    /// Returns the counters of the block cache.
    pub fn block_counts(&self) -> BlockCounts {
        self.blocks.counts()
    }

    /// Returns the size in bytes of all files, as of the last measurement.
    pub fn bytes(&self) -> u64 {
        let shelves = self.lock_shelves();
        let bytes = shelves.values().map(|it| it.bytes.load(Ordering::Relaxed));
        bytes.sum()
    }

    /// Returns a view of `generation`, or of a newer generation of the same repository. Missing
    /// files are downloaded; of large packs, only the blocks that are read. Only one thread creates
    /// a view of a repository at a time.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Repository::write_view`](crate::StoreRepository::write_view).
    pub fn view(
        &self,
        store: &BlockingStore,
        repository: &Arc<StoredRepository>,
        generation: &Generation,
        watch: &Watch<'_>,
    ) -> Result<Arc<GenerationView>> {
        let shelf = self.shelf(&shelf_name(repository.name(), generation));
        shelf.used.store(
            self.clock.fetch_add(1, Ordering::Relaxed),
            Ordering::Relaxed,
        );
        let mut current = lock(&shelf.current);
        if let Some(view) = &*current
            && view.serves(generation)
        {
            self.counts.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(view));
        }
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        let number = generation.number();
        let target = shelf.directory.join("view").join(view_name(generation));
        let write = || -> Result<RangedView> {
            space::prepare(&shelf.directory, &target)?;
            let files = shelf.directory.join("file");
            let blocks = &self.blocks;
            let written = repository.write_ranged_view(generation, &target, &files, blocks, watch);
            store.wait(written)
        };
        let ranged = match write() {
            // The disk may be full, so all data that no request uses is removed.
            Err(error) if error.kind() == ErrorKind::Io => {
                self.make_room(Some(&shelf), 0);
                write()?
            }
            written => written?,
        };
        let view = Arc::new(GenerationView {
            _guard: Guard::new(&target),
            directory: target,
            ranged,
            number,
            digest: generation.digest,
        });
        *current = Some(Arc::clone(&view));
        shelf.sweep(&space::stems(&generation.manifest));
        self.make_room(Some(&shelf), self.most_bytes.load(Ordering::Relaxed));
        Ok(view)
    }

    /// Returns a view for one push, with the refs of `view` and a directory for new objects.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the view cannot be created.
    pub fn push_view(&self, view: &Arc<GenerationView>) -> Result<PushView> {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let shelf = view.directory.parent().and_then(Path::parent);
        let shelf = shelf.unwrap_or(&self.directory);
        let directory = shelf.join("push").join(number);
        let guard = Guard::new(&directory);
        space::borrow(&view.directory, &directory)?;
        let prepared = ref_tables::prepare(&directory);
        prepared.map_err(|error| error.map_kind(|_| ErrorKind::Io))?;
        Ok(PushView {
            directory,
            _guard: guard,
            _base: Arc::clone(view),
        })
    }

    /// Keeps the files of a pack that this process has uploaded to the repository of `view`, so
    /// that the next view does not download them. The files are hard-linked, must not be changed,
    /// and are verified with their digests when they are used. A file that cannot be linked is
    /// downloaded later. Packs that are read by range are excluded.
    pub fn keep(&self, view: &GenerationView, uploaded: &Uploaded, pack: &NewPack) {
        let shelf = view.directory.parent().and_then(Path::parent);
        if let (Some(shelf), None) = (shelf, sums_of(&uploaded.pack)) {
            let files = shelf.join("file");
            let records = uploaded.pack.files.iter().zip(uploaded.pack.objects());
            for (record, object) in records {
                if let Some(path) = pack.path_of(record.kind) {
                    // An error is ignored, because the link only saves time.
                    let _ = fs::hard_link(path, files.join(kept_name(&object)));
                }
            }
        }
    }

    fn shelf(&self, repository: &str) -> Arc<Shelf> {
        let mut shelves = self.lock_shelves();
        let shelf = shelves.entry(repository.to_owned()).or_insert_with(|| {
            let directory = self.directory.join(repository);
            Arc::new(Shelf::new(directory))
        });
        Arc::clone(shelf)
    }

    fn lock_shelves(&self) -> MutexGuard<'_, HashMap<String, Arc<Shelf>>> {
        lock(&self.shelves)
    }

    /// Removes views and files that no request uses until at most `most_bytes` are left, starting
    /// with the least recently used repositories. This thread creates the view of the repository
    /// `busy`.
    fn make_room(&self, busy: Option<&Arc<Shelf>>, most_bytes: u64) {
        let mut shelves: Vec<Arc<Shelf>> = self.lock_shelves().values().cloned().collect();
        let is_busy = |shelf: &Arc<Shelf>| busy.is_some_and(|busy| Arc::ptr_eq(busy, shelf));
        if self.is_measuring_due() {
            for shelf in &shelves {
                shelf.measure();
            }
        } else if let Some(busy) = busy {
            busy.measure();
        }
        let size = |shelf: &Arc<Shelf>| shelf.bytes.load(Ordering::Relaxed);
        let mut total: u64 = shelves.iter().map(size).sum();
        shelves.sort_by_key(|shelf| shelf.used.load(Ordering::Relaxed));
        for shelf in shelves.iter().filter(|shelf| !is_busy(shelf)) {
            if total <= most_bytes {
                return;
            }
            let before = size(shelf);
            if before > 0 && shelf.evict() {
                self.counts.evictions.fetch_add(1, Ordering::Relaxed);
                total = total.saturating_sub(before.saturating_sub(size(shelf)));
            }
        }
    }

    fn is_measuring_due(&self) -> bool {
        let mut measured = lock(&self.measured);
        let is_due = measured.elapsed() > MEASURE;
        if is_due {
            *measured = Instant::now();
        }
        is_due
    }
}

impl std::fmt::Debug for ViewCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the directory of a repository, which has 32 hexadecimal digits. A copy in
/// the bucket has the random number of its original, but another name.
fn shelf_name(name: &str, generation: &Generation) -> String {
    let number = generation.manifest.repository;
    let mut digits = Digest::of(format!("{name}\n{number}").as_bytes()).to_string();
    digits.truncate(DIGITS);
    digits
}

/// Returns the name of the directory of a view.
fn view_name(generation: &Generation) -> String {
    let mut name = format!("{}-{}", generation.number(), generation.digest);
    name.truncate(name.len() - 64 + DIGITS);
    name
}
