//! Caches of packs and ref lists that equal requests share.

use std::fmt::Debug;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bstr::ByteSlice as _;
use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::interrupt::Interrupt;
use pronto_odb::packing::{self, PackCounts};
use pronto_storage::pack_objects::ObjectFilter;

use super::shown::NamespaceView;
use super::wish::Wish;
use crate::{Repository, Result};

/// The key of a cached pack: a digest of the repository, of the request, and of everything else
/// that determines the content of the pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SentPackKey(ObjectId);

impl SentPackKey {
    /// Returns the key of the pack that `parts` identify.
    pub fn of(parts: &[u8]) -> SentPackKey {
        SentPackKey(KeyDigester::of(parts))
    }
}

/// A cache of sent packs, from which equal requests are served.
///
/// Access checks precede the use of the cache. A cache sends the pack of one client to another
/// client for equal keys only.
pub trait PackCache: Debug + Send + Sync {
    /// Sends the pack of `key` to `out`, and returns its counts. `make` creates the pack, unless
    /// the cache has it already, or it is being created for another client. `make` may be called on
    /// this thread while another thread writes to `out`.
    ///
    /// # Errors
    /// Fails with the errors of `make` and `out`, or if `interrupt` is triggered.
    fn send(
        &self,
        key: &SentPackKey,
        out: &mut (dyn Write + Send),
        make: &mut dyn FnMut(&mut dyn Write) -> Result<PackCounts>,
        interrupt: &Interrupt,
    ) -> Result<PackCounts>;
}

/// The key of a cached ref list.
///
/// A new state of the refs makes older lists useless, so that a cache needs only one list for each
/// `subject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListingKey {
    /// A digest of the repository, and of everything that determines which refs are listed.
    pub subject: ObjectId,
    /// A digest of the state of the refs.
    pub state: ObjectId,
}

/// A cache of ref lists in the format in which they are sent. Any entry may be evicted at any time.
pub trait ListingCache: Debug + Send + Sync {
    /// Returns the list of `key`, if it is cached.
    fn get(&self, key: &ListingKey) -> Option<Arc<[u8]>>;

    /// Caches a list, and replaces the list of the same subject in another state.
    fn put(&self, key: ListingKey, listing: Arc<[u8]>);
}

/// Returns the key of a list of the refs of `view`, selected by arguments with the digest `choice`;
/// `None` if another state of the refs could have the same key. `view_of` is
/// [`Options::view_of`](super::Options::view_of).
///
/// # Errors
/// Fails if the refs cannot be read.
pub(super) fn listing_key(
    view: &NamespaceView<'_>,
    choice: &ObjectId,
    view_of: Option<&Path>,
) -> Result<Option<ListingKey>> {
    let repository = view.repository;
    let git_dir = repository.git_dir();
    let mut subject = KeyDigester::new();
    subject.path(view_of.unwrap_or(git_dir));
    subject.add(repository.refs().namespace());
    subject.add(format!("{:?}", view.hidden).as_bytes());
    subject.add(choice.as_bytes());
    let mut state = KeyDigester::new();
    let is_described = match view_of {
        Some(_) => {
            state.path(git_dir);
            true
        }
        None => repository
            .refs()
            .describe_state(&mut |part| state.add(part))?,
    };
    Ok(is_described.then(|| ListingKey {
        subject: subject.finish(),
        state: state.finish(),
    }))
}

impl ListingKey {
    /// Returns the key for the digests of `subject` and `state`.
    pub fn of(subject: &[u8], state: &[u8]) -> ListingKey {
        ListingKey {
            subject: KeyDigester::of(subject),
            state: KeyDigester::of(state),
        }
    }
}

/// Whether bitmaps answer `wish`. In that case creating the pack is faster than a cache lookup.
///
/// # Errors
/// Fails if bitmaps or settings cannot be read.
pub(super) fn is_copied(view: &Repository, wish: &Wish) -> Result<bool> {
    let has_rules = !matches!(
        wish.filter,
        None | Some(ObjectFilter::BlobNone | ObjectFilter::ObjectType(_))
    );
    Ok(!wish.is_cut && !has_rules && view.has_usable_bitmaps()?)
}

/// Returns the key of the pack for `wish`; `None` if an equal request could result in another pack.
///
/// # Errors
/// Fails if refs or settings cannot be read.
pub(super) fn key(
    view: &Repository,
    wish: &Wish,
    options: &packing::Options,
) -> Result<Option<SentPackKey>> {
    let is_fixed = wish.filter.as_ref().is_none_or(is_fixed);
    if !is_fixed || !wish.uri_protocols.is_empty() {
        return Ok(None);
    }
    let mut parts = KeyDigester::new();
    parts.path(view.git_dir());
    parts.ids(&wish.wants);
    parts.ids(&wish.haves);
    parts.ids(view.shallow_commits()?);
    for is_set in [
        wish.thin,
        wish.offset_deltas,
        wish.is_cut,
        wish.include_tags,
    ] {
        parts.add(&[is_set.into()]);
    }
    let filter = wish.filter.as_ref().map(ObjectFilter::to_spec);
    parts.add(filter.unwrap_or_default().as_bytes());
    for promisor in &wish.promisors {
        parts.add(promisor);
    }
    // The debug text contains all settings of packs.
    parts.add(format!("{options:?}").as_bytes());
    if wish.include_tags {
        view.refs().for_each("refs/tags/", |tag| {
            parts.add(tag.name.as_bytes());
            parts.add(tag.id.as_bytes());
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(Some(SentPackKey(parts.finish())))
}

/// Whether a filter always selects the same objects. The patterns of `sparse:oid` are named by a
/// revision, which may change.
fn is_fixed(filter: &ObjectFilter) -> bool {
    match filter {
        ObjectFilter::SparseOid(_) => false,
        ObjectFilter::Combine(filters) => filters.iter().all(is_fixed),
        _ => true,
    }
}

/// Computes a digest of parts of any length.
pub(super) struct KeyDigester(TrailerDigester);

impl KeyDigester {
    pub(super) fn new() -> Self {
        KeyDigester(TrailerDigester::new(Kind::Sha256))
    }

    /// Returns the digest of a single part.
    fn of(part: &[u8]) -> ObjectId {
        let mut parts = KeyDigester::new();
        parts.add(part);
        parts.finish()
    }

    pub(super) fn finish(self) -> ObjectId {
        self.0.finish()
    }

    fn path(&mut self, path: &Path) {
        self.add(path.as_os_str().as_encoded_bytes());
    }

    pub(super) fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Adds a set.
    fn ids(&mut self, ids: &[ObjectId]) {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        self.add(&(ids.len() as u64).to_be_bytes());
        for id in ids {
            self.add(id.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_name_a_revision_are_not_fixed() {
        for (spec, fixed) in [
            ("blob:none", true),
            ("tree:2", true),
            ("combine:tree:2+blob:limit=1k", true),
            ("sparse:oid=main:patterns", false),
            ("combine:tree:2+sparse:oid=main:patterns", false),
        ] {
            let filter = ObjectFilter::parse(spec.into()).expect("a filter");
            assert_eq!(is_fixed(&filter), fixed, "{spec}");
        }
    }
}
