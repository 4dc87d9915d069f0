//! Copies files from the index to the worktree, to another directory, or to temporary files:
//! `git checkout-index`.

use std::fmt;
use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Flags, IndexEdit, mode};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_worktree::checkout::{CheckoutFailure, CheckoutItem, CheckoutPlan, CheckoutWarning};
use pronto_worktree::status::Submodules;
use pronto_worktree::unpack::ContentChecker;

use crate::errors::{from_index, from_worktree};
use crate::session::WorktreeSession;
use crate::status::SubmoduleHeads;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, PartialFailure, Repository, Result, index};

mod temporary;

/// The stages whose entries are copied (`--stage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stages {
    /// Stage 0, the entry of a path without conflict.
    #[default]
    Merged,
    /// The entry at this stage of a conflict: 1 for the merge base, 2 for ours, 3 for theirs
    /// (`--stage=<number>`).
    One(u8),
    /// All stages of a conflict (`--stage=all`).
    All,
}

impl Stages {
    fn has(self, stage: u8) -> bool {
        match self {
            Stages::Merged => stage == 0,
            Stages::One(wanted) => stage == wanted,
            Stages::All => stage != 0,
        }
    }
}

/// Options of `git checkout-index`. The default is the command without options.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The paths to copy, relative to the top of the worktree.
    pub paths: Vec<BString>,
    /// Copy all files below this directory (`--all`). The directory is empty or ends with a slash.
    pub all_below: Option<BString>,
    /// The stages whose entries are copied (`--stage`).
    pub stages: Stages,
    /// Overwrite existing files (`--force`).
    pub force: bool,
    /// Do not create new files, only refresh existing ones (`--no-create`).
    pub no_create: bool,
    /// Record the stat data of written files in the index (`--index`).
    pub update_index: bool,
    /// Include files with the skip-worktree bit (`--ignore-skip-worktree-bits`).
    pub ignore_skip_worktree: bool,
    /// Write below this directory instead of the worktree (`--prefix`). The path is relative to the
    /// top of the worktree and ends with a slash. A missing directory is created.
    pub directory: Option<BString>,
    /// Write to temporary files in the top directory of the worktree (`--temp`).
    pub temporary: bool,
}

/// A path and the temporary files to which its entries were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporaryEntry {
    /// The path.
    pub path: BString,
    /// The temporary file of each stage.
    pub files: [Option<BString>; 4],
}

/// A named path without a suitable entry. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoEntry {
    /// The path is not in the index.
    NotInIndex(BString),
    /// The path is outside of the sparse checkout.
    Skipped(BString),
    /// The path has no entry at the requested stage.
    MissingStage {
        /// The path.
        path: BString,
        /// The stage.
        stage: u8,
    },
    /// The path is unmerged.
    Unmerged(BString),
}

impl fmt::Display for NoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoEntry::NotInIndex(path) => write!(f, "{path} is not in the cache"),
            NoEntry::Skipped(path) => write!(
                f,
                "{path} has skip-worktree enabled; use '--ignore-skip-worktree-bits' to checkout"
            ),
            NoEntry::MissingStage { path, stage } => {
                write!(f, "{path} does not exist at stage {stage}")
            }
            NoEntry::Unmerged(path) => write!(f, "{path} is unmerged"),
        }
    }
}

/// The result of `git checkout-index`.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The paths of existing files, which were not overwritten.
    pub refused: Vec<BString>,
    /// The named paths without a suitable entry.
    pub unknown: Vec<NoEntry>,
    /// The files that could not be written.
    pub failed: Vec<CheckoutFailure>,
    /// The temporary files (`--temp`).
    pub temporaries: Vec<TemporaryEntry>,
    /// The warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
}

impl Report {
    /// Whether a requested file was not written.
    pub fn is_incomplete(&self) -> bool {
        !(self.refused.is_empty() && self.unknown.is_empty() && self.failed.is_empty())
    }
}

/// Copies files from the index.
///
/// # Errors
/// Fails if there is no worktree, if the index cannot be read, if a requested update of the index
/// cannot be written, or if the operation is interrupted. Without [`Options::force`], also fails if
/// a parent path of a file exists and is not a directory. In this case the report describes the
/// files before this file, and the index is not written.
pub fn checkout_index(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Report, PartialFailure<Report>> {
    support::require(repository, Operation::CheckoutFiles)?;
    let updates = options.update_index && options.directory.is_none() && !options.temporary;
    let lock = match updates {
        true => Some(index::lock(repository)?),
        false => None,
    };
    let read = || match options.ignore_skip_worktree {
        true => repository.index(),
        // Other sparse directory entries are outside of the sparse checkout.
        false => repository.index_near(&mut |directory| {
            let mut paths = options.paths.iter();
            paths.any(|path| path.starts_with(directory))
        }),
    };
    let mut prepared = WorktreeSession::without_lock(repository, read)?;
    let mut report = Report::default();
    let chosen = choose(&prepared, options, &mut report);
    if options.temporary {
        temporary::write(&mut prepared, &chosen, &mut report, watch)?;
        return Ok(report);
    }
    if let Some(directory) = &options.directory {
        let path = repository
            .require_work_tree()?
            .join(crate::path::borrow(directory.as_bstr()));
        let made = std::fs::create_dir_all(&path).and_then(|()| Directory::open(&path));
        let verb = "cannot create directory at";
        prepared.top = made.context(ErrorKind::Io, verb, directory.to_string())?;
    }
    let Wanted {
        positions,
        obstacle,
    } = wanted(repository, &prepared, &chosen, options, watch, &mut report)?;
    let plan = plan(&prepared, &positions);
    let outcome = match options.directory.is_none() && writes_attributes(&plan) {
        true => prepared.write_files(&plan, prepared.index.iter(), watch)?,
        false => prepared.write_as_they_are(&plan, watch)?,
    };
    report.failed = outcome.failed;
    report.warnings = outcome.warnings;
    if let Some(error) = obstacle {
        return Err(PartialFailure::new(error, report));
    }
    let Some(lock) = lock.filter(|_| !report.is_incomplete()) else {
        return Ok(report);
    };
    let mut edit = IndexEdit::new(&prepared.index);
    for (position, written) in positions.iter().zip(&outcome.written) {
        if let Some(stat) = written {
            let flags = prepared.index.entry(*position).flags;
            edit.refresh(*position, *stat, flags.with(Flags::UP_TO_DATE));
        }
    }
    if !edit.is_empty() || prepared.index.identity().is_none() {
        let bytes = prepared.encode(edit.content(), watch)?;
        drop(edit);
        lock.commit(&bytes).map_err(from_index)?;
    }
    Ok(report)
}

/// The entries that must be written.
struct Wanted {
    positions: Vec<usize>,
    /// The error because of which the entries after `positions` are not written.
    obstacle: Option<Error>,
}

/// Returns the entries that must be written, given the existing files.
fn wanted(
    repository: &Repository,
    prepared: &WorktreeSession<'_>,
    chosen: &[usize],
    options: &Options,
    watch: &Watch<'_>,
    report: &mut Report,
) -> Result<Wanted> {
    let index = &prepared.index;
    let heads = SubmoduleHeads {
        repository,
        refuses_broken: false,
    };
    prepared.with_worktree_view(watch, |worktree_view| {
        let mut checker = ContentChecker::new(worktree_view);
        let mut wanted = Vec::new();
        let mut obstacle = None;
        for &position in chosen {
            let entry = index.entry(position);
            let there = checker.is_there(entry.path).map_err(from_worktree)?;
            if !there {
                if options.no_create {
                    continue;
                }
                if !options.force
                    && let Err(error) = refuse_obstacle(prepared, options, entry.path)
                {
                    obstacle = Some(error);
                    break;
                }
                wanted.push(position);
                continue;
            }
            let is_link = entry.mode == mode::GITLINK;
            let same = checker.has_facts_of(&entry).map_err(from_worktree)?;
            let moved = is_link
                && same
                && heads
                    .inspect(entry.path, entry.id)
                    .map_err(from_worktree)?
                    .new_commits;
            if same && (!moved || options.force) {
                continue;
            }
            if options.force {
                wanted.push(position);
            } else {
                report.refused.push(entry.path.to_owned());
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        Ok(Wanted {
            positions: wanted,
            obstacle,
        })
    })
}

/// Without `force`, a file that occupies the path of a leading directory must not be removed.
fn refuse_obstacle(prepared: &WorktreeSession<'_>, options: &Options, path: &BStr) -> Result<()> {
    for slash in path.find_iter("/") {
        let above = path[..slash].as_bstr();
        let (directory, name) = crate::path::split(above);
        let found = prepared
            .top
            .open_beneath(directory)
            .and_then(|directory| directory.metadata(name));
        match found {
            Ok(metadata) if metadata.is_directory() => {}
            Ok(_) => {
                let place = options
                    .directory
                    .as_ref()
                    .map_or(b"".as_bstr(), |it| it.as_bstr());
                let message = format!("cannot create directory at '{place}{above}': File exists");
                return Err(Error::new(ErrorKind::Refused, message));
            }
            Err(_) => break,
        }
    }
    Ok(())
}

/// Returns the positions of the selected entries.
fn choose(prepared: &WorktreeSession<'_>, options: &Options, report: &mut Report) -> Vec<usize> {
    let index = &prepared.index;
    let is_out = |position: usize| {
        let flags = index.entry(position).flags;
        flags.contains(Flags::SKIP_WORKTREE) && !options.ignore_skip_worktree
    };
    let mut chosen = Vec::new();
    for path in &options.paths {
        let stages: Range<usize> = index.stages(path.as_bstr());
        let before = chosen.len();
        let is_skipped = stages.clone().any(is_out);
        if !is_skipped {
            let fits = |at: &usize| options.stages.has(index.entry(*at).stage());
            chosen.extend(stages.clone().filter(fits));
        }
        if chosen.len() > before || (!stages.is_empty() && options.stages == Stages::All) {
            continue;
        }
        let path = path.clone();
        let missing = match (stages.is_empty(), is_skipped, options.stages) {
            (true, ..) => NoEntry::NotInIndex(path),
            (_, true, _) => NoEntry::Skipped(path),
            (.., Stages::One(stage)) => NoEntry::MissingStage { path, stage },
            _ => NoEntry::Unmerged(path),
        };
        report.unknown.push(missing);
    }
    if let Some(below) = &options.all_below {
        chosen.extend((0..index.len()).filter(|at| {
            let entry = index.entry(*at);
            let inside = entry.path.starts_with(below) && entry.path.len() > below.len();
            inside && !is_out(*at) && options.stages.has(entry.stage())
        }));
    }
    chosen
}

/// Returns a plan that writes the entries. Of several entries for one path the last is written.
fn plan(prepared: &WorktreeSession<'_>, wanted: &[usize]) -> CheckoutPlan {
    let items = wanted.iter().map(|at| {
        let entry = prepared.index.entry(*at);
        CheckoutItem {
            path: entry.path.to_owned(),
            id: entry.id.to_owned(),
            mode: entry.mode,
            replaces: true,
        }
    });
    CheckoutPlan {
        remove: Vec::new(),
        write: items.collect(),
    }
}

/// Whether the plan writes `.gitattributes` files, so that attributes may change during the
/// checkout.
pub(crate) fn writes_attributes(plan: &CheckoutPlan) -> bool {
    let is_attributes =
        |item: &CheckoutItem| crate::path::split(item.path.as_bstr()).1 == b".gitattributes";
    plan.write.iter().any(is_attributes)
}
