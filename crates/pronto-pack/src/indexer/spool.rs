//! Writes the received pack to a temporary file and hashes it, on a separate thread if one is
//! available.

use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::temporary::Temporary;
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::error::IoContext as _;
use pronto_io::sync::SyncMethod;
use pronto_io::view::{Access, View};
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
pub(super) trait Sink {
    /// Takes a segment whose first `len` bytes must be written.
    fn take(&mut self, segment: Arc<Segment>, len: usize) -> Result<(), Error>;

    /// Returns the memory of a segment that is no longer needed, if there is one.
    fn spare(&mut self) -> Option<Vec<u8>>;
}

/// The storage of the bytes of the pack.
pub(super) enum Store {
    /// A new temporary file.
    New(Temporary),
    /// An existing file.
    Given(View),
}

impl Store {
    /// Returns a view of the written bytes.
    pub(super) fn view(&self) -> Result<Viewed<'_>, Error> {
        match self {
            Store::New(temporary) => View::open(&temporary.path, Access::Auto)
                .context(ErrorKind::Io, "cannot open", &temporary.path)
                .map(Viewed::Owned),
            Store::Given(view) => Ok(Viewed::Borrowed(view)),
        }
    }

    /// Flushes the written bytes to the disk.
    pub(super) fn sync(&self, how: SyncMethod) -> Result<(), Error> {
        match self {
            Store::New(temporary) => temporary.sync(how),
            Store::Given(_) => Ok(()),
        }
    }
}

/// A view that is borrowed or opened for the caller.
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

/// The written part of the pack.
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

    /// Writes the trailer, and checks that it is the checksum of all preceding bytes.
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

    /// Writes the segments from the channel and sends their buffers back.
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

/// A [`Spool`] on the thread of the receiver.
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

/// Sends segments to a [`Spool`] on another thread.
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
