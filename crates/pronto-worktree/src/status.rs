//! Compares the files of a worktree with the index and finds untracked files. Several threads share one
//! walk in directory order, which examines each tracked file at most once and opens each directory at
//! most once.

mod ahead;
mod compare;
mod content;
mod ignore_files;
mod monitored;
mod nested;
mod pace;
mod recall;
mod recorded;
mod remember;
mod remembered;
mod scan;
mod scheduler;
mod small;
mod task;
mod tracked;
mod untracked;
mod votes;

use crate::ignore::{Patterns, Reader};
use crate::pathspec::Pathspec;
use crate::{Error, ErrorKind};
use bstr::{BStr, BString};
use pronto_hash::oid;
use pronto_index::{Index, Stat, StatRules};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::interrupt::Interrupt;
use std::path::Path;

pub use content::{FileToDigest, ToBlob, Unconverted, digest_file};
pub use monitored::Monitored;
pub use recorded::{recorded, tracked_names};
pub use remember::{blob_id, renew};
pub use remembered::{DirectoryNews, Remembered};
pub use scheduler::default_threads;

/// The mode of listing untracked files (`--untracked-files`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untracked {
    /// List no untracked files; directories are not read (`no`).
    No,
    /// List a directory without tracked files by its name only (`normal`).
    #[default]
    Normal,
    /// List every file (`all`).
    All,
}

/// The mode of listing ignored files (`--ignored`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// List no ignored files (`no`).
    #[default]
    No,
    /// List ignored files, and a directory with only ignored files by its name (`traditional`).
    Traditional,
    /// List files and directories that match a pattern themselves (`matching`).
    Matching,
}

/// Options of a status walk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Examine tracked files.
    pub tracked: bool,
    /// The untracked files to list (`--untracked-files`).
    pub untracked: Untracked,
    /// The ignored files to list (`--ignored`).
    pub ignored: Ignored,
    /// List untracked directories without examining their content, including empty ones
    /// (`git ls-files --directory`).
    pub show_empty_directories: bool,
    /// The rules for comparing stat data (`core.trustCtime`, `core.checkStat`).
    pub rules: StatRules,
    /// Whether different stat data mean a modified file, without a comparison of the content.
    pub stat_decides: bool,
    /// Compare the executable bit of files (`core.fileMode`).
    pub trust_executable: bool,
    /// Expect symbolic links as links instead of as files with the target (`core.symlinks`).
    pub has_symlinks: bool,
    /// Ignore case in names (`core.ignoreCase`).
    pub ignore_case: bool,
    /// In a sparse checkout, treat entries with the skip-worktree bit as present if their file exists.
    pub notice_present_sparse: bool,
    /// Examine files with the assume-unchanged bit, too (`git update-index --assume-unchanged`).
    pub looks_at_assumed: bool,
    /// Whether the content of files is compared if stat data are not conclusive. Otherwise such files
    /// count as modified, for callers that read them anyway.
    pub compare_content: bool,
    /// The number of threads; `None` for a suitable number.
    pub threads: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tracked: true,
            untracked: Untracked::Normal,
            ignored: Ignored::No,
            show_empty_directories: false,
            rules: StatRules::default(),
            stat_decides: false,
            trust_executable: true,
            has_symlinks: true,
            ignore_case: false,
            notice_present_sparse: false,
            looks_at_assumed: false,
            compare_content: true,
            threads: None,
        }
    }
}

/// The differences of a submodule from the staged commit (`--ignore-submodules`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmoduleState {
    /// Whether another commit is checked out.
    pub new_commits: bool,
    /// Whether the submodule has staged or unstaged changes of tracked files.
    pub modified: bool,
    /// Whether the submodule has untracked files.
    pub untracked: bool,
}

impl SubmoduleState {
    /// Returns whether the submodule has no differences.
    pub fn is_clean(&self) -> bool {
        *self == SubmoduleState::default()
    }
}

/// A callback that examines submodules.
pub trait Submodules: Sync {
    /// Returns the differences of the submodule at `path` from the index entry `staged`. A submodule
    /// that is not checked out has no differences.
    ///
    /// # Errors
    /// Fails if the submodule cannot be examined.
    fn inspect(&self, path: &BStr, staged: &oid) -> Result<SubmoduleState, Error>;
}

/// An implementation that reports no differences of submodules.
impl Submodules for () {
    fn inspect(&self, _path: &BStr, _staged: &oid) -> Result<SubmoduleState, Error> {
        Ok(SubmoduleState::default())
    }
}

/// The input of a status walk.
pub struct StatusJob<'a> {
    /// The top of the worktree.
    pub work_tree: &'a Path,
    /// The directory of the repository. A `.git` in the worktree with another target is another
    /// repository.
    pub git_dir: &'a Path,
    /// The index.
    pub index: &'a Index,
    /// The pathspecs that limit the walk.
    pub pathspec: &'a Pathspec,
    /// The ignore patterns that apply to all directories.
    pub patterns: &'a Patterns,
    /// The reader of ignore files, which may come from the index; `None` reads no ignore files.
    pub ignore_files: Option<&'a Reader<'a>>,
    /// The conversion of file contents to blobs.
    pub conversion: &'a dyn ToBlob,
    /// The callback that examines submodules.
    pub submodules: &'a dyn Submodules,
    /// The interrupt that stops the walk.
    pub interrupt: &'a Interrupt,
    /// The untracked cache, if it may be used: only without pathspecs and without listing ignored files
    /// (`core.untrackedCache`).
    pub remembered: Option<&'a Remembered<'a>>,
    /// The answer of a file system monitor, if there is one (`core.fsmonitor`).
    pub monitored: Option<&'a Monitored>,
    /// The options of the walk.
    pub options: Options,
}

/// The change of a tracked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file does not exist, or is a directory.
    Deleted,
    /// The content or the executable bit of the file differs.
    Modified,
    /// The path has changed between a file, a symbolic link and a submodule.
    TypeChanged,
    /// The file exists and its entry is intent-to-add (`git add --intent-to-add`).
    Added,
}

/// A tracked file that differs from its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The position of the entry in the index; for a conflict, that of its first stage.
    pub position: usize,
    /// The change; `None` for a conflict.
    pub change: Option<FileChange>,
    /// The mode with which the file would be staged; zero if the file does not exist.
    pub mode: u32,
    /// The differences, if the entry is a submodule.
    pub submodule: SubmoduleState,
}

/// A result that is reported during the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyResult {
    /// The tracked file differs; `None` stands for a conflict.
    Changed(Option<FileChange>),
    /// The path is untracked.
    Untracked,
}

/// A callback for paths as they are found. All threads of the walk call it.
pub type OnStatusPath<'a> = dyn Fn(&BStr, EarlyResult) + Sync + 'a;

/// A path that could not be examined.
#[derive(Debug)]
pub struct Problem {
    /// The path, with a slash at its end for a directory.
    pub path: BString,
    /// The reason.
    pub error: std::io::Error,
}

/// The result of the walk.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The tracked files that differ and the conflicts, in index order.
    pub changed: Vec<ChangedFile>,
    /// The untracked files and directories, sorted. Directories have a slash at their end.
    pub untracked: Vec<BString>,
    /// The ignored files and directories, sorted. Directories have a slash at their end.
    pub ignored: Vec<BString>,
    /// Entries whose content is unchanged but whose stat data are outdated, with the current stat data.
    /// Also entries whose content differs although the stat data match, with a size of zero.
    pub refreshed: Vec<(usize, Stat)>,
    /// New results for the untracked cache: see [`renew`].
    pub news: Vec<DirectoryNews>,
    /// The entries that were found unchanged, if there is a file system monitor. They can be marked as
    /// valid (fsmonitor-valid bit).
    pub verified: Vec<u32>,
    /// Paths that could not be examined.
    pub problems: Vec<Problem>,
    /// The number of tracked files that were examined.
    pub stat_count: usize,
    /// The number of examined files whose content Git would read, because the index is as old as the
    /// file: see [`Stat::is_racy_by_second`].
    pub racy_count: usize,
    /// The number of opened directories.
    pub open_count: usize,
    /// The number of tracked files that exist despite their skip-worktree bit.
    pub present_sparse: usize,
}

impl Outcome {
    fn absorb(&mut self, mut other: Outcome) {
        self.changed.append(&mut other.changed);
        self.untracked.append(&mut other.untracked);
        self.ignored.append(&mut other.ignored);
        self.refreshed.append(&mut other.refreshed);
        self.news.append(&mut other.news);
        self.verified.append(&mut other.verified);
        self.problems.append(&mut other.problems);
        self.stat_count += other.stat_count;
        self.racy_count += other.racy_count;
        self.open_count += other.open_count;
        self.present_sparse += other.present_sparse;
    }
}

/// Walks the worktree. Costs one `lstat` for each tracked file to examine and one open for each
/// directory. With [`Untracked::No`] only tracked files are examined. Sparse directory entries are
/// skipped: their directories must not exist.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the worktree cannot be opened, or with [`ErrorKind::Interrupted`].
/// Paths below the top that cannot be examined are listed in [`Outcome::problems`].
pub fn walk(job: &StatusJob<'_>) -> Result<Outcome, Error> {
    walk_with_callback(job, None)
}

/// Does the same as [`walk`], and calls `on_path` for the changed and untracked files of each directory
/// after it was examined. The order is arbitrary, and a file may be reported twice.
///
/// # Errors
/// As for [`walk`].
pub fn walk_with_callback(
    job: &StatusJob<'_>,
    on_path: Option<&OnStatusPath<'_>>,
) -> Result<Outcome, Error> {
    let root = Directory::open(job.work_tree).context(
        ErrorKind::Io,
        "could not open directory",
        job.work_tree,
    )?;
    let mut outcome = scheduler::run(job, on_path, &root)?;
    outcome
        .changed
        .sort_unstable_by_key(|changed| changed.position);
    outcome.untracked.sort_unstable();
    outcome.untracked.dedup();
    outcome.ignored.sort_unstable();
    outcome.ignored.dedup();
    outcome
        .refreshed
        .sort_unstable_by_key(|(position, _)| *position);
    Ok(outcome)
}
