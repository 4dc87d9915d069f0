//! The pack on its way to disk: written under a temporary name and digested, on a thread of its
//! own if there is one to spare.

use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::view::{Access, View};
use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender};

/// How many segments may wait to be written.
pub(super) const QUEUE_LEN: usize = 4;
/// How many segments are written with one call: a MiB, which network file systems like best.
const WRITTEN_TOGETHER: usize = 4;

/// Where segments go that have been parsed.
pub(super) trait Sink {
    /// Takes a segment of which the first `len` bytes are to be written.
    fn take(&mut self, segment: Arc<Segment>, len: usize) -> Result<(), Error>;

    /// The memory of a segment that nobody needs any more, if there is one.
    fn spare(&mut self) -> Option<Vec<u8>>;
}

/// A file under a temporary name, which goes when this is dropped.
pub(crate) struct Temporary {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    guard: Guard,
}

impl Temporary {
    /// Makes `directory/tmp_{what}_XXXXXX`, read-only for everyone but this handle.
    pub(crate) fn create(directory: &Path, what: &str) -> Result<Temporary, Error> {
        const ATTEMPTS: usize = 100;
        for _ in 0..ATTEMPTS {
            let path = directory.join(format!("tmp_{what}_{}", random_letters()));
            let mut open = std::fs::OpenOptions::new();
            open.read(true).write(true).create_new(true).mode(0o444);
            match open.open(&path) {
                Ok(file) => {
                    let guard = Guard::new(&path);
                    return Ok(Temporary { path, file, guard });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).context(ErrorKind::Io, "unable to create", &path);
                }
            }
        }
        Err(
            Error::new(ErrorKind::Io, "unable to find a name for a temporary file")
                .at_path(directory),
        )
    }

    /// Gives the file its final name.
    pub(super) fn rename(self, to: &Path) -> Result<(), Error> {
        std::fs::rename(&self.path, to).context(ErrorKind::Io, "unable to rename to", to)?;
        self.guard.keep();
        Ok(())
    }

    /// Gives the file these permissions, if any.
    pub(super) fn permit(&self, permissions: Option<u32>) -> Result<(), Error> {
        let Some(mode) = permissions else {
            return Ok(());
        };
        self.file
            .set_permissions(std::fs::Permissions::from_mode(mode))
            .context(ErrorKind::Io, "cannot set permissions of", &self.path)
    }

    /// Waits until the content is on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_all()
            .context(ErrorKind::Io, "unable to fsync", &self.path)
    }
}

/// Six letters that are unlikely to have been used.
fn random_letters() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Relaxed));
    let mut bits = hasher.finish();
    let letters = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    (0..6)
        .map(|_| {
            let letter = letters[(bits % 62) as usize];
            bits /= 62;
            char::from(letter)
        })
        .collect()
}

/// Where the bytes of the pack are.
pub(super) enum Store {
    /// They are being written.
    New(Temporary),
    /// They were there before.
    Given(View),
}

impl Store {
    /// The bytes that have been written, for reading back.
    pub(super) fn view(&self) -> Result<Viewed<'_>, Error> {
        match self {
            Store::New(temporary) => View::open(&temporary.path, Access::Auto)
                .context(ErrorKind::Io, "cannot open", &temporary.path)
                .map(Viewed::Owned),
            Store::Given(view) => Ok(Viewed::Borrowed(view)),
        }
    }

    /// Waits until what was written is on the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        match self {
            Store::New(temporary) => temporary.sync(),
            Store::Given(_) => Ok(()),
        }
    }
}

/// A view that may have been opened for the purpose.
pub(super) enum Viewed<'a> {
    Owned(View),
    Borrowed(&'a View),
}

impl std::ops::Deref for Viewed<'_> {
    type Target = View;

    fn deref(&self) -> &View {
        match self {
            Viewed::Owned(view) => view,
            Viewed::Borrowed(view) => view,
        }
    }
}

/// The pack as far as it is written.
pub(super) struct Spool {
    store: Store,
    digester: TrailerDigester,
    len: u64,
}

impl Spool {
    pub(super) fn new(store: Store, kind: Kind) -> Spool {
        Spool {
            store,
            digester: TrailerDigester::new(kind),
            len: 0,
        }
    }

    fn write(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<(), Error> {
        for piece in &*pieces {
            self.digester.update(piece);
        }
        self.put(pieces)
    }

    fn put(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<(), Error> {
        self.len += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        match &self.store {
            Store::Given(_) => Ok(()),
            Store::New(temporary) => write_all(&temporary.file, pieces).context(
                ErrorKind::Io,
                "unable to write",
                &temporary.path,
            ),
        }
    }

    /// Writes the trailer, which must be the checksum of all before it.
    pub(super) fn finish(mut self, trailer: &[u8]) -> Result<(Store, ObjectId), Error> {
        let checksum = self.digester.clone().finish();
        if checksum.as_slice() != trailer {
            return Err(
                Error::new(ErrorKind::Checksum, "pack is corrupted (SHA1 mismatch)")
                    .at_offset(self.len),
            );
        }
        self.put(&mut [IoSlice::new(trailer)])?;
        Ok((self.store, checksum))
    }

    /// Writes what comes through `segments` and sends the memory back.
    pub(super) fn run(
        mut self,
        segments: &Receiver<(Arc<Segment>, usize)>,
        spare: &Sender<Vec<u8>>,
    ) -> Result<Spool, Error> {
        loop {
            let together: Vec<_> = segments.iter().take(WRITTEN_TOGETHER).collect();
            if together.is_empty() {
                return Ok(self);
            }
            let pieces = together.iter();
            let mut pieces: Vec<_> = pieces
                .map(|(segment, len)| IoSlice::new(&segment.bytes()[..*len]))
                .collect();
            self.write(&mut pieces)?;
            for (segment, _) in together {
                if let Some(segment) = Arc::into_inner(segment) {
                    // The receiver may be gone: then nobody needs the memory.
                    let _ = spare.send(segment.into_buffer());
                }
            }
        }
    }
}

/// Writes all of `pieces`, one behind the other.
fn write_all(mut file: &File, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_vectored(pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => IoSlice::advance_slices(&mut pieces, len),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A [`Spool`] on the receiver's own thread.
pub(super) struct Local {
    spool: Spool,
    spare: Option<Vec<u8>>,
}

impl Local {
    pub(super) fn new(spool: Spool) -> Local {
        Local { spool, spare: None }
    }

    pub(super) fn into_spool(self) -> Spool {
        self.spool
    }
}

impl Sink for Local {
    fn take(&mut self, segment: Arc<Segment>, len: usize) -> Result<(), Error> {
        let bytes = &segment.bytes()[..len];
        self.spool.write(&mut [IoSlice::new(bytes)])?;
        self.spare = Arc::into_inner(segment).map(Segment::into_buffer);
        Ok(())
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.spare.take()
    }
}

/// Hands segments to a [`Spool`] that runs on another thread.
pub(super) struct Remote {
    pub(super) full: SyncSender<(Arc<Segment>, usize)>,
    pub(super) empty: Receiver<Vec<u8>>,
}

impl Sink for Remote {
    fn take(&mut self, segment: Arc<Segment>, len: usize) -> Result<(), Error> {
        self.full.send((segment, len)).map_err(|_| super::stopped())
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.empty.try_recv().ok()
    }
}
