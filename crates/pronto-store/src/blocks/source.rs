//! Fetches blocks of a pack, and verifies their digests.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pronto_io::view::blocks::{BlockReport, BlockSource, Request};
use tokio::sync::watch;

use super::BlockCache;
use crate::backend::StoreBackend;
use crate::digest::Digest;
use crate::download;
use crate::manifest::StoreObject;
use crate::repository::StoreRepository;
use crate::{Error, ErrorKind};

/// The length of a digest in bytes.
const DIGEST_LEN: usize = 32;

/// A pack in the store.
pub(super) struct PackSource<B>(Arc<SourceState<B>>);

struct SourceState<B> {
    repository: Arc<StoreRepository<B>>,
    /// The name of the object, including the prefix of the repository.
    name: String,
    /// The concatenated digests of the blocks, or no bytes until the digests are read.
    sums: watch::Receiver<Bytes>,
    cache: Arc<BlockCache>,
}

impl<B: StoreBackend> PackSource<B> {
    pub(super) fn new(
        repository: &Arc<StoreRepository<B>>,
        object: &StoreObject,
        sums: watch::Receiver<Bytes>,
        cache: &Arc<BlockCache>,
    ) -> Self {
        PackSource(Arc::new(SourceState {
            repository: Arc::clone(repository),
            name: format!("{}{}", repository.prefix, object.name),
            sums,
            cache: Arc::clone(cache),
        }))
    }
}

impl<B: StoreBackend> BlockSource for PackSource<B> {
    fn fetch(&self, request: Request) {
        let range = request.range();
        let len = range.end - range.start;
        let early = match request.is_ahead() {
            true => match download::share_of_many(len) {
                None => return request.cancel(),
                share => share,
            },
            false => None,
        };
        let inner = Arc::clone(&self.0);
        let task = async move {
            let share = match early {
                None => download::share(len).await,
                share => share,
            };
            let cache = &inner.cache;
            cache.requests.fetch_add(1, Ordering::Relaxed);
            let answer = inner.repository.read_part(&inner.name, range.start, len);
            let answer = answer.await.map_err(to_io);
            if let Ok(bytes) = &answer {
                cache.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            let mut sums = inner.sums.clone();
            let mut share = share;
            if sums.borrow().is_empty() {
                // The digests are being fetched, which needs a share of its own.
                drop(share.take());
                if sums.wait_for(|sums| !sums.is_empty()).await.is_err() {
                    return;
                }
            }
            let land = move || {
                match answer {
                    Ok(bytes) => request.land(Ok(&bytes)),
                    Err(error) => request.land(Err(error)),
                }
                drop(share);
            };
            // Computing digests and writing files would block other calls of the store.
            drop(tokio::task::spawn_blocking(land));
        };
        drop(self.0.cache.runtime.spawn(task));
    }

    fn check(&self, block: u32, bytes: &[u8]) -> io::Result<()> {
        let sums = self.0.sums.borrow();
        let at = block as usize * DIGEST_LEN;
        let wanted = sums.get(at..at + DIGEST_LEN);
        let found = Digest::of(bytes);
        if wanted == Some(found.as_bytes()) {
            return Ok(());
        }
        let message = format!("corrupt object: block {block} has the wrong digest {found}");
        let hint = "run 'pronto store verify' to list the missing and damaged objects";
        let error = Error::new(ErrorKind::Corrupt, message).at_path(&self.0.name);
        Err(to_io(error.with_hint(hint)))
    }

    fn note(&self, note: BlockReport<'_>) {
        let cache = &self.0.cache;
        match note {
            BlockReport::Failed(error) => {
                cache.failed.fetch_add(1, Ordering::Relaxed);
                (cache.report)(&error.to_string());
            }
            BlockReport::Damaged { path, block } => cache.report_damage(&format!(
                "block {block} of cached file '{}' is damaged; downloading it again",
                path.display()
            )),
            BlockReport::Replaced { path } => cache.report_damage(&format!(
                "cached file '{}' has the wrong size; downloading it again",
                path.display()
            )),
            BlockReport::Unwritable { path, error } => {
                cache.unwritable.fetch_add(1, Ordering::Relaxed);
                (cache.report)(&format!(
                    "cannot write to cache file '{}', so reading from the store: {error}",
                    path.display()
                ));
            }
            _ => {}
        }
    }
}

impl<B> fmt::Debug for PackSource<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PackSource").field(&self.0.name).finish()
    }
}

/// Converts an error, but not to the kinds "no such file" and "unexpected end", for which readers
/// would search for another file.
fn to_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Corrupt => io::ErrorKind::InvalidData,
        ErrorKind::Denied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
