//! Combines the parts of a status.

use super::combine::StatusMerge;
use super::contents::RenameContents;
use super::conversion::Converter;
use super::monitor::{self, MonitorAnswer};
use super::settings::walk_options;
use super::state::{Reader, sparse_checkout};
use super::submodules::SubmoduleInspector;
use super::tree::tree_of;
use super::untracked_cache::{self, CacheUpdate, PreparedCache};
use super::untracked_list::{self, PendingList, UntrackedState};
use super::{Entry, IgnoreSubmodules, Options, Report, Untracked, quick, write_back};
use crate::errors::{from_index, from_worktree};
use crate::refs::HeadValue;
use crate::tree_objects::read_tree;
use crate::{ErrorKind, Repository, Result, ignores};
use bstr::BStr;
use pronto_diff::{Difference, DifferenceSide, renames};
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedTree, Index, IndexOutline, mode};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_worktree::diff::{IntentToAdd, cached_trees, tree_and_index};
use pronto_worktree::status::{DirectoryNews, OnStatusPath, Outcome, Remembered, StatusJob};
use std::path::Path;

pub(super) fn collect(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
    on_path: Option<&OnStatusPath<'_>>,
) -> Result<Report> {
    let work_tree = repository.require_work_tree()?;
    let path = repository.index_path();
    let outline = open_outline(repository, &path)?;
    let store = repository.objects()?;
    let asked = monitor::ask(repository, &outline, options)?;
    let read = |_| untracked_list::read(repository, &outline, options);
    let stored = asked.as_ref().map(read).transpose()?.flatten();
    let mut listed = None;
    if let Some(asked) = &asked {
        let load = |stored| load_list(repository, stored, &outline, asked, options);
        listed = stored.as_ref().map(load).transpose()?;
        let list = listed.as_ref();
        if let Some(report) = quick::report(repository, &outline, store, asked, list, options)? {
            return Ok(report);
        }
    }
    let index = read_index(repository, outline, &path)?;
    let head = options.head(repository)?;
    let converter = Converter::new(repository, store);
    let root =
        Directory::open(work_tree).context(ErrorKind::Io, "could not open directory", work_tree)?;
    let located = asked.map(|asked| asked.locate(&index));
    let parts = StatusInputs {
        repository,
        options,
        store,
        root: &root,
        converter: &converter,
    };
    let mut walked = parts.walk(&index, located.as_ref(), listed, watch, on_path)?;
    let outcome = walked.outcome;
    pronto_io::data!("status", "lstat", outcome.stat_count);
    pronto_io::data!("status", "opendir", outcome.open_count);
    let staged = staged(&index, store, root_of(repository, store, &head)?, options)?;
    let mut state = read_state(&Reader { repository, store }, &head, options)?;
    if options.state {
        state.sparse_checkout = sparse_checkout(repository, &index, outcome.present_sparse)?;
    }
    if options.write_back {
        let news = write_back::UnwrittenResults {
            refreshed: &outcome.refreshed,
            is_complete: options.pathspec.is_empty(),
            racy_count: (outcome.stat_count == index.len()).then_some(outcome.racy_count),
            trees: staged.trees,
            untracked: walked.untracked,
            monitor: located.as_ref().map(|it| (it, &outcome.verified[..])),
        };
        write_back::write_back(repository, &index, options.settle, news)?;
        if let Some(list) = walked.list.take() {
            list.next.write(&index, &list.remembered, list.news);
        }
    }
    let entries = parts.entries(&index, &outcome, staged.differences)?;
    index.intact().map_err(from_index)?;
    Ok(Report {
        head,
        entries,
        untracked: outcome.untracked,
        ignored: outcome.ignored,
        state,
        has_foreign_cache: walked.has_foreign_cache,
        problems: outcome.problems,
    })
}

fn open_outline(repository: &Repository, path: &Path) -> Result<IndexOutline> {
    let opened = IndexOutline::open(path, repository.object_hash());
    opened.map_err(|error| repository.index_error(error))
}

/// Returns the tree of `head`, if it has one.
fn root_of(repository: &Repository, store: &Store, head: &HeadValue) -> Result<Option<ObjectId>> {
    let id = head.id();
    id.map(|id| tree_of(repository, store, id)).transpose()
}

/// Returns the operation in progress, if the options request it.
fn read_state(
    reader: &Reader<'_>,
    head: &HeadValue,
    options: &Options,
) -> Result<super::OperationInProgress> {
    if !options.state {
        return Ok(super::OperationInProgress::default());
    }
    let detached = head
        .id()
        .filter(|_| matches!(head, HeadValue::Detached { .. }));
    reader.read(detached, options.detached_from)
}

/// The result of comparing the index with the files.
struct WorktreeResult<'a> {
    outcome: Outcome,
    untracked: CacheUpdate<'a>,
    /// Whether the index has an untracked cache of another worktree path or system.
    has_foreign_cache: bool,
    list: Option<NewList<'a>>,
}

/// The parts of a new list of all untracked files.
struct NewList<'a> {
    next: PendingList,
    remembered: Remembered<'a>,
    news: Vec<DirectoryNews>,
}

/// Returns the stored list of untracked files, updated with the changes that the monitor reported.
fn load_list<'a>(
    repository: &Repository,
    stored: &'a untracked_list::ListFile,
    outline: &IndexOutline,
    asked: &monitor::UnmatchedAnswer,
    options: &Options,
) -> Result<UntrackedState<'a>> {
    let excludes = ignores::exclude_contents(repository)?;
    stored.load(repository, outline, asked, &excludes, options)
}

fn read_index(repository: &Repository, outline: IndexOutline, path: &Path) -> Result<Index> {
    let index = match outline.is_split() {
        true => return repository.sparse_index(),
        false => Index::of(outline).map_err(|error| error.at_path(path)),
    };
    let index = index.map_err(from_index)?;
    // Existing files of a sparse directory entry count, so the directory is examined.
    let is_odd = index.is_sparse() && !repository.wants_sparse_index()?;
    if is_odd || repository.has_present_directory(&index)? {
        return repository.expand_index(index);
    }
    Ok(index)
}

/// The parts of a repository that a status compares, apart from the index.
struct StatusInputs<'p> {
    repository: &'p Repository,
    options: &'p Options,
    store: &'p Store,
    root: &'p Directory,
    converter: &'p Converter<'p>,
}

impl StatusInputs<'_> {
    /// Returns the entries of the report.
    fn entries(
        &self,
        index: &Index,
        outcome: &Outcome,
        staged: Vec<Difference>,
    ) -> Result<Vec<Entry>> {
        let mut entries = StatusMerge::new(index);
        let contents = RenameContents {
            store: self.store,
            root: self.root,
            converter: self.converter,
        };
        entries.add_worktree(outcome, self.options, &contents);
        entries.add_staged(staged);
        self.converter.finish()?;
        Ok(entries.entries.into_values().collect())
    }

    /// Compares the files with the index.
    fn walk<'a>(
        &self,
        index: &'a Index,
        located: Option<&MonitorAnswer>,
        listed: Option<UntrackedState<'a>>,
        watch: &Watch<'_>,
        on_path: Option<&OnStatusPath<'_>>,
    ) -> Result<WorktreeResult<'a>> {
        let (repository, options) = (self.repository, self.options);
        let _region = pronto_io::region!("status", "worktrees");
        let work_tree = repository.require_work_tree()?;
        let excludes = ignores::exclude_contents(repository)?;
        let mut cache = untracked_cache::prepare(repository, index.outline(), options, &excludes)?;
        let patterns = excludes.into_patterns(repository)?;
        let read = |directory: &BStr| {
            ignores::read_ignore_file(self.root, b".gitignore", index, Some(self.store), directory)
        };
        let submodules = SubmoduleInspector::new(repository, work_tree.to_owned(), options, watch)?;
        let mut walk_options = walk_options(repository)?;
        walk_options.untracked = options.untracked;
        walk_options.ignored = options.ignored;
        let (mut remembered, mut next) = (cache.remembered.take(), None);
        if let Some(listed) = listed {
            let (known, kept) = listed.prepare(index, options.write_back);
            (remembered, next) = (Some(known), Some(kept));
        } else if let Some((located, remembered)) = located.zip(remembered.as_mut()) {
            located.apply(remembered);
        }
        let is_short = remembered.is_some() || options.untracked == Untracked::No;
        if is_short && located.is_some_and(MonitorAnswer::vouches) {
            // Only a few files remain to be examined.
            walk_options.threads = Some(1);
        }
        let job = StatusJob {
            work_tree,
            git_dir: repository.git_dir(),
            index,
            pathspec: &options.pathspec,
            patterns: &patterns,
            ignore_files: Some(&read),
            conversion: self.converter,
            submodules: &submodules,
            interrupt: watch.interrupt(),
            remembered: remembered.as_ref(),
            monitored: located.map(|located| &located.monitored),
            options: walk_options,
        };
        let mut outcome = self.converter.walk(&job, on_path)?;
        let news = std::mem::take(&mut outcome.news);
        let (own, list) = match (next, remembered) {
            (Some(next), Some(remembered)) => {
                let list = NewList {
                    next,
                    remembered,
                    news,
                };
                ((None, Vec::new()), Some(list))
            }
            (_, remembered) => ((remembered, news), None),
        };
        let (remembered, news) = own;
        let untracked =
            PreparedCache::fate(&cache, remembered, index.outline(), news, located.is_some());
        Ok(WorktreeResult {
            outcome,
            untracked,
            has_foreign_cache: cache.is_elsewhere,
            list,
        })
    }
}

/// The differences of the index from `HEAD`.
struct Staged {
    differences: Vec<Difference>,
    /// Cached trees that are more complete than those of the index, if they were requested.
    trees: Option<CachedTree>,
}

/// Compares the tree `root` of `HEAD` with the index.
fn staged(
    index: &Index,
    store: &Store,
    root: Option<ObjectId>,
    options: &Options,
) -> Result<Staged> {
    let _region = pronto_io::region!("status", "index");
    // A cached root tree that covers all entries makes a look at the subtrees unnecessary.
    let is_whole = |root: ObjectId| index.outline().root_tree() == Some((root, index.len()));
    if !index.is_expanded() && root.is_some_and(is_whole) {
        return Ok(Staged {
            differences: Vec::new(),
            trees: None,
        });
    }
    let cached = index.cached_tree();
    let mut read = |id: &oid, content: &mut Vec<u8>| read_tree(store, id, content);
    let found = tree_and_index(
        root.as_deref(),
        index,
        cached.as_ref(),
        &options.pathspec,
        IntentToAdd::Absent,
        &mut read,
    )
    .map_err(from_worktree)?;
    let repairs = options.write_back && found.is_cache_stale;
    let trees = match root.filter(|_| repairs) {
        Some(root) => {
            let trees = cached_trees(&root, index, cached.as_ref(), &mut read);
            let trees = trees.map_err(from_worktree)?;
            let before = cached.as_ref().map_or(0, CachedTree::known_count);
            Some(trees).filter(|trees| trees.known_count() > before)
        }
        None => None,
    };
    let mut differences = found.differences;
    if options.ignore_submodules == Some(IgnoreSubmodules::All) {
        let is_link =
            |side: &Option<DifferenceSide>| side.is_none_or(|side| side.mode == mode::GITLINK);
        differences.retain(|one| one.unmerged || !is_link(&one.old) || !is_link(&one.new));
    }
    if let Some(renames) = options.renames.filter(|_| root.is_some()) {
        let mut content = |_: &BStr, side: &DifferenceSide| {
            let mut content = Vec::new();
            matches!(store.find(&side.id, &mut content), Ok(Some(_))).then_some(content)
        };
        differences = renames::detect(differences, renames, &mut content);
    }
    Ok(Staged { differences, trees })
}
