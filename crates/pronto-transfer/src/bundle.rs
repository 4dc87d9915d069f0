//! Creates and reads bundles: files with refs and the objects reachable from them (`git bundle`).
//!
//! [`create`] creates a bundle, [`Bundle::open`] reads the header of a bundle, [`verify`] checks
//! its prerequisites in a repository, and [`unbundle`] stores its objects. The format is that of
//! gitformat-bundle(5).
//!
//! Creating a bundle costs selecting and writing a pack
//! ([`pack_objects`](pronto_storage::pack_objects)); unbundling costs indexing that pack. Several
//! threads may call the functions at once, but only one thread may use a [`Bundle`].

mod create;
mod limited;
mod revisions;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use bstr::{BStr, BString};
use pronto_io::untrusted::{self, SymlinkPolicy};
use pronto_io::watch::Watch;
use pronto_odb::Quarantine;
use pronto_pack::bundle::BadHeader;
pub use pronto_pack::bundle::{BundleHeader, BundleRef, BundleVersion, Prerequisite};
use pronto_pack::indexer::Inspect;

use crate::environment::Environment;
use crate::objects::from_odb;
use crate::remote::{FROM_BUNDLE, ReceivedFile, receive_stream};
pub use crate::remote::{FailureLine, Fitness, failure_lines, require, verify};
use crate::{Error, ErrorKind, Repository, Result};

pub use create::{CreateOptions, PreparedBundle, create};
pub use revisions::parse_revisions;

/// A bundle whose header has been read.
pub struct Bundle {
    header: BundleHeader,
    source: Box<dyn BufRead + Send>,
}

impl Bundle {
    /// Opens the file at the path `name` and reads its header.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] or [`ErrorKind::Io`] and Git's message if the file
    /// cannot be read or its header is malformed.
    pub fn open(name: &BStr, environment: &Environment) -> Result<Self> {
        let path = environment.absolute(crate::path::borrow(name));
        let file: File = untrusted::open(&path, SymlinkPolicy::Follow).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound => ErrorKind::InvalidInput,
                _ => ErrorKind::Io,
            };
            Error::new(kind, format!("could not open '{name}'"))
        })?;
        Self::read(Box::new(BufReader::new(file)), name)
    }

    /// Reads the header of the bundle in `source`. `name` is its name in messages. The pack remains
    /// in `source` until [`unbundle`].
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the header is malformed.
    pub fn read(mut source: Box<dyn BufRead + Send>, name: &BStr) -> Result<Self> {
        let header = BundleHeader::read(&mut *source).map_err(|bad| {
            let message = match bad {
                BadHeader::Signature => {
                    format!("'{name}' does not look like a v2 or v3 bundle file")
                }
                other => other.to_string(),
            };
            Error::new(ErrorKind::InvalidInput, message)
        })?;
        Ok(Bundle { header, source })
    }

    /// Returns the header.
    pub fn header(&self) -> &BundleHeader {
        &self.header
    }
}

/// Stores the objects of `bundle` in `repository` (`git bundle unbundle`). The caller has checked
/// that the repository has the prerequisites of the bundle.
///
/// # Errors
/// Fails if the pack is malformed or the objects cannot be stored. No object is stored then.
pub fn unbundle(repository: &Repository, bundle: &mut Bundle, watch: &Watch<'_>) -> Result<()> {
    let Bundle { header, source } = bundle;
    land(repository, header, source, None, watch)?
        .publish()
        .map_err(from_odb)
}

/// Stores the objects of `pack`, which follows `header` in a bundle, in a quarantine of
/// `repository`. `inspect` is called for each object.
///
/// # Errors
/// The same as for [`unbundle`].
pub(crate) fn land(
    repository: &Repository,
    header: &BundleHeader,
    pack: &mut dyn Read,
    inspect: Option<&dyn Inspect>,
    watch: &Watch<'_>,
) -> Result<Quarantine> {
    if header.hash != repository.object_hash() {
        let (ours, theirs) = (repository.object_hash(), header.hash);
        let message = format!("mismatched algorithms: repository {ours}; bundle {theirs}");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let store = repository.objects()?;
    let quarantine = Quarantine::begin(store).map_err(from_odb)?;
    let stream = ReceivedFile {
        directory: &quarantine.pack_directory(),
        promisor: header.filter.as_ref().map(|_| FROM_BUNDLE.to_vec()),
        inspect,
    };
    receive_stream(repository, pack, stream, watch)?;
    quarantine.store().refresh().map_err(from_odb)?;
    Ok(quarantine)
}

/// Returns the refs of a bundle that have one of `names`; all refs if `names` is empty.
pub fn selected<'a>(
    header: &'a BundleHeader,
    names: &'a [BString],
) -> impl Iterator<Item = &'a BundleRef> {
    let is_meant = |found: &&BundleRef| names.is_empty() || names.contains(&found.name);
    header.references.iter().filter(is_meant)
}
