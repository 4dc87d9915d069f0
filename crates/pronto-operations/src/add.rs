//! Stages files: `git add`.
//!
//! One walk finds changed and new files. Several threads read, convert and hash them (`hash`), and
//! the results are entered into the index in Git's order (`stage`). The index is written last.

mod budget;
mod failure;
mod hash;
mod paths;
mod stage;

use std::io;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::Index;
use pronto_io::watch::Watch;
use pronto_worktree::filter::{self, SafeCrlf};
use pronto_worktree::ignore::Patterns;
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::sparse::Sparse;
use pronto_worktree::status::{FileChange, Outcome, StatusJob, Unconverted, Untracked, walk};

use crate::errors::from_worktree;
use crate::session::WorktreeSession;
use crate::status::{SubmoduleHeads, ignore_patterns, read_ignore_file, walk_options};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, PartialFailure, Repository, Result, attributes};

pub use failure::StagingFailure;
pub(crate) use failure::StagingStop;
pub(crate) use hash::{Hashed, Hasher, StagedPath};
pub(crate) use paths::is_beyond_link;
pub(crate) use stage::StagedIndex;

/// The files that are examined for changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddSelection {
    /// Tracked and untracked files (`--all`, or paths alone).
    #[default]
    All,
    /// Tracked files only (`-u`, `--update`).
    Tracked,
    /// All tracked files, converted again (`--renormalize`).
    Renormalize,
}

/// Options of `git add`, for [`add`](add()). The default is `git add --all` for the whole worktree: each
/// flag is off, and the pathspec matches all paths.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The paths to stage. Default: all paths. [`Repository::literal_pathspec`] takes paths, and
    /// [`Repository::pathspec`] patterns.
    pub pathspec: Pathspec,
    /// The files to examine (`--all`, `--update`, `--renormalize`). Default: [`AddSelection::All`].
    pub selection: AddSelection,
    /// Leave removed files in the index (`--ignore-removal`).
    pub ignore_removal: bool,
    /// Whether ignored files are added, too.
    pub force: bool,
    /// Record only that files will be added later, without their content (`--intent-to-add`).
    pub intent_to_add: bool,
    /// Only report changes, and leave the index unchanged (`--dry-run`).
    pub dry_run: bool,
    /// Continue after files that cannot be added (`--ignore-errors`).
    pub ignore_errors: bool,
    /// Accept pathspecs that match no file (`--ignore-missing`).
    pub ignore_missing: bool,
    /// Stage paths outside of the sparse checkout, too (`--sparse`).
    pub sparse: bool,
    /// Set or clear the executable bit of the staged files (`--chmod=+x`, `--chmod=-x`). Default: keep
    /// the bit of the file.
    pub executable: Option<bool>,
    /// Report added and removed files (`--verbose`).
    pub verbose: bool,
}

/// An event, in the order in which Git reports it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A file was added, or would be.
    Added(BString),
    /// A file was removed from the index, or would be.
    Removed(BString),
    /// The conversion of a file had a problem.
    Conversion(filter::FilterWarning),
    /// A file was not staged.
    Failure(StagingFailure),
    /// A path could not be examined. The path of a directory is empty or ends with a slash.
    Unexamined(BString, io::Error),
    /// This pathspec matches no tracked file.
    Unmatched(BString),
    /// The executable bit of a path could not be set (`true`) or cleared (`false`).
    ModeKept(BString, bool),
    /// These requested paths are ignored, so that they were not added.
    Ignored(Vec<BString>),
    /// These paths are outside of the sparse checkout.
    OutsideSparse(Vec<BString>),
    /// A nested repository was added as a gitlink without a submodule configuration.
    Embedded(BString),
}

/// The result of an `add`.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The events, in order.
    pub events: Vec<Event>,
    /// Whether some files could not be staged, while the others were.
    pub failed: bool,
    /// Whether executable bits could not be changed. Git has a separate exit code for this failure.
    pub mode_kept: bool,
    /// Whether the events already name the reasons of the failure.
    pub is_explained: bool,
    /// The reason why nothing is staged.
    fatal: Option<Error>,
}

impl Report {
    fn refuse(&mut self, message: &str) {
        self.fatal = Some(Error::new(ErrorKind::Refused, message));
    }

    fn is_fatal(&self) -> bool {
        self.fatal.is_some()
    }

    fn finish(mut self) -> Result<Self, PartialFailure<Self>> {
        match self.fatal.take() {
            Some(error) => Err(PartialFailure::new(error, self)),
            None => Ok(self),
        }
    }
}

/// Stages files, like `git add`. Each file is read once; many new objects are stored as one pack.
/// The index is replaced last, when all objects are stored.
///
/// # Errors
/// Fails if there is no worktree, if the index is locked or cannot be read or written, with
/// [`Interrupted`](ErrorKind::Interrupted) after an interrupt, or with
/// [`Unsupported`](ErrorKind::Unsupported) if `core.ignoreCase` is set. Also fails if a path cannot
/// be staged and [`Options::ignore_errors`] is not set. In this case nothing is staged, and the
/// report contains the events before the error.
pub fn add(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Report, PartialFailure<Report>> {
    support::require(repository, Operation::Add)?;
    let lacking = |message| Err(Error::new(ErrorKind::Unsupported, message).into());
    if repository.ignores_case()? {
        return lacking("'add' with core.ignoreCase is not implemented natively");
    }
    let pathspec = &options.pathspec;
    let names_all = (0..pathspec.len()).any(|at| pathspec.path(at).is_empty());
    let is_near = |directory: &BStr| {
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        let relation = pathspec.directory(directory.as_bstr());
        options.sparse || relation != pronto_worktree::pathspec::DirectoryRelation::Outside
    };
    let never = (pathspec.is_empty() || names_all)
        && !options.sparse
        && options.selection != AddSelection::Renormalize;
    let read = || repository.index_near(&mut |directory| !never && is_near(directory));
    let (prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let lock = lock?;
    let mut work = AddRun {
        repository,
        options,
        prepared: &prepared,
        patterns: match options.force {
            true => Patterns::default(),
            false => ignore_patterns(repository)?,
        },
        sparse: match options.sparse {
            true => None,
            false => repository.sparse_checkout()?,
        },
        report: Report::default(),
    };
    let Some(plan) = work.plan(watch)? else {
        return work.report.finish();
    };
    let mut stage = StagedIndex::new(&prepared, repository, options)?;
    work.carry_out(plan, &mut stage, watch)?;
    let report = work.report;
    let edit = stage.into_edit()?;
    if report.is_fatal() || edit.is_empty() {
        return report.finish();
    }
    let bytes = prepared.encode(edit.content(), watch)?;
    lock.commit(&bytes).map_err(crate::errors::from_index)?;
    Ok(report)
}

/// The paths to stage, in order.
#[derive(Debug, Default)]
struct AddPlan {
    /// Tracked files.
    tracked: Vec<AddChange>,
    /// The requested paths that are ignored.
    ignored: Vec<BString>,
    /// New files.
    untracked: Vec<BString>,
}

#[derive(Debug)]
enum AddChange {
    Remove(BString),
    Add(BString),
}

/// The state of one call of [`add`](add()).
struct AddRun<'a> {
    repository: &'a Repository,
    options: &'a Options,
    prepared: &'a WorktreeSession<'a>,
    patterns: Patterns,
    /// The patterns of the sparse checkout; `None` if all paths may be staged.
    sparse: Option<Sparse>,
    report: Report,
}

impl AddRun<'_> {
    fn index(&self) -> &Index {
        &self.prepared.index
    }

    fn is_outside(&self, path: &BStr) -> bool {
        self.sparse
            .as_ref()
            .is_some_and(|sparse| !sparse.includes(path))
    }

    /// Collects the changes; `None` if they are refused.
    fn plan(&mut self, watch: &Watch<'_>) -> Result<Option<AddPlan>> {
        if let Some(error) = self.misplaced() {
            self.report.fatal = Some(error);
            return Ok(None);
        }
        let mut outcome = match self.options.selection {
            AddSelection::Renormalize => Outcome::default(),
            _ => self.walk(watch)?,
        };
        let mut ignored = match self.options.selection {
            AddSelection::All if !self.options.force => self.ignored()?,
            _ => Vec::new(),
        };
        if let Some(error) = self.unmatched(&outcome, &mut ignored) {
            self.report.fatal = Some(error);
            return Ok(None);
        }
        for problem in std::mem::take(&mut outcome.problems) {
            let unexamined = Event::Unexamined(problem.path, problem.error);
            self.report.events.push(unexamined);
        }
        Ok(Some(AddPlan {
            tracked: match self.options.selection {
                AddSelection::Renormalize => self.all_tracked(),
                _ => self.changed(&outcome),
            },
            ignored,
            untracked: outcome.untracked,
        }))
    }

    fn walk(&self, watch: &Watch<'_>) -> Result<Outcome> {
        let _region = pronto_io::region!("add", "walk");
        let (prepared, index) = (self.prepared, self.index());
        let read = |directory: &BStr| {
            let objects = Some(prepared.objects);
            read_ignore_file(&prepared.top, b".gitignore", index, objects, directory)
        };
        let mut walk_options = walk_options(self.repository)?;
        walk_options.compare_content = false;
        walk_options.untracked = match self.options.selection {
            AddSelection::All => Untracked::All,
            _ => Untracked::No,
        };
        let outcome = walk(&StatusJob {
            work_tree: self.repository.require_work_tree()?,
            git_dir: self.repository.git_dir(),
            index,
            pathspec: &self.options.pathspec,
            patterns: &self.patterns,
            ignore_files: (!self.options.force).then_some(&read),
            conversion: &Unconverted,
            submodules: &SubmoduleHeads {
                repository: self.repository,
                refuses_broken: true,
            },
            interrupt: watch.interrupt(),
            remembered: None,
            monitored: None,
            options: walk_options,
        })
        .map_err(from_worktree)?;
        pronto_io::data!("add", "lstat", outcome.stat_count);
        pronto_io::data!("add", "opendir", outcome.open_count);
        Ok(outcome)
    }

    fn changed(&self, outcome: &Outcome) -> Vec<AddChange> {
        let mut steps = Vec::new();
        for changed in &outcome.changed {
            let path = self.index().path(changed.position);
            if self.is_outside(path) {
                continue;
            }
            let gone = match changed.change {
                Some(change) => change == FileChange::Deleted,
                None => changed.mode == 0 && !self.options.ignore_removal,
            };
            if !gone {
                steps.push(AddChange::Add(path.to_owned()));
            } else if !self.options.ignore_removal {
                steps.push(AddChange::Remove(path.to_owned()));
            }
        }
        steps
    }

    /// Hashes the files of the plan, and enters the results into the new index.
    fn carry_out(
        &mut self,
        plan: AddPlan,
        stage: &mut StagedIndex<'_>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let (outside, untracked): (Vec<_>, Vec<_>) = (plan.untracked.into_iter())
            .partition(|path| self.sparse.is_some() && self.is_outside(path.as_bstr()));
        let tracked = plan.tracked.iter().filter_map(|step| match step {
            AddChange::Add(path) => Some(StagedPath::new(path.as_bstr())),
            AddChange::Remove(_) => None,
        });
        let new = untracked.iter().map(|path| StagedPath::new(path.as_bstr()));
        let targets: Vec<StagedPath<'_>> = tracked.chain(new).collect();
        let hashed = self.hash(&targets, watch)?;
        let mut hashed = hashed.into_iter();
        let report = &mut self.report;
        let may_fail = self.options.ignore_errors;
        for step in &plan.tracked {
            match step {
                AddChange::Remove(path) => stage.remove(path.as_bstr(), report),
                AddChange::Add(path) => {
                    if !stage.add(path.as_bstr(), hashed.next(), report) && !may_fail {
                        report.refuse("updating files failed");
                        return Ok(());
                    }
                }
            }
            if report.is_fatal() {
                return Ok(());
            }
        }
        if self.options.selection == AddSelection::Tracked && !may_fail {
            self.refuse_untracked();
        }
        let report = &mut self.report;
        if report.is_fatal() {
            return Ok(());
        }
        if !plan.ignored.is_empty() {
            report.failed = true;
            report.events.push(Event::Ignored(plan.ignored));
        }
        for path in &untracked {
            let added = stage.add(path.as_bstr(), hashed.next(), report);
            if !added && !may_fail {
                report.refuse("adding files failed");
            }
            if report.is_fatal() {
                return Ok(());
            }
            if added && let Some(path) = path.strip_suffix(b"/") {
                report.events.push(Event::Embedded(path.into()));
            }
        }
        if !outside.is_empty() {
            report.failed = true;
            report.events.push(Event::OutsideSparse(outside));
        }
        if let Some(executable) = self.options.executable
            && !self.options.pathspec.is_empty()
        {
            self.change_mode(executable, stage);
        }
        Ok(())
    }

    fn hash(&self, targets: &[StagedPath<'_>], watch: &Watch<'_>) -> Result<Vec<Hashed>> {
        let (prepared, index) = (self.prepared, self.index());
        let is_quiet = self.options.dry_run || self.options.selection == AddSelection::Renormalize;
        let mut settings = self.repository.filter_settings()?;
        if is_quiet {
            settings.safe_crlf = SafeCrlf::Ignore;
        }
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let attributes = attributes::attributes_of_still_files(self.repository, index)?;
        let hashed = Hasher {
            repository: self.repository,
            prepared,
            attributes: attributes.clone(),
            settings: std::sync::Arc::new(settings),
            renormalize: self.options.selection == AddSelection::Renormalize,
            intent_to_add: self.options.intent_to_add,
            writes: !self.options.dry_run,
            stops: !self.options.ignore_errors,
            watch,
        }
        .run(targets);
        attributes::notify_of_flaws(self.repository, &attributes);
        hashed
    }

    fn change_mode(&mut self, executable: bool, stage: &mut StagedIndex<'_>) {
        for path in stage.matching(&self.options.pathspec) {
            if !self.options.sparse && (self.is_outside(path.as_bstr()) || stage.skips(&path)) {
                continue;
            }
            if !stage.chmod(path.as_bstr(), executable, self.options.dry_run) {
                self.report.events.push(Event::ModeKept(path, executable));
                self.report.mode_kept = true;
            }
        }
    }
}
