//! Restores paths from the index or a tree: `git checkout -- <path>` and `git restore`.

mod path_error;

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use pronto_index::{Entry, EntryRef, Flags, Index, IndexLock, Stat, mode};
use pronto_io::watch::Watch;
use pronto_worktree::checkout::{
    CheckoutFailure, CheckoutItem, CheckoutPlan, CheckoutWarning, Outcome, PathRemoval,
};
use pronto_worktree::pathspec::{DirectoryRelation, Pathspec};
use pronto_worktree::unpack::{self, ContentChecker, TreeFile};

use crate::add::{self, StagedIndex as Staging};
use crate::checkout_index::writes_attributes;
use crate::errors::{from_index, from_worktree};
use crate::merge::{ConflictStyle, Remaking};
use crate::session::WorktreeSession;
use crate::support::{self, Operation};
use crate::switch::{self, StartPoint};
use crate::{Repository, Result};

pub use path_error::PathError;

/// A side of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictSide {
    /// Our side, the one of `HEAD` (`--ours`).
    Ours,
    /// Their side, the one that was merged (`--theirs`).
    Theirs,
}

impl ConflictSide {
    fn number(self) -> u8 {
        match self {
            ConflictSide::Ours => 2,
            ConflictSide::Theirs => 3,
        }
    }
}

/// Options of `git restore` and of `git checkout -- <path>`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The tree to restore from (`--source`); `None` for the index.
    pub source: Option<StartPoint>,
    /// The paths to restore.
    pub pathspec: Pathspec,
    /// Keep tracked paths that the tree lacks (`--overlay`).
    pub overlay: bool,
    /// The side to restore for unmerged paths (`--ours`, `--theirs`).
    pub stage: Option<ConflictSide>,
    /// Merge unmerged paths again, and write conflicts in this style (`--merge`, `--conflict`).
    pub merge: Option<ConflictStyle>,
    /// Skip unmerged paths instead of failing (`--ignore-unmerged`, `--force`).
    pub ignore_unmerged: bool,
    /// Restore the index (`--staged`).
    pub index: bool,
    /// Restore the worktree (`--worktree`).
    pub worktree: bool,
    /// Include paths with the skip-worktree bit (`--ignore-skip-worktree-bits`).
    pub ignore_skip_worktree: bool,
}

impl Options {
    /// Returns the options of `git restore`: files that `pathspec` matches are restored from the index.
    pub fn new(pathspec: Pathspec) -> Self {
        Options {
            source: None,
            pathspec,
            overlay: false,
            stage: None,
            merge: None,
            ignore_unmerged: false,
            index: false,
            worktree: true,
            ignore_skip_worktree: false,
        }
    }
}

/// The result of a checkout of paths.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The errors because of which nothing was restored.
    pub errors: Vec<PathError>,
    /// The number of written files.
    pub updated: usize,
    /// The number of files in which a conflict was recreated.
    pub recreated: usize,
    /// The files that could not be written.
    pub failed: Vec<CheckoutFailure>,
    /// The unmerged paths that were skipped.
    pub unmerged: Vec<BString>,
    /// Warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
    /// The exit code of the hook `post-checkout`, if it ran.
    pub hook: Option<i32>,
}

/// Restores the paths.
///
/// # Errors
/// Fails if files of the repository cannot be read or written, or an object is missing. Refusals of
/// Git are in [`Report::errors`].
pub fn checkout_paths(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Report> {
    support::require(repository, Operation::CheckoutFiles)?;
    let read = || {
        repository.index_near(&mut |directory| {
            let directory = directory.strip_suffix(b"/").unwrap_or(directory);
            options.pathspec.directory(directory.as_bstr()) != DirectoryRelation::Outside
        })
    };
    let (mut prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let lock = lock?;
    if let Some(source) = &options.source {
        let treeish = source.commit.unwrap_or(source.tree);
        prepared.write_as_of(source.reference.as_ref(), Some(treeish));
    }
    let mut work = CheckoutRun::new(options, &prepared.index);
    if let Some(source) = &options.source {
        work.read_tree(source, &prepared)?;
    }
    let remaking = match options.merge {
        Some(style) => Some(Remaking::new(&prepared, style)?),
        None => None,
    };
    work.collect_index(remaking.as_ref())?;
    work.report_unmatched();
    if !work.report.errors.is_empty() {
        return Ok(work.report);
    }
    if options.worktree {
        work.skip_unchanged(&prepared, watch)?;
    }
    let mut report = work.write(&prepared, lock, watch)?;
    let head = repository.head()?.id();
    report.hook = switch::run_post_checkout_hook(repository, head, head, false)?;
    Ok(report)
}

/// A path to restore.
struct RestoredPath {
    path: BString,
    side: TreeFile,
    /// The position of the path's entry in the index, if the entry is kept.
    position: Option<usize>,
    /// Whether the index had an entry of the path.
    tracked: bool,
    /// Whether the index gets a new entry.
    restage: bool,
}

struct CheckoutRun<'a> {
    options: &'a Options,
    index: &'a Index,
    /// The entries of the source tree, by path.
    in_tree: HashMap<BString, TreeFile>,
    seen: Vec<bool>,
    targets: Vec<RestoredPath>,
    remove: Vec<BString>,
    /// The unmerged paths that are removed from the index, while the files in the worktree stay.
    forget: Vec<BString>,
    /// Conflicts that were recreated.
    recreated: Vec<BString>,
    report: Report,
}

impl<'a> CheckoutRun<'a> {
    fn new(options: &'a Options, index: &'a Index) -> Self {
        CheckoutRun {
            options,
            index,
            in_tree: HashMap::new(),
            seen: vec![false; options.pathspec.len()],
            targets: Vec::new(),
            remove: Vec::new(),
            forget: Vec::new(),
            recreated: Vec::new(),
            report: Report::default(),
        }
    }

    fn read_tree(&mut self, source: &StartPoint, prepared: &WorktreeSession<'_>) -> Result<()> {
        let protect = prepared.repository.protection()?;
        let pathspec = &self.options.pathspec;
        let mut enter = |path: &bstr::BStr| pathspec.directory(path) != DirectoryRelation::Outside;
        let mut found = Vec::new();
        unpack::files(
            source.tree,
            prepared.objects,
            protect,
            &mut enter,
            &mut |path, side| {
                if pathspec.matches(path, false) {
                    found.push((path.to_owned(), side));
                }
            },
        )
        .map_err(from_worktree)?;
        for (path, side) in found {
            let position = self.index.find(path.as_bstr(), 0).ok();
            let entry = position.map(|position| self.index.entry(position));
            let same = entry.is_some_and(|entry| {
                *entry.id == *side.id
                    && entry.mode == side.mode
                    && !entry.flags.contains(Flags::INTENT_TO_ADD)
            });
            // The new entry inherits the skip-worktree bit.
            let skipped =
                same && entry.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
            self.in_tree.insert(path.clone(), side);
            // A changed entry loses its skip-worktree bit.
            if skipped && same && !self.options.ignore_skip_worktree {
                continue;
            }
            pathspec.mark(path.as_bstr(), &mut self.seen);
            self.targets.push(RestoredPath {
                tracked: !self.index.stages(path.as_bstr()).is_empty(),
                path,
                side,
                position: position.filter(|_| same),
                restage: !same,
            });
        }
        Ok(())
    }

    /// Adds the index entries of the paths that the tree lacks.
    fn collect_index(&mut self, remaking: Option<&Remaking<'_>>) -> Result<()> {
        let (options, index) = (self.options, self.index);
        let mut at = 0;
        while at < index.len() {
            let entry = index.entry(at);
            let stages = at..at + index.stages(entry.path).len().max(1);
            at = stages.end;
            let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
            if (skipped && !options.ignore_skip_worktree)
                || self.in_tree.contains_key(entry.path)
                || (options.source.is_some() && options.overlay)
            {
                continue;
            }
            // As in Git, an excluded path counts as a match of a pathspec.
            options.pathspec.mark(entry.path, &mut self.seen);
            if !options.pathspec.matches(entry.path, entry.is_submodule()) {
                continue;
            }
            if options.source.is_some() {
                let path = entry.path.to_owned();
                match (entry.stage(), options.ignore_unmerged, options.stage) {
                    (0, ..) | (_, false, Some(_)) => {}
                    (_, true, _) => {
                        self.report.unmerged.push(path.clone());
                        self.forget.push(path);
                        continue;
                    }
                    (_, false, None) => {
                        let error = PathError::Unmerged(path.clone());
                        self.report.errors.push(error);
                    }
                }
                self.remove.push(path);
            } else if entry.stage() == 0 {
                self.targets.push(RestoredPath {
                    path: entry.path.to_owned(),
                    side: side_of(&entry),
                    position: Some(stages.start),
                    tracked: true,
                    restage: false,
                });
            } else {
                self.unmerged(stages, remaking)?;
            }
        }
        self.targets.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(())
    }

    fn unmerged(
        &mut self,
        stages: std::ops::Range<usize>,
        remaking: Option<&Remaking<'_>>,
    ) -> Result<()> {
        let path = self.index.path(stages.start).to_owned();
        if self.options.ignore_unmerged {
            self.report.unmerged.push(path);
            return Ok(());
        }
        if let Some(remaking) = remaking {
            match remaking.remake(self.index, path.as_bstr())? {
                Some(side) => {
                    self.recreated.push(path.clone());
                    self.targets.push(RestoredPath {
                        path,
                        side,
                        position: None,
                        tracked: true,
                        restage: false,
                    });
                }
                None => {
                    let error = PathError::IncompleteConflict(path);
                    self.report.errors.push(error);
                }
            }
            return Ok(());
        }
        let Some(stage) = self.options.stage else {
            self.report.errors.push(PathError::Unmerged(path));
            return Ok(());
        };
        let mut entries = stages.map(|at| self.index.entry(at));
        match entries.find(|entry| entry.stage() == stage.number()) {
            Some(entry) => self.targets.push(RestoredPath {
                path,
                side: side_of(&entry),
                position: None,
                tracked: true,
                restage: false,
            }),
            None if self.options.overlay => {
                let error = PathError::MissingStage { path, stage };
                self.report.errors.push(error);
            }
            None => self.remove.push(path),
        }
        Ok(())
    }

    fn report_unmatched(&mut self) {
        let unmatched = self.seen.iter().enumerate().filter(|(_, seen)| !**seen);
        let unmatched: Vec<PathError> = unmatched
            .map(|(at, _)| PathError::Unmatched(self.options.pathspec.original(at).into()))
            .collect();
        if !unmatched.is_empty() {
            self.report.errors = unmatched;
        }
    }

    /// Skips files whose stat data match the index.
    fn skip_unchanged(&mut self, prepared: &WorktreeSession<'_>, watch: &Watch<'_>) -> Result<()> {
        let index = self.index;
        let unchanged: Vec<bool> = prepared.with_worktree_view(watch, |worktree_view| {
            let mut checker = ContentChecker::new(worktree_view);
            self.targets
                .iter()
                .map(|target| match target.position {
                    Some(position) => checker
                        .has_facts_of(&index.entry(position))
                        .map_err(from_worktree),
                    None => Ok(false),
                })
                .collect()
        })?;
        let mut unchanged = unchanged.into_iter();
        self.targets.retain(|_| !unchanged.next().unwrap_or(false));
        Ok(())
    }

    fn plan(&self) -> CheckoutPlan {
        if !self.options.worktree {
            return CheckoutPlan::default();
        }
        let removals = self.remove.iter().map(|path| {
            let position = self.index.stages(path.as_bstr()).start;
            PathRemoval {
                path: path.clone(),
                gitlink: self.index.entry(position).mode == mode::GITLINK,
            }
        });
        let items = self.targets.iter().map(|target| CheckoutItem {
            path: target.path.clone(),
            id: target.side.id,
            mode: target.side.mode,
            replaces: target.tracked,
        });
        CheckoutPlan {
            remove: removals.collect(),
            write: items.collect(),
        }
    }

    /// Writes the files in the worktree, if they are restored.
    fn write_worktree(&self, prepared: &WorktreeSession<'_>, watch: &Watch<'_>) -> Result<Outcome> {
        if !self.options.worktree {
            return Ok(Outcome::default());
        }
        let plan = self.plan();
        if !writes_attributes(&plan) {
            return prepared.write_as_they_are(&plan, watch);
        }
        // If the checkout writes `.gitattributes` files, the attributes come from the new index.
        let news = self.targets.iter().filter(|target| target.restage);
        let news: Vec<Entry> = news
            .map(|target| entry_of(target, Stat::default()))
            .collect();
        let entries = self.index.iter().chain(news.iter().map(Entry::as_ref));
        prepared.write_files(&plan, entries, watch)
    }

    fn write(
        self,
        prepared: &WorktreeSession<'_>,
        lock: IndexLock,
        watch: &Watch<'_>,
    ) -> Result<Report> {
        let outcome = self.write_worktree(prepared, watch)?;
        let CheckoutRun {
            options,
            targets,
            remove,
            forget,
            recreated,
            mut report,
            ..
        } = self;
        let mut written = outcome.written.iter().zip(&targets);
        let done = written.by_ref().filter(|(written, _)| written.is_some());
        let (anew, plain): (Vec<_>, Vec<_>) =
            done.partition(|(_, target)| recreated.contains(&target.path));
        (report.updated, report.recreated) = (plain.len(), anew.len());
        report.failed = outcome.failed;
        report.warnings.extend(outcome.warnings);
        if !options.index && options.source.is_some() {
            return Ok(report);
        }
        let plain = add::Options::default();
        let mut stage = Staging::new(prepared, prepared.repository, &plain)?;
        for (at, target) in targets.iter().enumerate() {
            let written = outcome.written.get(at).copied().flatten();
            match (target.restage, target.position, written) {
                (true, ..) if options.index => {
                    let mut entry = entry_of(target, written.unwrap_or_default());
                    if written.is_some() {
                        entry.flags = entry.flags.with(Flags::UP_TO_DATE);
                    }
                    stage.replace(entry);
                }
                (false, Some(position), Some(stat)) => {
                    let flags = prepared.index.entry(position).flags;
                    let flags = flags.with(Flags::UP_TO_DATE);
                    stage.edit_mut().refresh(position, stat, flags);
                }
                _ => {}
            }
        }
        if options.index {
            leave(&mut stage, &remove, &forget);
        }
        let edit = stage.into_edit()?;
        if edit.is_empty() {
            return Ok(report);
        }
        let bytes = prepared.encode(edit.content(), watch)?;
        drop(edit);
        lock.commit(&bytes).map_err(from_index)?;
        Ok(report)
    }
}

/// Removes paths from the index. As in Git, conflicts at the paths in `forget` are not recorded, so
/// that `update-index --unresolve` does not restore them.
fn leave(stage: &mut Staging<'_>, remove: &[BString], forget: &[BString]) {
    for path in remove {
        stage.remove_path(path.as_bstr());
    }
    for path in forget {
        for number in 1..4 {
            stage.edit_mut().remove(path.as_bstr(), number);
        }
    }
}

fn side_of(entry: &EntryRef<'_>) -> TreeFile {
    TreeFile {
        id: entry.id.to_owned(),
        mode: entry.mode,
    }
}

fn entry_of(target: &RestoredPath, stat: Stat) -> Entry {
    Entry {
        path: target.path.clone(),
        id: target.side.id,
        mode: target.side.mode,
        flags: Flags::default(),
        stat,
    }
}
