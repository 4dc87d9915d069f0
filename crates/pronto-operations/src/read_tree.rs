//! Reads trees into the index, and on request into the worktree: `git read-tree`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{
    CachedTree, Entry, EntryRef, Flags, Index, IndexContent, IndexLock, Splitting, Stat, Writer,
};
use pronto_io::watch::Watch;
use pronto_worktree::checkout;
use pronto_worktree::sparse::Sparse;
use pronto_worktree::unpack::merge::{MergeDecision, MergeRule, MergedIndex, Request, bind, merge};
use pronto_worktree::unpack::{self, Refusals, TreeFile};

use crate::errors::{from_index, from_worktree};
use crate::session::WorktreeSession;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, index, sparse_checkout};

/// The mode of combining the trees with the current index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Replace the index.
    #[default]
    Replace,
    /// Merge the index with the trees (`-m`).
    Merge,
    /// Merge the index with the trees, and discard local changes and unmerged entries (`--reset`).
    Reset,
    /// Keep the index, and add one tree below this directory, which is empty or ends with a slash
    /// (`--prefix`).
    Prefix(BString),
}

/// Options of `git read-tree`. The default is the command without options.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The mode of combining the trees with the current index.
    pub mode: Mode,
    /// Merge three trees only if no file-level merge is needed (`--trivial`).
    pub trivial: bool,
    /// In a merge of three trees, also resolve removals and identical additions (`--aggressive`).
    pub aggressive: bool,
    /// Update the worktree, too (`-u`).
    pub update: bool,
    /// Do not compare files with the index (`-i`).
    pub index_only: bool,
    /// Write neither the index nor files (`--dry-run`).
    pub dry_run: bool,
    /// Ignore the patterns of a sparse checkout (`--no-sparse-checkout`).
    pub ignore_sparse: bool,
    /// The file to which the new index is written (`--index-output`).
    pub output: Option<PathBuf>,
}

/// The result of `read-tree`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadTrees {
    /// The trees were read. Contains the result of updating the worktree.
    Done(checkout::Outcome),
    /// Local changes would be lost, so that nothing was changed.
    Refused(Refusals),
    /// The merge needs file-level merges, which `trivial` forbids. Nothing was changed.
    NeedsFileMerge,
    /// The index has unmerged entries, so that nothing was changed.
    Unmerged,
}

/// Reads `trees` into the index.
///
/// # Errors
/// Fails with [`Unsupported`](ErrorKind::Unsupported) for more than three trees, and if a file and
/// a directory of different trees have the same path. Fails with other kinds if the index cannot be
/// read, locked or written, a tree cannot be read, or a required worktree is missing.
pub fn read_trees(
    repository: &Repository,
    trees: &[ObjectId],
    options: &Options,
    watch: &Watch<'_>,
) -> Result<ReadTrees> {
    support::require(repository, Operation::ReadTree)?;
    if options.mode == Mode::Replace {
        return replace_index(repository, trees, options);
    }
    let (prepared, lock) = WorktreeSession::new(repository)?;
    let sparse = options.patterns(&prepared);
    let is_elsewhere = matches!(options.mode, Mode::Prefix(_)) || options.output.is_some();
    if sparse.is_some() && is_elsewhere {
        return unsupported("'read-tree' with a prefix or another index file in a sparse checkout");
    }
    let index = &prepared.index;
    let has_conflicts = index.iter().any(|entry| entry.stage() != 0);
    if has_conflicts && options.mode != Mode::Reset {
        return Ok(ReadTrees::Unmerged);
    }
    let decision = decide(&prepared, trees, options, watch)?;
    let mut merged = match decision {
        MergeDecision::Plan(merged) => merged,
        MergeDecision::Refused(refusals) => return Ok(ReadTrees::Refused(refusals)),
    };
    if options.trivial && merged.has_conflicts {
        return Ok(ReadTrees::NeedsFileMerge);
    }
    if options.dry_run {
        return Ok(ReadTrees::Done(checkout::Outcome::default()));
    }
    let entries = merged.entries(index);
    let mut outcome = match options.update {
        true => prepared.write_files(&merged.plan, entries, watch)?,
        false => checkout::Outcome::default(),
    };
    if outcome.failed.is_empty() {
        merged.record(&outcome);
        let writer = tree_writer(repository, options)?;
        let bytes = encode(&prepared, &merged, &writer, watch)?;
        commit(lock, &bytes, options)?;
        if sparse.is_some_and(|sparse| !follows(&merged.entries(index), sparse)) {
            follow_patterns(repository, &mut outcome, watch)?;
        }
    }
    Ok(ReadTrees::Done(outcome))
}

/// Applies the sparse-checkout patterns to the entries that no tree has changed, too.
fn follow_patterns(
    repository: &Repository,
    outcome: &mut checkout::Outcome,
    watch: &Watch<'_>,
) -> Result<()> {
    let applied = sparse_checkout::reapply(repository, watch)?;
    let left = applied.leftover;
    let kept = left.modified.into_iter();
    let met = left.obstructed.into_iter();
    let kept = kept.map(|path| checkout::CheckoutWarning::NotUpToDate { path });
    let met = met.map(|path| checkout::CheckoutWarning::AlreadyPresent { path });
    outcome.warnings.extend(kept.chain(met));
    outcome.warnings.extend(applied.warnings);
    outcome.failed.extend(applied.failed);
    Ok(())
}

/// Replaces the index by the entries of the trees. Entries of later trees override those of earlier
/// trees.
fn replace_index(
    repository: &Repository,
    trees: &[ObjectId],
    options: &Options,
) -> Result<ReadTrees> {
    let lock = index::lock(repository)?;
    let (entries, cached) = overlay(repository, trees)?;
    if !options.dry_run {
        let kind = repository.object_hash();
        let mut content = IndexContent::new(kind, entries.iter().map(Entry::as_ref));
        content.tree = cached.as_ref().map(Cow::Borrowed);
        let bytes = index::encode(
            repository,
            &tree_writer(repository, options)?,
            content,
            None,
        )?;
        commit(lock, &bytes, options)?;
    }
    Ok(ReadTrees::Done(checkout::Outcome::default()))
}

/// Returns the index writer. The file of `--index-output` is never a split index.
fn tree_writer(repository: &Repository, options: &Options) -> Result<Writer> {
    let mut writer = index::writer(repository)?;
    if options.output.is_some() {
        writer.splitting = Splitting::Join;
    }
    Ok(writer)
}

fn overlay(
    repository: &Repository,
    trees: &[ObjectId],
) -> Result<(Vec<Entry>, Option<CachedTree>)> {
    let (store, protect) = (repository.objects()?, repository.protection()?);
    if let [tree] = trees {
        let all = unpack::all(*tree, store, protect, None).map_err(from_worktree)?;
        let entries = all.changes.into_iter().filter_map(|change| change.entry);
        return Ok((entries.collect(), all.cached_tree));
    }
    let mut paths: BTreeMap<BString, TreeFile> = BTreeMap::new();
    for tree in trees {
        unpack::files(*tree, store, protect, &mut |_| true, &mut |path, side| {
            paths.insert(path.to_owned(), side);
        })
        .map_err(from_worktree)?;
    }
    let is_above = |path: &BString| {
        let mut ends = path.find_iter("/");
        ends.any(|end| paths.contains_key(path[..end].as_bstr()))
    };
    if paths.keys().any(is_above) {
        return unsupported("merging trees with a directory/file conflict");
    }
    let entry = |(path, side): (&BString, &TreeFile)| Entry {
        path: path.clone(),
        id: side.id,
        mode: side.mode,
        flags: Flags::default(),
        stat: Stat::default(),
    };
    let empty = ObjectId::empty_tree(repository.object_hash());
    let cached = paths
        .is_empty()
        .then(|| CachedTree::builder(empty).finish());
    Ok((paths.iter().map(entry).collect(), cached))
}

impl Options {
    /// Returns the sparse-checkout patterns to apply to the worktree.
    fn patterns<'p>(&self, prepared: &'p WorktreeSession<'_>) -> Option<&'p Sparse> {
        let sparse = prepared.sparse.as_ref();
        sparse.filter(|_| self.update && !self.ignore_sparse)
    }
}

/// Whether the skip-worktree bits of `entries` match the patterns.
fn follows(entries: &[EntryRef<'_>], sparse: &Sparse) -> bool {
    let mut matcher = sparse.matcher();
    entries.iter().all(|entry| {
        let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
        entry.stage() != 0 || matcher.includes(entry.path) != skipped
    })
}

fn unsupported<T>(what: &str) -> Result<T> {
    let message = format!("{what} is not implemented natively");
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Merges the trees and the index without writing anything.
pub(crate) fn decide(
    prepared: &WorktreeSession<'_>,
    trees: &[ObjectId],
    options: &Options,
    watch: &Watch<'_>,
) -> Result<MergeDecision> {
    let initial = prepared.index.identity().is_none();
    let aggressive = options.aggressive;
    let rule = match (trees.len(), &options.mode) {
        (1, _) => MergeRule::One,
        (_, Mode::Prefix(_)) => return unsupported("'read-tree --prefix' with several trees"),
        (2, _) => MergeRule::Two { initial },
        (3, _) => MergeRule::Three { aggressive },
        _ => return unsupported("merging this number of trees"),
    };
    let request = Request {
        trees,
        rule,
        reset: options.mode == Mode::Reset,
        update: options.update,
        look: !options.index_only,
    };
    prepared.with_untracked(false, |is_expendable| {
        prepared.with_worktree_view(watch, |worktree_view| {
            let mut worktree_view = *worktree_view;
            worktree_view.stat_decides = true;
            worktree_view.sparse = options.patterns(prepared);
            let decision = match &options.mode {
                Mode::Prefix(prefix) => bind(
                    trees[0],
                    prefix.as_bstr(),
                    &request,
                    &worktree_view,
                    is_expendable,
                ),
                _ => merge(&request, &worktree_view, is_expendable),
            };
            decision.map_err(|error| match error.kind() {
                pronto_worktree::ErrorKind::Unsupported => {
                    error.map_kind(|_| ErrorKind::Unsupported)
                }
                _ => from_worktree(error),
            })
        })
    })
}

/// Encodes the merged index.
pub(crate) fn encode(
    prepared: &WorktreeSession<'_>,
    merged: &MergedIndex,
    writer: &Writer,
    watch: &Watch<'_>,
) -> Result<Vec<u8>> {
    let index: &Index = &prepared.index;
    let mut content = IndexContent::new(index.kind(), merged.entries(index));
    content.version = Some(index.version()).filter(|version| *version != 0);
    content.timestamp = index.timestamp();
    content.tree = merged.cached_tree.as_ref().map(Cow::Borrowed);
    content.keep_caches(index);
    prepared.encode_with(writer, content, watch)
}

fn commit(lock: IndexLock, bytes: &[u8], options: &Options) -> Result<()> {
    let committed = match &options.output {
        Some(output) => lock.commit_to(bytes, output),
        None => lock.commit(bytes),
    };
    committed.map(|_| ()).map_err(from_index)
}
