//! Writes the index as a tree.

use bstr::{BStr, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedTree, Edit, Index, Lock};
use pronto_io::interrupt::Interrupt;
use pronto_odb::PACKED_FROM;
use pronto_worktree::trees::{self, Workshop};

use crate::errors::from_worktree;
use crate::index::{self, contains};
use crate::packs::writer_options;
use crate::session::WorktreeSession;
use crate::{Repository, Result, checkout_tree};

mod new_trees;

use new_trees::NewTrees;

/// The result of writing a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenTree {
    /// The tree.
    Tree(ObjectId),
    /// The index makes no tree, for reasons in Git's words, one a line.
    Faults(Vec<String>),
    /// An entry's object is not there: Git's words.
    Missing(String),
    /// There is no such directory.
    NoSuchDirectory,
}

/// Writes the trees that the index makes and gives the uppermost, or that of the directory
/// `prefix`. The index then knows them: it is written if it did not. Objects of entries have
/// to be there, unless `missing_ok`.
///
/// # Errors
/// The index cannot be read or is locked; a tree cannot be written.
pub fn write_tree(
    repository: &Repository,
    prefix: Option<&BStr>,
    missing_ok: bool,
    interrupt: &Interrupt,
) -> Result<WrittenTree> {
    if repository.work_tree().is_some() {
        let read = || {
            repository.index_near(&mut |directory| {
                prefix.is_some_and(|prefix| prefix.starts_with(directory) && prefix != directory)
            })
        };
        let (prepared, lock) = WorktreeSession::with_index(repository, read)?;
        let lock = lock?;
        let encode = |edit: &Edit<'_>| prepared.encode(edit.content(), interrupt);
        return write_trees(
            repository,
            (&prepared.index, lock),
            (prefix, missing_ok),
            &encode,
        );
    }
    let lock = index::lock(repository)?;
    let index = repository.sparse_index()?;
    let writer = checkout_tree::index_writer(repository)?;
    let encode = |edit: &Edit<'_>| index::encode(repository, &writer, edit.content(), None);
    write_trees(repository, (&index, lock), (prefix, missing_ok), &encode)
}

fn write_trees(
    repository: &Repository,
    (index, lock): (&Index, Lock),
    (prefix, missing_ok): (Option<&BStr>, bool),
    encode: &dyn Fn(&Edit<'_>) -> Result<Vec<u8>>,
) -> Result<WrittenTree> {
    let (id, made) = match make_trees(repository, index, (missing_ok, PACKED_FROM))? {
        Made::Known(cached, _) => return Ok(find(&cached, prefix)),
        Made::New(made, id) => (id, made),
        Made::Not(why) => return Ok(why),
    };
    let found = match prefix {
        None => WrittenTree::Tree(id),
        Some(_) => find(&made, prefix),
    };
    let mut edit = Edit::new(index);
    edit.set_cached_tree(Some(made));
    // That it cannot be written takes nothing from the tree.
    if let Ok(bytes) = encode(&edit) {
        let _ = lock.commit(&bytes);
    }
    Ok(found)
}

/// Trees of an index, and the uppermost of them.
pub(crate) enum Made {
    /// The index knew them all.
    Known(CachedTree, ObjectId),
    /// The index should know them from now on.
    New(CachedTree, ObjectId),
    /// There are none, for this reason.
    Not(WrittenTree),
}

/// Writes the trees that `index` makes, unless it knows them, as a pack if there are as many as
/// `packed_from`. Objects of entries have to be there, unless `missing_ok`.
pub(crate) fn make_trees(
    repository: &Repository,
    index: &Index,
    (missing_ok, packed_from): (bool, usize),
) -> Result<Made> {
    let store = repository.objects()?;
    // What is known to be there has to stay.
    store.begin_writing().map_err(crate::objects::from_odb)?;
    let mut contains = |id: &oid| contains(store, id);
    let cached = index.cached_tree();
    let known = trees::are_known(index, cached.as_ref(), &mut contains);
    let is_known = known.map_err(from_worktree)?;
    if let Some(cached) = cached.as_ref().filter(|_| is_known)
        && let WrittenTree::Tree(id) = find(cached, None)
    {
        return Ok(Made::Known(cached.clone(), id));
    }
    let faults = trees::faults(index);
    if !faults.is_empty() {
        return Ok(Made::Not(WrittenTree::Faults(faults)));
    }
    match new_trees(
        repository,
        index,
        cached.as_ref(),
        (missing_ok, packed_from),
    )? {
        Ok((id, made)) => Ok(Made::New(made, id)),
        Err(error) if *error.kind() == pronto_worktree::ErrorKind::MissingObject => {
            Ok(Made::Not(WrittenTree::Missing(error.message().to_owned())))
        }
        Err(error) => Err(from_worktree(error)),
    }
}

/// Writes the trees that `index`, which has no faults, makes, but for those that are `cached`.
pub(crate) fn new_trees(
    repository: &Repository,
    index: &Index,
    cached: Option<&CachedTree>,
    (missing_ok, packed_from): (bool, usize),
) -> Result<std::result::Result<(ObjectId, CachedTree), pronto_worktree::Error>> {
    let store = repository.objects()?;
    let options = writer_options(repository.config(), repository.object_hash())?;
    let mut new = NewTrees::new(store, options, packed_from);
    let mut workshop = Workshop {
        contains: &mut |id| contains(store, id),
        write: &mut |content| new.add(content).map_err(from_store),
        missing_ok,
    };
    let made = trees::make(index, cached, &mut workshop);
    if made.is_ok() {
        new.finish()?;
    }
    Ok(made)
}

/// The tree of `prefix` in `cached`, of which all is known or was made just now.
fn find(cached: &CachedTree, prefix: Option<&BStr>) -> WrittenTree {
    let names = prefix.map(|prefix| {
        let names = prefix.split_str("/").filter(|name| !name.is_empty());
        bstr::join("/", names)
    });
    let directory = cached.lookup(names.unwrap_or_default().as_bstr());
    match directory {
        None => WrittenTree::NoSuchDirectory,
        Some(directory) => WrittenTree::Tree(directory.made_id().to_owned()),
    }
}

fn from_store(error: pronto_odb::Error) -> pronto_worktree::Error {
    error.map_kind(|_| pronto_worktree::ErrorKind::Io)
}
