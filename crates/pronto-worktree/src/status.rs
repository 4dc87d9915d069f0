//! Compares the files of a worktree with the index and finds untracked files: one walk in directory
//! order, shared by several threads, that examines each tracked file at most once and opens each
//! directory at most once.

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
use pronto_index::{Index, Rules, Stat};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::interrupt::Interrupt;
use std::path::Path;

pub use content::{Conversion, FileToDigest, Unconverted, digest_file};
pub use monitored::Monitored;
pub use recorded::{recorded, tracked_names};
pub use remember::{blob_id, renew};
pub use remembered::{News, Remembered};
pub use scheduler::default_threads;

/// Which untracked files to name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untracked {
    /// None: directories are not read.
    No,
    /// A directory without tracked files by its name alone.
    #[default]
    Normal,
    /// Every file.
    All,
}

/// Which ignored files to name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// None.
    #[default]
    No,
    /// Ignored files, and a directory in which everything is ignored by its name alone.
    Traditional,
    /// Entries that match a pattern themselves.
    Matching,
}

/// Options of a status walk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Look at tracked files.
    pub tracked: bool,
    /// Which untracked files to name.
    pub untracked: Untracked,
    /// Which ignored files to name.
    pub ignored: Ignored,
    /// Name untracked directories without a look into them, empty ones too.
    pub show_empty_directories: bool,
    /// The rules for comparing stat data.
    pub rules: Rules,
    /// Whether a file with other stat data counts as modified without comparing its content.
    pub stat_decides: bool,
    /// `core.fileMode`: the executable bit of files means something.
    pub trust_executable: bool,
    /// `core.symlinks`: links are links, not files that hold their target.
    pub has_symlinks: bool,
    /// `core.ignoreCase`.
    pub ignore_case: bool,
    /// In a sparse checkout: entries marked to be absent count as present if their file is there.
    pub notice_present_sparse: bool,
    /// Look at files that are assumed to be unchanged (`update-index --assume-unchanged`), too.
    pub looks_at_assumed: bool,
    /// Whether the content of files is compared if stat data do not decide. Otherwise such files
    /// count as modified; this is for callers that read them anyway.
    pub compare_content: bool,
    /// Threads to use; `None` for as many as pay.
    pub threads: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tracked: true,
            untracked: Untracked::Normal,
            ignored: Ignored::No,
            show_empty_directories: false,
            rules: Rules::default(),
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

/// The differences of a submodule from the staged commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmoduleState {
    /// Another commit is checked out.
    pub new_commits: bool,
    /// The submodule has changes to tracked files, staged or not.
    pub modified: bool,
    /// The submodule has untracked files.
    pub untracked: bool,
}

impl SubmoduleState {
    /// Whether it differs at all.
    pub fn is_clean(&self) -> bool {
        *self == SubmoduleState::default()
    }
}

/// Looks into submodules.
pub trait Submodules: Sync {
    /// Returns how the submodule at `path` differs from the index entry `staged`. One that is not
    /// checked out does not differ.
    ///
    /// # Errors
    /// The reason why it cannot be examined.
    fn inspect(&self, path: &BStr, staged: &oid) -> Result<SubmoduleState, Error>;
}

/// Submodules never differ.
impl Submodules for () {
    fn inspect(&self, _path: &BStr, _staged: &oid) -> Result<SubmoduleState, Error> {
        Ok(SubmoduleState::default())
    }
}

/// Everything the walk works on.
pub struct Job<'a> {
    /// The top of the worktree.
    pub work_tree: &'a Path,
    /// The directory of the repository: a `.git` at another place in the worktree is another
    /// repository.
    pub git_dir: &'a Path,
    /// The index.
    pub index: &'a Index,
    /// Which paths count.
    pub pathspec: &'a Pathspec,
    /// The patterns that apply to all directories.
    pub patterns: &'a Patterns,
    /// The source of ignore files that are not in the worktree; `None` reads no ignore files.
    pub ignore_files: Option<&'a Reader<'a>>,
    /// From file contents to blobs.
    pub conversion: &'a dyn Conversion,
    /// Submodules.
    pub submodules: &'a dyn Submodules,
    /// A request to stop.
    pub interrupt: &'a Interrupt,
    /// Untracked files found earlier, if they may be used: without a pathspec and without a query
    /// for ignored files.
    pub remembered: Option<&'a Remembered<'a>>,
    /// The answer of a file system monitor, if there is one.
    pub monitored: Option<&'a Monitored>,
    /// The options of the walk.
    pub options: Options,
}

/// The change of a tracked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file does not exist, or is a directory.
    Deleted,
    /// Its content or its executable bit differ.
    Modified,
    /// The file became a link, a file, or a submodule.
    TypeChanged,
    /// The file exists and is only announced in the index (`add --intent-to-add`).
    Added,
}

/// A tracked file that differs from its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The position of the entry in the index. Of a conflict, that of its first stage.
    pub position: usize,
    /// The change; `None` for a conflict.
    pub change: Option<Change>,
    /// The mode the file would be staged with; zero if it does not exist.
    pub mode: u32,
    /// If it is a submodule, how that differs.
    pub submodule: SubmoduleState,
}

/// A result that is reported before the walk has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The tracked file differs; `None` for a conflict.
    Changed(Option<Change>),
    /// The path is untracked.
    Untracked,
}

/// A callback for paths as they are found, called by all threads of the walk.
pub type Tell<'a> = dyn Fn(&BStr, Found) + Sync + 'a;

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
    /// Tracked files that differ and conflicts, in the order of the index.
    pub changed: Vec<Changed>,
    /// Untracked files, and directories with a slash at their end, in the order of paths.
    pub untracked: Vec<BString>,
    /// Ignored files and directories likewise.
    pub ignored: Vec<BString>,
    /// Entries whose recorded stat data are out of date while their content is the same, with the
    /// current stat data; or, with a size of zero, entries that differ without a difference in
    /// their stat data.
    pub refreshed: Vec<(usize, Stat)>,
    /// Newly found untracked files, for the next [`Remembered`]: see [`renew`].
    pub news: Vec<News>,
    /// Entries that were examined and are unchanged, if there is a monitor: it can vouch for them
    /// from now on.
    pub verified: Vec<u32>,
    /// Paths that could not be examined.
    pub problems: Vec<Problem>,
    /// The number of tracked files that were examined.
    pub stat_count: usize,
    /// Entries among those of which Git would look at the content, because the index is as old as
    /// their files: see [`Stat::is_racy_by_second`].
    pub racy_count: usize,
    /// Directories that were opened.
    pub open_count: usize,
    /// The number of tracked files that are present in spite of their skip-worktree bit.
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

/// Walks the worktree. One `lstat` for each tracked file that counts, one open for each directory;
/// with [`Untracked::No`] only tracked files are examined. Directories for which one entry of the
/// index stands are skipped: they must not exist.
///
/// # Errors
/// [`ErrorKind::Io`] if the worktree cannot be opened, [`ErrorKind::Interrupted`]. Paths below the
/// top that cannot be examined are listed in [`Outcome::problems`].
pub fn walk(job: &Job<'_>) -> Result<Outcome, Error> {
    walk_telling(job, None)
}

/// Does the same as [`walk`], and calls `tell` for the changed and untracked files of each
/// directory after it was examined: in no particular order, and possibly twice for a file.
///
/// # Errors
/// As [`walk`].
pub fn walk_telling(job: &Job<'_>, tell: Option<&Tell<'_>>) -> Result<Outcome, Error> {
    let root = Directory::open(job.work_tree).context(
        ErrorKind::Io,
        "could not open directory",
        job.work_tree,
    )?;
    let mut outcome = scheduler::run(job, tell, &root)?;
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
