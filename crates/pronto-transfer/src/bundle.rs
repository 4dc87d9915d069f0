//! Bundles: files with refs and the objects that they lead to (`git bundle`).
//!
//! [`create`] makes one, [`Bundle::open`] reads its header, [`verify`] compares it with a repository, and
//! [`unbundle`] takes in its objects. The format is that of gitformat-bundle(5).
//!
//! Making a bundle costs selecting and writing a pack ([`pack_objects`](pronto_storage::pack_objects)), taking one
//! in costs indexing it. Functions may run in several threads at once; a [`Bundle`] belongs to one.

mod create;
mod limited;
mod revisions;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use bstr::{BStr, BString};
use pronto_io::untrusted::{self, Links};
use pronto_io::watch::Watch;
use pronto_odb::Quarantine;
use pronto_pack::bundle::BadHeader;
pub use pronto_pack::bundle::{Header, Prerequisite, Reference, Version};
use pronto_pack::indexer::Inspect;

use crate::environment::Environment;
use crate::remote::{FROM_BUNDLE, Stream, from_store, receive_stream};
pub use crate::remote::{Fitness, failure_lines, require, verify};
use crate::{Error, ErrorKind, Repository, Result};

pub use create::{CreateOptions, Created, create};
pub use revisions::parse_revisions;

/// A bundle whose header has been read.
pub struct Bundle {
    header: Header,
    source: Box<dyn BufRead + Send>,
}

impl Bundle {
    /// Opens the file at the path `name` and reads its header.
    ///
    /// # Errors
    /// There is no such file, or its header is malformed. The messages are Git's.
    pub fn open(name: &BStr, environment: &Environment) -> Result<Self> {
        let path = environment.absolute(crate::path::borrow(name));
        let file: File = untrusted::open(&path, Links::Follow).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound => ErrorKind::InvalidInput,
                _ => ErrorKind::Io,
            };
            Error::new(kind, format!("could not open '{name}'"))
        })?;
        Self::read(Box::new(BufReader::new(file)), name)
    }

    /// Reads the header of the bundle in `source`, which messages call `name`. The pack stays in
    /// `source` until [`unbundle`].
    ///
    /// # Errors
    /// The header is malformed.
    pub fn read(mut source: Box<dyn BufRead + Send>, name: &BStr) -> Result<Self> {
        let header = Header::read(&mut *source).map_err(|bad| {
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

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

/// Takes the objects of `bundle` into `repository`, which has what the bundle requires.
///
/// # Errors
/// The pack is malformed, or the objects cannot be stored. Nothing stays then.
pub fn unbundle(repository: &Repository, bundle: &mut Bundle, watch: &Watch<'_>) -> Result<()> {
    let Bundle { header, source } = bundle;
    land(repository, header, source, None, watch)?
        .publish()
        .map_err(from_store)
}

/// Puts the objects of `pack`, which follows `header` in a bundle, into a quarantine of `repository`. `inspect`
/// sees each of them.
///
/// # Errors
/// As for [`unbundle`].
pub(crate) fn land(
    repository: &Repository,
    header: &Header,
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
    let quarantine = Quarantine::begin(store).map_err(from_store)?;
    let stream = Stream {
        directory: &quarantine.pack_directory(),
        promisor: header.filter.as_ref().map(|_| FROM_BUNDLE.to_vec()),
        inspect,
    };
    receive_stream(repository, pack, stream, watch)?;
    quarantine.store().refresh().map_err(from_store)?;
    Ok(quarantine)
}

/// The refs of a bundle that have one of `names`, or all.
pub fn selected<'a>(
    header: &'a Header,
    names: &'a [BString],
) -> impl Iterator<Item = &'a Reference> {
    let is_meant = |found: &&Reference| names.is_empty() || names.contains(&found.name);
    header.references.iter().filter(is_meant)
}
