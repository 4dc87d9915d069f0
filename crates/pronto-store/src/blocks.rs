//! Packs of views that are read by range, in a sparse file of the cache that is filled block by
//! block.

mod source;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use pronto_io::error::IoContext as _;
use pronto_io::view::blocks::{BlockFile, BlockFileParts, Published, SpareBudget, Stub};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::backend::StoreBackend;
use crate::clock::Clock as _;
use crate::digest::{BLOCK_BYTES, BlockDigester, Digest};
use crate::error::interrupted;
use crate::manifest::{FileKind, StoreObject, StoredPack};
use crate::repository::StoreRepository;
use crate::{Error, ErrorKind, Result};

use source::PackSource;

/// The size in bytes of the largest pack that is read by range. Its digests use 128 MiB.
const MOST_PACK_BYTES: u64 = 4 << 40;

/// The largest number of files whose verification is remembered.
const MOST_COMPARED: usize = 1 << 17;

/// The options of a [`BlockCache`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BlockOptions {
    /// The memory in bytes for blocks that cannot be written to the disk.
    pub memory_bytes: usize,
}

impl Default for BlockOptions {
    fn default() -> Self {
        BlockOptions {
            memory_bytes: 64 << 20,
        }
    }
}

/// The counters of a [`BlockCache`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// The number of requests of blocks.
    pub requests: u64,
    /// The number of bytes of fetched blocks.
    pub bytes: u64,
    /// The number of damaged blocks and files on the disk, which were fetched again.
    pub damaged: u64,
    /// The number of failed requests, and of corrupt blocks in the store.
    pub failed: u64,
    /// The number of requests whose blocks could not be written to the disk.
    pub unwritable: u64,
}

/// The packs that a process reads by range. `Send + Sync`; all repositories share one value.
pub struct BlockCache {
    runtime: Handle,
    spare: Arc<SpareBudget>,
    report: Box<dyn Fn(&str) + Send + Sync>,
    /// The packs that views use, by the path of the sparse file.
    packs: Mutex<HashMap<PathBuf, Weak<RangedPack>>>,
    /// The digests of the files that this process has written or verified.
    compared: Mutex<HashMap<PathBuf, Digest>>,
    requests: AtomicU64,
    bytes: AtomicU64,
    damaged: AtomicU64,
    failed: AtomicU64,
    unwritable: AtomicU64,
}

impl BlockCache {
    /// Creates a cache whose requests run on `runtime`. The threads of this runtime must not read a
    /// view. `report` receives a message about each fault of the store and of the disk, which names
    /// the object or the file.
    pub fn new(
        runtime: Handle,
        options: BlockOptions,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(BlockCache {
            runtime,
            spare: SpareBudget::new(options.memory_bytes),
            report: Box::new(report),
            packs: Mutex::default(),
            compared: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            unwritable: AtomicU64::new(0),
        })
    }

    /// Returns the counts.
    pub fn counts(&self) -> BlockCounts {
        BlockCounts {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            damaged: self.damaged.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            unwritable: self.unwritable.load(Ordering::Relaxed),
        }
    }

    fn report_damage(&self, what: &str) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        (self.report)(what);
    }

    /// Returns the pack at `content` if a view uses the pack.
    fn find(&self, content: &Path) -> Option<Arc<RangedPack>> {
        let packs = self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        packs.get(content)?.upgrade()
    }

    /// Publishes a pack, or returns the one that another thread has published.
    fn publish(&self, pack: OpenedPack) -> Arc<RangedPack> {
        let mut packs = self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = packs.get(&pack.content).and_then(Weak::upgrade) {
            return found;
        }
        packs.retain(|_, pack| pack.strong_count() > 0);
        let content = pack.content.clone();
        let ranged = Arc::new(RangedPack {
            published: pack.stub.publish(pack.file),
            content: pack.content,
            sums: pack.sums,
            stub: pack.stub_path,
        });
        packs.insert(content, Arc::downgrade(&ranged));
        ranged
    }

    fn is_compared(&self, path: &Path, digest: &Digest) -> bool {
        let compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        compared.get(path) == Some(digest)
    }

    fn set_compared(&self, path: &Path, digest: Digest) {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        if compared.len() >= MOST_COMPARED {
            compared.clear();
        }
        compared.insert(path.to_owned(), digest);
    }

    /// Returns whether the file at `path` contains `object`. Each process reads the file once. A
    /// file with other content is removed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read or removed.
    pub(crate) fn has(&self, path: &Path, object: &StoreObject) -> Result<bool> {
        let file = match fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            file => file.context(ErrorKind::Io, "cannot open", path)?,
        };
        let metadata = file.metadata();
        let len = metadata.context(ErrorKind::Io, "cannot stat", path)?.len();
        if len == object.size_bytes
            && (self.is_compared(path, &object.digest) || digest_of(file, path)? == object.digest)
        {
            self.set_compared(path, object.digest);
            return Ok(true);
        }
        self.report_damage(&format!(
            "cached file '{}' is damaged; downloading it again",
            path.display()
        ));
        fs::remove_file(path).context(ErrorKind::Io, "cannot remove", path)?;
        Ok(false)
    }

    /// Records that this process has written `object` to the file at `path`.
    pub(crate) fn wrote(&self, path: &Path, object: &StoreObject) {
        self.set_compared(path, object.digest);
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

fn digest_of(mut file: fs::File, path: &Path) -> Result<Digest> {
    let mut digester = BlockDigester::default();
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        let read = file.read(&mut buffer);
        match read.context(ErrorKind::Io, "cannot read", path)? {
            0 => return Ok(digester.finish().whole),
            len => digester.update(&buffer[..len]),
        }
    }
}

/// A pack of a view whose blocks are fetched when they are first read.
#[derive(Debug)]
pub(crate) struct RangedPack {
    published: Published,
    content: PathBuf,
    /// The object with the digests of the blocks.
    sums: StoreObject,
    /// The stub file that is linked into views.
    pub(crate) stub: PathBuf,
}

impl RangedPack {
    /// Fetches the missing blocks, and returns the path of the file with the whole content.
    fn fill(&self) -> Result<&Path> {
        let content = &self.content;
        let filled = self.published.file().fill();
        if filled.context(ErrorKind::Io, "cannot fill", content)? {
            return Ok(content);
        }
        let message = "cannot store the whole pack in the cache";
        let hint = "free disk space for the whole pack, or use a larger cache directory";
        Err(Error::new(ErrorKind::Io, message)
            .at_path(content)
            .with_hint(hint))
    }
}

/// A pack that is being opened.
pub(crate) struct OpenedPack {
    file: Arc<BlockFile>,
    content: PathBuf,
    stub: Stub,
    stub_path: PathBuf,
    sums: StoreObject,
    sums_known: watch::Sender<Bytes>,
}

impl OpenedPack {
    /// Stores the digests of the blocks, and publishes the pack.
    pub(crate) fn finish(self, sums: Bytes, cache: &BlockCache) -> Arc<RangedPack> {
        self.sums_known.send_replace(sums);
        cache.publish(self)
    }
}

/// A pack of a view that is being written.
pub(crate) enum Ranged {
    /// A pack that another view uses.
    Shared(Arc<RangedPack>),
    /// A pack whose digests have to be read.
    New(OpenedPack),
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Opens a pack whose blocks have the digests in `sums`, and starts to fetch its first and its
    /// last block, which every reader needs. The files are in the directory `files`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if a view in use describes the pack differently, and with
    /// [`ErrorKind::Io`] if a file cannot be written.
    pub(crate) fn open_ranged(
        self: &Arc<Self>,
        pack: &StoredPack,
        sums: &StoreObject,
        files: &Path,
        cache: &Arc<BlockCache>,
    ) -> Result<Ranged> {
        let mut objects = pack.objects().zip(&pack.files);
        let object = objects
            .find(|(_, file)| file.kind == FileKind::Pack)
            .map(|(object, _)| object)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Corrupt,
                    "corrupt manifest: a pack entry has no .pack file",
                )
            })?;
        let content = files.join(object.name.replace('/', "-"));
        if let Some(found) = cache.find(&content) {
            if found.sums == *sums && found.published.file().len() == object.size_bytes {
                return Ok(Ranged::Shared(found));
            }
            let message =
                "corrupt manifest: two generations record different sizes or digests for this pack";
            let path = format!("{}{}", self.prefix, object.name);
            return Err(Error::new(ErrorKind::Corrupt, message).at_path(path));
        }
        let mut stub_path = content.as_os_str().to_owned();
        stub_path.push(".stub");
        let stub_path = PathBuf::from(stub_path);
        let clock = self.backend.clock();
        let fresh = u128::from(clock.random()) << 64 | u128::from(clock.random());
        let stub = match Stub::at(&stub_path, fresh) {
            // The stub was not written completely.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                fs::remove_file(&stub_path).context(ErrorKind::Io, "cannot remove", &stub_path)?;
                Stub::at(&stub_path, fresh)
            }
            stub => stub,
        };
        let stub = stub.context(ErrorKind::Io, "cannot write", &stub_path)?;
        let (sums_known, known) = watch::channel(Bytes::new());
        let source = PackSource::new(self, &object, known, cache);
        let file = BlockFile::new(BlockFileParts {
            path: content.clone(),
            len: object.size_bytes,
            source: Arc::new(source),
            spare: Arc::clone(&cache.spare),
        });
        file.prefetch(0);
        file.prefetch(file.blocks() - 1);
        Ok(Ranged::New(OpenedPack {
            file,
            content,
            stub,
            stub_path,
            sums: sums.clone(),
            sums_known,
        }))
    }
}

/// Returns the object with the digests of the blocks if `pack` has several blocks, and is therefore
/// read by range.
pub(crate) fn sums_of(pack: &StoredPack) -> Option<StoreObject> {
    let mut files = pack.objects().zip(&pack.files);
    let (sums, _) = files.find(|(_, file)| file.kind == FileKind::Sums)?;
    let size = pack.size_bytes();
    let blocks = size.div_ceil(BLOCK_BYTES as u64);
    let is_ranged = blocks > 1 && size <= MOST_PACK_BYTES;
    (is_ranged && sums.size_bytes == blocks * 32).then_some(sums)
}

/// A view whose large packs are fetched block by block. Packs of the directory can be opened in
/// this process as long as this value exists. Packs that are open stay readable afterwards.
#[derive(Debug)]
pub struct RangedView {
    directory: PathBuf,
    packs: Vec<RangedLink>,
}

/// A pack and its path in the view.
#[derive(Debug)]
pub(crate) struct RangedLink {
    pub(crate) pack: Arc<RangedPack>,
    pub(crate) target: PathBuf,
}

impl RangedView {
    pub(crate) fn new(directory: &Path, packs: Vec<RangedLink>) -> Self {
        RangedView {
            directory: directory.to_owned(),
            packs,
        }
    }

    /// Returns the directory of the bare repository.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of packs that are read by range.
    pub fn packs(&self) -> usize {
        self.packs.len()
    }

    /// Fetches all missing blocks, and replaces the stubs by the packs, so that other programs,
    /// such as hooks, can read the repository. The method blocks, so call it on a separate thread.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if a block cannot be fetched, or the disk is full, and with
    /// [`ErrorKind::Interrupted`] if `watch` was interrupted.
    pub fn fill(&self, watch: &pronto_io::watch::Watch<'_>) -> Result<()> {
        for RangedLink { pack, target } in &self.packs {
            watch.interrupt().check().map_err(interrupted)?;
            let content = pack.fill()?;
            let target = self.directory.join(target);
            let temporary = target.with_extension("filled");
            let _ = fs::remove_file(&temporary);
            fs::hard_link(content, &temporary).context(ErrorKind::Io, "cannot link", &temporary)?;
            fs::rename(&temporary, &target).context(ErrorKind::Io, "cannot replace", &target)?;
        }
        Ok(())
    }
}
