//! Reads objects of the store, and verifies their digests.

use bytes::Bytes;
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::backend::StoreBackend;
use crate::bucket::Bucket as _;
use crate::digest::{BlockDigester, Digest};
use crate::manifest::StoreObject;
use crate::repository::StoreRepository;
use crate::{Error, ErrorKind, Result};

/// The number of bytes of a read from the store.
const PART_BYTES: u64 = 8 << 20;

/// The number of parts of an object that are read concurrently.
const PARTS: usize = 4;

/// The limit on the number of multi-part objects that a process reads concurrently, with 4 parts of
/// 8 MiB each.
static LARGE_OBJECTS: Semaphore = Semaphore::const_new(4);

/// The limit in KiB on the data in flight from stores in a process, besides the data of large
/// objects.
static KIB: Semaphore = Semaphore::const_new(128 << 10);

/// The number of objects that are read concurrently.
pub(crate) const READ_AT_ONCE: usize = 128;

/// A share of the memory for data in flight.
pub(crate) type MemoryPermit = SemaphorePermit<'static>;

/// Waits for a share of `len` bytes, which are at most the size of a part.
pub(crate) async fn share(len: u64) -> Option<MemoryPermit> {
    KIB.acquire_many(kib(len)).await.ok()
}

/// Returns a share of `len` bytes if half of the memory stays free.
pub(crate) fn share_of_many(len: u64) -> Option<MemoryPermit> {
    let has_room = KIB.available_permits() > (64 << 10) + kib(len) as usize;
    has_room.then(|| KIB.try_acquire_many(kib(len)).ok())?
}

fn kib(len: u64) -> u32 {
    (len.min(PART_BYTES).div_ceil(1024)) as u32
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Reads an object, passes its bytes to `sink` in order, and verifies the size and the digest.
    /// If this method fails, the bytes must not be used. An object of at most 8 MiB costs one round
    /// trip. The parts of a larger object are read concurrently.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Missing`] if the object does not exist, with [`ErrorKind::Corrupt`]
    /// if its size or digest is wrong, and with the errors of `sink` and of the store.
    pub async fn read_object(
        &self,
        object: &StoreObject,
        mut sink: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        let name = format!("{}{}", self.prefix, object.name);
        let mut digester = BlockDigester::default();
        if object.size_bytes <= PART_BYTES {
            let share = share(object.size_bytes).await;
            let bytes = self.read_part(&name, 0, object.size_bytes).await?;
            digester.update(&bytes);
            sink(&bytes)?;
            drop((bytes, share));
            return check_digest(&name, digester.finish().whole, object.digest);
        }
        let _turn = LARGE_OBJECTS.acquire().await;
        let mut parts = FuturesOrdered::new();
        let mut at = 0;
        loop {
            while parts.len() < PARTS && at < object.size_bytes {
                let len = PART_BYTES.min(object.size_bytes - at);
                parts.push_back(self.read_part(&name, at, len));
                at += len;
            }
            let Some(bytes) = parts.next().await else {
                break;
            };
            let bytes = bytes?;
            digester.update(&bytes);
            sink(&bytes)?;
        }
        check_digest(&name, digester.finish().whole, object.digest)
    }

    /// Reads `len` bytes from the offset `at` of the object `name`, which includes the prefix.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Missing`] if the object does not exist, with [`ErrorKind::Corrupt`]
    /// if it is shorter, and with the errors of the store.
    pub(crate) async fn read_part(&self, name: &str, at: u64, len: u64) -> Result<Bytes> {
        let read = || self.backend.bucket().get_range(name, at, len);
        let Some(bytes) = self.persist(read).await? else {
            return Err(missing(name));
        };
        if bytes.len() as u64 == len {
            return Ok(bytes);
        }
        let (end, wanted) = (at + bytes.len() as u64, at + len);
        let message = format!("truncated object: it has {end} bytes instead of {wanted}");
        Err(Error::new(ErrorKind::Corrupt, message).at_path(name))
    }

    /// Returns the bytes of an object of at most `most` bytes.
    ///
    /// # Errors
    /// Fails for the same reasons as [`read_object`](Self::read_object), and with
    /// [`ErrorKind::Unsupported`] if the object is larger.
    pub async fn object(&self, object: &StoreObject, most: u64) -> Result<Vec<u8>> {
        if object.size_bytes > most {
            let message = format!(
                "object of {} bytes is too large to read into memory",
                object.size_bytes
            );
            let name = format!("{}{}", self.prefix, object.name);
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(name));
        }
        let mut all = Vec::new();
        let sink = |bytes: &[u8]| {
            all.extend_from_slice(bytes);
            Ok(())
        };
        self.read_object(object, sink).await?;
        Ok(all)
    }
}

fn missing(name: &str) -> Error {
    let message = "the store lacks an object of a generation";
    let hint = "run 'pronto store verify' to list the missing and damaged objects";
    Error::new(ErrorKind::Missing, message)
        .at_path(name)
        .with_hint(hint)
}

/// Compares the digest of an object with the one in the manifest.
fn check_digest(name: &str, found: Digest, wanted: Digest) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let message = format!("corrupt object: its digest is {found} instead of {wanted}");
    Err(Error::new(ErrorKind::Corrupt, message).at_path(name))
}
