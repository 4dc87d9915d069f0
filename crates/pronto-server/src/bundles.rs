//! Bundles from which clones start (`bundle-uri`): packs of repositories, behind cached headers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pronto::Repository;
use pronto::upload_pack::{
    self, BundleSource, ListingCache as _, PackedBundle, may_have_packed_bundle,
};
use pronto_io::interrupt::Interrupt;
use pronto_io::view::{FileView, ViewAccess};
use pronto_io::watch::Watch;

use crate::listings::Listings;

/// The largest total size in bytes of cached headers.
const MOST_HEADER_BYTES: usize = 32 << 20;

/// The bundles of the repositories of a server. `Send + Sync`: a lock is held for a lookup.
///
/// Each request decides about the permitted content of a bundle. The first header that a repository
/// used for a pack is cached, so that the URI of a bundle stays the same when refs move. A header
/// that was evicted from the cache is created again, and is the same if the refs are the same.
#[derive(Debug)]
pub struct Bundles {
    least_bytes: u64,
    headers: Listings,
    /// The lock that is held from the lookup of a header until the header is available.
    turn: Mutex<()>,
}

/// A bundle that is open for reading.
#[derive(Debug)]
pub struct OpenedBundle {
    /// The bundle header, which precedes the pack.
    pub header: Arc<[u8]>,
    /// The pack. It stays readable if the repository removes the pack file.
    pub pack: FileView,
}

impl Bundles {
    /// Creates bundles from packs of at least `least_bytes`.
    pub fn new(least_bytes: u64) -> Self {
        Bundles {
            least_bytes,
            headers: Listings::new(MOST_HEADER_BYTES),
            turn: Mutex::new(()),
        }
    }

    /// Returns the bundles of the repository with this `identity`, the directory that all its views
    /// share.
    pub fn of(self: &Arc<Self>, identity: PathBuf) -> Arc<dyn BundleSource> {
        Arc::new(BundlesOf {
            bundles: Arc::clone(self),
            identity,
        })
    }

    fn current(
        &self,
        repository: &Repository,
        identity: &Path,
        interrupt: &Interrupt,
    ) -> pronto::Result<Option<PackedBundle>> {
        let found = upload_pack::packed_bundle(
            repository,
            self.least_bytes,
            identity,
            &Watch::from(interrupt),
        )?;
        let Some(mut bundle) = found else {
            return Ok(None);
        };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match self.headers.get(&bundle.key) {
            Some(header) => bundle.header = header,
            None => self.headers.put(bundle.key, Arc::clone(&bundle.header)),
        }
        Ok(Some(bundle))
    }

    /// Returns the bundle of `repository` with this file name, or `None` if there is no such bundle
    /// any more. `identity` is the argument of [`of`](Self::of).
    ///
    /// # Errors
    /// Fails if the repository cannot be read, or `interrupt` was triggered.
    pub fn open(
        &self,
        repository: &Repository,
        identity: &Path,
        name: &str,
        interrupt: &Interrupt,
    ) -> pronto::Result<Option<OpenedBundle>> {
        let found = self.current(repository, identity, interrupt)?;
        let Some(bundle) = found.filter(|bundle| bundle.file_name() == name) else {
            return Ok(None);
        };
        // Maintenance may have removed the pack.
        let Ok(pack) = FileView::open(&bundle.pack, ViewAccess::Positional) else {
            return Ok(None);
        };
        Ok(Some(OpenedBundle {
            header: bundle.header,
            pack,
        }))
    }
}

/// The bundles of one repository.
#[derive(Debug)]
struct BundlesOf {
    bundles: Arc<Bundles>,
    identity: PathBuf,
}

impl BundleSource for BundlesOf {
    fn may_have(&self, repository: &Repository) -> bool {
        may_have_packed_bundle(repository, self.bundles.least_bytes)
    }

    fn uri(
        &self,
        repository: &Repository,
        interrupt: &Interrupt,
    ) -> pronto::Result<Option<String>> {
        let bundle = self
            .bundles
            .current(repository, &self.identity, interrupt)?;
        Ok(bundle.map(|bundle| format!("bundle/{}", bundle.file_name())))
    }
}
