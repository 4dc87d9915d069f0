//! Writes the received pack to a temporary file and hashes it, on a separate thread if one is
//! available.

use super::segment::StreamSegment;
use crate::error::{Error, ErrorKind};
use crate::temporary::TemporaryFile;
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::error::IoContext as _;
use pronto_io::sync::SyncMethod;
use pronto_io::view::{FileView, ViewAccess};
use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender};

/// The largest number of segments that wait to be written.
pub(super) const QUEUE_LEN: usize = 4;
/// The number of segments that are written with one call: one MiB, which is optimal for network
/// file systems.
const WRITTEN_TOGETHER: usize = 4;

/// The receiver of parsed segments.
pub(super) trait SegmentSink {
    /// Takes a segment whose first `len` bytes must be written.
    fn take(&mut self, segment: Arc<StreamSegment>, len: usize) -> Result<(), Error>;

    /// Returns the memory of a segment that is no longer needed, if there is one.
    fn spare(&mut self) -> Option<Vec<u8>>;
}

/// The storage of the bytes of the pack.
pub(super) enum SpoolStorage {
    /// A new temporary file.
    New(TemporaryFile),
    /// An existing file.
    Given(FileView),
}

impl SpoolStorage {
    /// Returns a view of the written bytes.
    pub(super) fn view(&self) -> Result<Viewed<'_>, Error> {
        match self {
            SpoolStorage::New(temporary) => FileView::open(&temporary.path, ViewAccess::Auto)
                .context(ErrorKind::Io, "cannot open", &temporary.path)
                .map(Viewed::Owned),
            SpoolStorage::Given(view) => Ok(Viewed::Borrowed(view)),
        }
    }

    /// Flushes the written bytes to the disk.
    pub(super) fn sync(&self, how: SyncMethod) -> Result<(), Error> {
        match self {
            SpoolStorage::New(temporary) => temporary.sync(how),
            SpoolStorage::Given(_) => Ok(()),
        }
    }
}

/// A view that is borrowed or opened for the caller.
pub(super) enum Viewed<'a> {
    Owned(FileView),
    Borrowed(&'a FileView),
}

impl std::ops::Deref for Viewed<'_> {
    type Target = FileView;

    fn deref(&self) -> &FileView {
        match self {
            Viewed::Owned(view) => view,
            Viewed::Borrowed(view) => view,
        }
    }
}

/// The written part of the pack.
pub(super) struct IndexSpool {
    store: SpoolStorage,
    digester: TrailerDigester,
    len: u64,
}

impl IndexSpool {
    pub(super) fn new(store: SpoolStorage, kind: Kind) -> IndexSpool {
        IndexSpool {
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
            SpoolStorage::Given(_) => Ok(()),
            SpoolStorage::New(temporary) => write_all(&temporary.file, pieces).context(
                ErrorKind::Io,
                "unable to write",
                &temporary.path,
            ),
        }
    }

    /// Writes the trailer, and checks that it is the checksum of all preceding bytes.
    pub(super) fn finish(mut self, trailer: &[u8]) -> Result<(SpoolStorage, ObjectId), Error> {
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

    /// Writes the segments from the channel and sends their buffers back.
    pub(super) fn run(
        mut self,
        segments: &Receiver<(Arc<StreamSegment>, usize)>,
        spare: &Sender<Vec<u8>>,
    ) -> Result<IndexSpool, Error> {
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
                    // If the receiver has ended, the buffer is not needed.
                    let _ = spare.send(segment.into_buffer());
                }
            }
        }
    }
}

/// Writes all of `pieces` consecutively.
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

/// A [`IndexSpool`] on the thread of the receiver.
pub(super) struct LocalSpool {
    spool: IndexSpool,
    spare: Option<Vec<u8>>,
}

impl LocalSpool {
    pub(super) fn new(spool: IndexSpool) -> LocalSpool {
        LocalSpool { spool, spare: None }
    }

    pub(super) fn into_spool(self) -> IndexSpool {
        self.spool
    }
}

impl SegmentSink for LocalSpool {
    fn take(&mut self, segment: Arc<StreamSegment>, len: usize) -> Result<(), Error> {
        let bytes = &segment.bytes()[..len];
        self.spool.write(&mut [IoSlice::new(bytes)])?;
        self.spare = Arc::into_inner(segment).map(StreamSegment::into_buffer);
        Ok(())
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.spare.take()
    }
}

/// Sends segments to a [`IndexSpool`] on another thread.
pub(super) struct RemoteSpool {
    pub(super) full: SyncSender<(Arc<StreamSegment>, usize)>,
    pub(super) empty: Receiver<Vec<u8>>,
}

impl SegmentSink for RemoteSpool {
    fn take(&mut self, segment: Arc<StreamSegment>, len: usize) -> Result<(), Error> {
        self.full.send((segment, len)).map_err(|_| super::stopped())
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.empty.try_recv().ok()
    }
}
