//! Checks out a whole commit into an empty worktree, as the last part of a clone. `HEAD` need not
//! exist.

use std::borrow::Cow;

use bstr::{BString, ByteSlice};
use gix_object::{CommitRefIter, Kind};
use pronto_hash::ObjectId;
use pronto_index::{Index, IndexContent};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_worktree::attributes::{Attributes, FromIndex};
use pronto_worktree::checkout::{
    self, CheckoutContext, CheckoutFailure, CheckoutPlan, CheckoutWarning, Obstructions,
};
use pronto_worktree::filter::ATTRIBUTES;
use pronto_worktree::unpack;

use crate::errors::{from_index, from_odb, from_worktree};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, index};

/// The metadata that filters of files receive.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The full name of the ref that is checked out, which filters receive.
    pub ref_name: Option<BString>,
}

/// The result of a checkout.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Outcome {
    /// The number of index entries.
    pub entries: usize,
    /// The files that could not be written. If there are any, the operation has failed for Git,
    /// although all other files are written and the index is correct.
    pub failed: Vec<CheckoutFailure>,
    /// The paths that collide on a case-insensitive file system, in its order. Only one of the
    /// colliding paths is in the worktree.
    pub collided: Vec<BString>,
    /// Warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
}

/// The number of files from which on the memory for their contents is limited.
const MANY_FILES: usize = 1000;

/// The size of the delta base cache. Files are read in pack order, so that bases are near.
const BASE_CACHE_BYTES: usize = 32 << 20;

/// Executes `plan`. For many files, memory is limited to 200 MiB in total: fewer delta bases are
/// cached, permanently, and large buffers are returned to the system.
pub(crate) fn write_files(
    plan: &CheckoutPlan,
    objects: &Store,
    context: &CheckoutContext<'_>,
    options: &checkout::Options,
) -> checkout::Outcome {
    if plan.write.len() >= MANY_FILES {
        objects.lower_base_cache(BASE_CACHE_BYTES);
        pronto_io::memory::return_large_buffers();
    }
    checkout::run(plan, context, options)
}

/// Writes all files of `commit` (a commit or a tree) into the worktree, which is empty, and writes
/// the index. Refs are neither read nor changed.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if a tree is missing or unsafe, with [`ErrorKind::Interrupted`]
/// if the operation is interrupted, and with [`ErrorKind::Io`] if the index cannot be written. The
/// index is unchanged then. Files that cannot be written are no error: see [`Outcome::failed`].
pub fn checkout_tree(
    repository: &Repository,
    objects: &Store,
    commit: ObjectId,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    support::require(repository, Operation::CheckOutTree)?;
    let path = repository.require_work_tree()?;
    let top = Directory::open(path).context(ErrorKind::Io, "cannot open", path)?;
    let mut settings = repository.filter_settings()?;
    settings.ref_name.clone_from(&options.ref_name);
    settings.treeish = Some(commit);
    let lock = index::lock(repository)?;
    let tree = tree_of(objects, commit)?;
    let sparse = repository.sparse_checkout()?;
    let mut unpacked = unpack::all(tree, objects, repository.protection()?, sparse.as_ref())
        .map_err(from_worktree)?;
    let written = unpacked.changes.iter().filter_map(|change| {
        let entry = change.entry.as_ref()?;
        Some((change.path.as_bstr(), entry.id))
    });
    let source = FromIndex {
        blobs: FromIndex::<Store>::find(written),
        objects: objects.clone(),
        worktree: None,
    };
    let attributes = Attributes::new(
        &ATTRIBUTES,
        &repository.attribute_files()?,
        Box::new(source),
    )
    .map_err(from_worktree)?;
    let context = CheckoutContext {
        top: &top,
        objects,
        attributes: &attributes,
        settings: &settings,
        progress: watch.progress(),
        interrupt: watch.interrupt(),
    };
    repository.check_parallel_checkout()?;
    if !unpacked.plan.write.is_empty() {
        settings.check_drivers().map_err(from_worktree)?;
    }
    let mut options = repository.checkout_options()?;
    options.obstructions = Obstructions::Collide;
    let mut outcome = write_files(&unpacked.plan, objects, &context, &options);
    if outcome.interrupted {
        return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
    }
    unpacked.record(&outcome);
    if repository.ignores_case()? {
        let collided = &mut outcome.collided;
        collided.sort_by_cached_key(|path| path.to_ascii_lowercase());
    }
    let empty = Index::empty(repository.object_hash());
    let mut content = IndexContent::new(repository.object_hash(), unpacked.entries(&empty));
    content.tree = unpacked.cached_tree.as_ref().map(Cow::Borrowed);
    let entries = content.entries.len();
    let writer = index::writer(repository)?;
    let bytes = index::encode(repository, &writer, content, sparse.as_ref())?;
    lock.commit(&bytes).map_err(from_index)?;
    Ok(Outcome {
        entries,
        failed: outcome.failed,
        collided: outcome.collided,
        warnings: outcome.warnings,
    })
}

/// Returns the id of the tree of a commit, or of the tree itself.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if the object is missing, cannot be read, or is of another
/// type.
pub fn tree_of(objects: &Store, id: ObjectId) -> Result<ObjectId> {
    let mut buffer = Vec::new();
    let found = objects.find(&id, &mut buffer).map_err(from_odb)?;
    match found {
        Some(Kind::Tree) => Ok(id),
        Some(Kind::Commit) => CommitRefIter::from_bytes(&buffer, id.kind())
            .tree_id()
            .map_err(|error| {
                let message = format!("bad commit {id}");
                Error::new(ErrorKind::Corrupt, message).because(error.to_string())
            }),
        Some(kind) => {
            let message = format!("object {id} is a {kind}, not a commit");
            Err(Error::new(ErrorKind::Object, message))
        }
        None if id.is_empty_tree() => Ok(id),
        None => Err(Error::new(
            ErrorKind::MissingObject,
            format!("unable to read tree ({id})"),
        )),
    }
}
