//! Files opened for random reading. A file is mapped if that is safe and fast, and otherwise read
//! by position (on network and FUSE file systems, where a map would hide I/O errors).
//!
//! Truncating a mapped file in another process does not end this process. The missing bytes read as
//! zeros, and [`FileView::check`] reports the truncation from then on. Callers use the bytes of a view
//! first, and call `check` before they use the result. A SIGBUS handler implements this. The first
//! map installs the handler, which forwards faults outside of maps.
//!
//! ```
//! use pronto_io::view::{ViewAccess, FileView};
//! let path = std::env::temp_dir().join(format!("pronto-view-doc-{}", std::process::id()));
//! std::fs::write(&path, b"hello")?;
//! let view = FileView::open(&path, ViewAccess::Auto)?;
//! assert_eq!(view.read(1, 3, &mut Vec::new())?, b"ell");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A view of a [stub](blocks::Stub) reads a file whose blocks are fetched on demand.

pub mod blocks;
mod count;
mod descriptors;
mod faults;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use blocks::BlockFile;
use count::CountedMap;
use descriptors::Pooled;
use faults::MapRegistration;
use memmap2::{Mmap, MmapOptions};

use crate::file_system::FileSystem;
use crate::untrusted::SymlinkPolicy;

/// Returns whether `file` is on a local file system, as far as the system reports that.
///
/// # Errors
/// Fails with the errors of `fstat(2)`.
#[cfg(unix)]
pub fn is_local(file: &impl AsFd) -> io::Result<bool> {
    Ok(FileSystem::of(file)?.is_local())
}

/// The method with which a [`FileView`] reads its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAccess {
    /// Map files on local file systems. Read by position on network and FUSE file systems, and if
    /// the process already has very many maps.
    #[default]
    Auto,
    /// Map the file on every file system.
    Mapped,
    /// Read by position on every file system.
    Positional,
}

/// The expected access pattern of a mapped file, for the system's readahead (`madvise(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Reads at random offsets.
    Random,
    /// Reads from the beginning to the end.
    Sequential,
    /// Reads of the whole file, soon.
    WillNeed,
}

/// A regular file opened for random reading. The view keeps reading the file that was opened.
///
/// `Send + Sync`; reads of a mapped file take no lock. A mapped file keeps no descriptor open.
/// Replacing or unlinking the file does not affect an existing view.
#[derive(Debug)]
pub struct FileView {
    source: ViewSource,
    len: u64,
    identity: ViewIdentity,
}

/// The identity of a viewed file, which shows whether a path still leads to the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewIdentity {
    /// The device of the file system.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
    /// The modification time: seconds since 1970-01-01 UTC and nanoseconds.
    pub modified: (i64, i64),
}

#[derive(Debug)]
enum ViewSource {
    Mapped(MappedFile),
    Positional(Pooled),
    Memory(Vec<u8>),
    Blocks(Arc<BlockFile>),
}

/// A map and its entry in the registry of maps. The entry is dropped first.
#[derive(Debug)]
struct MappedFile {
    registration: MapRegistration,
    map: Mmap,
    /// The last bytes of the file at the time of opening.
    tail: u64,
    _counted: CountedMap,
}

impl FileView {
    /// Opens `path`. A mapped file of any size costs three system calls, one more for the first
    /// file on each device, and another one for the first map of the process. Reads the last page
    /// of the file.
    ///
    /// # Errors
    /// Fails with the errors of `open(2)` and `mmap(2)`, and with `InvalidInput` if `path` is not a
    /// regular file.
    pub fn open(path: impl AsRef<Path>, access: ViewAccess) -> io::Result<FileView> {
        let path = path.as_ref();
        // A repository of an attacker may contain a FIFO, so do not block on `open`. The type is
        // checked below.
        let file = crate::untrusted::open_any(path, SymlinkPolicy::Follow)?;
        FileView::from_file(file, path, access)
    }

    /// Creates a view of an open file like [`open`](Self::open). The file is opened again at `path`
    /// if its descriptor was closed to free descriptors.
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open).
    pub fn from_file(
        file: File,
        path: impl AsRef<Path>,
        access: ViewAccess,
    ) -> io::Result<FileView> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        let len = metadata.len();
        let identity = ViewIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        };
        if let Some(file) = blocks::find_stub(&file, len) {
            return Ok(FileView {
                len: file.len(),
                source: ViewSource::Blocks(file),
                identity,
            });
        }
        let mapped = match access {
            ViewAccess::Auto => {
                FileSystem::on_device(&file, identity.device).is_local() && count::has_room()
            }
            ViewAccess::Mapped => true,
            ViewAccess::Positional => false,
        };
        let source = if len == 0 {
            ViewSource::Memory(Vec::new())
        } else if let (true, Ok(len)) = (mapped, usize::try_from(len)) {
            ViewSource::Mapped(MappedFile::new(&file, len)?)
        } else {
            ViewSource::Positional(Pooled::new(file, path.as_ref().to_owned(), identity))
        };
        Ok(FileView {
            source,
            len,
            identity,
        })
    }

    /// Creates a view of `bytes` in memory, for parsers that read views.
    pub fn from_bytes(bytes: Vec<u8>) -> FileView {
        FileView {
            len: bytes.len() as u64,
            source: ViewSource::Memory(bytes),
            identity: ViewIdentity {
                device: 0,
                inode: 0,
                modified: (0, 0),
            },
        }
    }

    /// Returns the size in bytes that the file had when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file was empty when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the identity of the file.
    pub fn identity(&self) -> ViewIdentity {
        self.identity
    }

    /// Returns the whole content if the file is mapped (or empty) and none of its blocks is
    /// missing.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.source {
            ViewSource::Mapped(mapped) => Some(&mapped.map),
            ViewSource::Memory(bytes) => Some(bytes),
            ViewSource::Positional(_) => None,
            ViewSource::Blocks(file) => file.bytes(),
        }
    }

    /// Returns at least `len` bytes from `offset` if they are in memory, or `None` if they must be
    /// read with [`read`](Self::read). Fetches missing blocks.
    ///
    /// # Errors
    /// Fails with the errors of [`read`](Self::read).
    pub fn in_place(&self, offset: u64, len: usize) -> io::Result<Option<&[u8]>> {
        self.check_range(offset, len)?;
        match &self.source {
            ViewSource::Blocks(file) => file.in_place(offset, len),
            _ => Ok(self.bytes().map(|bytes| &bytes[offset as usize..])),
        }
    }

    fn check_range(&self, offset: u64, len: usize) -> io::Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Returns exactly `len` bytes from `offset`, borrowed from the map or from `buffer`, whose
    /// previous content is lost. Allocates at most `len` bytes, and only if the file is long
    /// enough.
    ///
    /// # Errors
    /// Fails with `UnexpectedEof` if the file ends before `offset + len`, and with the errors of
    /// reading.
    pub fn read<'a>(
        &'a self,
        offset: u64,
        len: usize,
        buffer: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        self.check_range(offset, len)?;
        match &self.source {
            // The range is in memory, so the offset fits into a `usize`.
            ViewSource::Mapped(mapped) => Ok(&mapped.map[offset as usize..][..len]),
            ViewSource::Memory(bytes) => Ok(&bytes[offset as usize..][..len]),
            ViewSource::Positional(file) => {
                buffer.clear();
                buffer.resize(len, 0);
                file.read_exact_at(buffer, offset)?;
                Ok(buffer)
            }
            // Callers of `read` may keep the bytes, so copy them while the file is not completely
            // mapped.
            ViewSource::Blocks(file) => {
                buffer.clear();
                buffer.resize(len, 0);
                file.read(offset, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Checks that all bytes read from this view so far are those of the file. Call this after the
    /// bytes were used and before a result is returned: if the file was truncated under its map,
    /// the bytes may have been zeros. Costs a load and a branch.
    ///
    /// # Errors
    /// Fails with `UnexpectedEof` if the file was truncated; every later call fails, too.
    #[inline]
    pub fn check(&self) -> io::Result<()> {
        match &self.source {
            ViewSource::Mapped(mapped) if mapped.registration.is_marked() => Err(cut_short()),
            ViewSource::Blocks(file) => file.check(),
            _ => Ok(()),
        }
    }

    /// Checks the view like [`check`](Self::check), and also that the file still ends with the same
    /// bytes as at the time of opening. Missing bytes within the last page of a file read as zeros
    /// without a fault, and so do bytes that were truncated and restored as a hole. Call this
    /// before reporting data as missing. Reads the last bytes of a mapped file.
    ///
    /// # Errors
    /// Fails with the errors of [`check`](Self::check).
    pub fn verify(&self) -> io::Result<()> {
        if let ViewSource::Mapped(mapped) = &self.source
            && tail_of(std::hint::black_box(&mapped.map)) != mapped.tail
        {
            mapped.registration.mark();
        }
        self.check()
    }

    /// Prefetches the cache line at `offset` of a mapped file into the processor's cache. Does
    /// nothing if the offset is out of bounds or the file is not mapped.
    #[inline(always)]
    pub fn prefetch(&self, offset: u64) {
        if let Some(bytes) = self.bytes() {
            prefetch(bytes, offset as usize);
        }
    }

    /// Starts to fetch the blocks at `offsets` (ascending), if the blocks of the file are fetched
    /// on demand. Does not wait. Does nothing for other files, and for offsets beyond the end.
    pub fn prefetch_all(&self, offsets: &[u64]) {
        if let ViewSource::Blocks(file) = &self.source {
            file.prefetch_all(offsets);
        }
    }

    /// Advises the system about the expected reads of a mapped file. Never fails, because the
    /// system may ignore the advice.
    pub fn advise(&self, advice: Advice) {
        if let ViewSource::Mapped(MappedFile { map, .. }) = &self.source {
            let advice = match advice {
                Advice::Random => memmap2::Advice::Random,
                Advice::Sequential => memmap2::Advice::Sequential,
                Advice::WillNeed => memmap2::Advice::WillNeed,
            };
            // An error is ignored: the advice does not change results.
            let _ = map.advise(advice);
        }
    }
}

impl MappedFile {
    /// Maps the first `len` bytes of `file`, even if the file has become shorter.
    fn new(file: &File, len: usize) -> io::Result<MappedFile> {
        // SAFETY: the map is private and read-only, and Git never writes to a finished file in
        // place: it makes a new one and renames it over the old. Should someone cut it short,
        // the registration keeps the process alive; memory that is not ours cannot be read.
        let map = unsafe { MmapOptions::new().len(len).map(file)? };
        let registration = MapRegistration::new(&map);
        let tail = tail_of(&map);
        Ok(MappedFile {
            registration,
            map,
            tail,
            _counted: CountedMap::new(),
        })
    }
}

/// Returns the last eight bytes as a number.
fn tail_of(bytes: &[u8]) -> u64 {
    let mut tail = [0; 8];
    for (to, from) in tail.iter_mut().zip(bytes.iter().rev()) {
        *to = *from;
    }
    u64::from_le_bytes(tail)
}

#[cold]
fn cut_short() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the file was truncated while it was in use",
    )
}

/// Prefetches the cache line of `bytes[at]` into the processor's cache. Does nothing if `at` is out
/// of bounds.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and the address is that of a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str, contents: &[u8]) -> crate::cleanup::Guard {
        std::fs::write(path(name), contents).expect("the temporary directory can be written");
        crate::cleanup::Guard::new(path(name))
    }

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("pronto-view-{}-{name}", std::process::id()))
    }

    #[test]
    fn both_ways_read_the_same() {
        let _guard = scratch("same", b"0123456789");
        for access in [ViewAccess::Auto, ViewAccess::Mapped, ViewAccess::Positional] {
            let view = FileView::open(path("same"), access).expect("the file is there");
            let mut buffer = Vec::new();
            assert_eq!(view.len(), 10);
            assert_eq!(view.read(2, 3, &mut buffer).expect("inside"), b"234");
            assert_eq!(view.read(10, 0, &mut buffer).expect("at the end"), b"");
            for (offset, len) in [(8, 3), (11, 0), (u64::MAX, 2), (0, usize::MAX)] {
                let error = view.read(offset, len, &mut buffer).expect_err("outside");
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            }
        }
    }

    #[test]
    fn a_replaced_file_is_still_read_as_it_was() {
        let _guard = scratch("replaced", b"old");
        let views = [ViewAccess::Mapped, ViewAccess::Positional]
            .map(|access| FileView::open(path("replaced"), access).expect("the file is there"));
        std::fs::write(path("replacement"), b"new").expect("a second file");
        std::fs::rename(path("replacement"), path("replaced"))
            .expect("one takes the other's place");
        for view in &views {
            let mut buffer = Vec::new();
            assert_eq!(view.read(0, 3, &mut buffer).expect("still there"), b"old");
        }
    }

    #[test]
    fn a_file_cut_short_reads_as_zeros_and_says_so() {
        let pages = vec![7; 1 << 20];
        let _guard = scratch("cut", &pages);
        let _other = scratch("whole", &pages);
        let open =
            |name| FileView::open(path(name), ViewAccess::Mapped).expect("the file is there");
        let (view, other) = (open("cut"), open("whole"));
        let file = File::options().write(true).open(path("cut"));
        let file = file.expect("it is ours");
        // Within a page that has not been accessed there is no fault.
        file.set_len(pages.len() as u64 - 100).expect("it is ours");
        let mut buffer = Vec::new();
        assert_eq!(view.read(0, 4, &mut buffer).expect("inside"), [7; 4]);
        view.check().expect("nothing is known to be gone");
        view.verify().expect_err("it ends otherwise");
        view.check().expect_err("it is known now");
        drop(view);
        let view = open("cut");
        view.check().expect("it was opened as it is");
        file.set_len(5000).expect("it is ours");
        std::thread::scope(|scope| {
            for at in [100_000, 900_000] {
                let view = &view;
                scope.spawn(move || {
                    let bytes = view.read(at, 4, &mut Vec::new()).map(<[u8]>::to_vec);
                    assert_eq!(bytes.expect("inside"), [0; 4]);
                    view.check().expect_err("it was zeros");
                });
            }
        });
        assert_eq!(view.read(0, 4, &mut buffer).expect("inside"), [7; 4]);
        view.check().expect_err("once is for ever");
        other.verify().expect("that one is whole");
        let more: Vec<FileView> = (0..200).map(|_| open("whole")).collect();
        file.set_len(0).expect("it is ours");
        assert!(more.iter().all(|view| view.verify().is_ok()));
    }

    #[test]
    fn faults_elsewhere_end_the_process() {
        use std::os::unix::process::ExitStatusExt as _;
        const CHILD: &str = "PRONTO_TEST_FAULT";
        if let Some(file) = std::env::var_os(CHILD) {
            let _view = FileView::open(&file, ViewAccess::Mapped).expect("the file is there");
            let file = File::options().read(true).write(true).open(&file);
            let file = file.expect("it is ours");
            // SAFETY: reading it ends the process, which is what is to be seen.
            let map = unsafe { Mmap::map(&file).expect("it can be mapped") };
            file.set_len(0).expect("it is ours");
            panic!("it was read: {}", map[5000]);
        }
        let _guard = scratch("fault", &[7; 10_000]);
        let status = std::process::Command::new(std::env::current_exe().expect("it runs"))
            .args(["--exact", "view::tests::faults_elsewhere_end_the_process"])
            .env(CHILD, path("fault"))
            .stdout(std::process::Stdio::null())
            .status();
        let status = status.expect("it can be started");
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }

    #[test]
    fn empty_files_and_directories() {
        let _guard = scratch("empty", b"");
        let view = FileView::open(path("empty"), ViewAccess::Mapped).expect("the file is there");
        assert_eq!(view.bytes(), Some(&b""[..]));
        assert!(FileView::open(std::env::temp_dir(), ViewAccess::Auto).is_err());
    }
}
