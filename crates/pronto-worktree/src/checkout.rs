//! Executes a plan: removes files, creates directories, writes files, and reports the result of each
//! step. See `docs/design/checkout.md` for costs and reasons.
//!
//! Every system call is relative to a directory handle and follows no symbolic link. A file that cannot
//! be written is reported and leaves no partial file; the other files are still written.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Stat, mode};
use pronto_io::dir::Directory;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::Workers;
use pronto_io::progress::Progress;

use crate::attributes::Attributes;
use crate::filter::{FilterPrograms, Settings};
use crate::{Error, ObjectSource};

mod collide;
mod content;
mod directories;
mod emptied;
mod lane;
mod order;
mod reflink;
mod remove;
mod results;
mod run;
mod warning;
mod write;

pub use reflink::{ReflinkSources, SourceWorktree};
pub use run::run;
pub use warning::CheckoutWarning;

/// The paths to remove and to write in a checkout, each list in index order.
#[derive(Clone, Debug, Default)]
pub struct CheckoutPlan {
    /// The paths to remove, before any file is written. Directories that become empty are removed, too.
    pub remove: Vec<PathRemoval>,
    /// The paths to write.
    pub write: Vec<CheckoutItem>,
}

/// A path to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRemoval {
    /// The path from the top of the worktree.
    pub path: BString,
    /// Whether the path is the directory of a submodule, which is removed only if it is empty.
    pub gitlink: bool,
}

/// A path to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutItem {
    /// The path from the top of the worktree.
    pub path: BString,
    /// The blob, or the commit of a submodule.
    pub id: ObjectId,
    /// The mode of the entry: one of [`mode`]'s, except that of a directory.
    pub mode: u32,
    /// Whether a file of this path is expected to exist and is replaced.
    pub replaces: bool,
}

impl CheckoutItem {
    /// Returns whether the item is a submodule, which has no content in this repository.
    pub fn is_submodule(&self) -> bool {
        self.mode & mode::TYPE == mode::GITLINK
    }

    fn is_regular(&self) -> bool {
        self.mode & mode::TYPE == mode::FILE & mode::TYPE
    }

    fn name(&self) -> &BStr {
        split(self.path.as_bstr()).1
    }

    fn directory(&self) -> &BStr {
        split(self.path.as_bstr()).0
    }
}

/// Splits a path into its directory (without a slash at its end) and its last component.
fn split(path: &BStr) -> (&BStr, &BStr) {
    match path.rfind_byte(b'/') {
        Some(slash) => (path[..slash].as_bstr(), path[slash + 1..].as_bstr()),
        None => (b"".as_bstr(), path),
    }
}

/// The worktree, sources and observers of a checkout.
#[derive(Clone, Copy)]
pub struct CheckoutContext<'a> {
    /// The top of the worktree.
    pub top: &'a Directory,
    /// The source of contents.
    pub objects: &'a dyn ObjectSource,
    /// The attributes of the paths. They must select [`ATTRIBUTES`](crate::filter::ATTRIBUTES).
    pub attributes: &'a Attributes,
    /// The settings for conversions of content.
    pub settings: &'a Settings,
    /// Receives the progress of "Updating files" and "Filtering content".
    pub progress: &'a dyn Progress,
    /// The interrupt that is checked between files.
    pub interrupt: &'a Interrupt,
}

/// The treatment of files or directories that obstruct a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstructions {
    /// Replace the obstruction. The creator of the plan has verified that no content is lost.
    Replace,
    /// Report a collision. The worktree was empty, so the obstruction is another path of the plan that
    /// the file system treats as equal. The last path in index order is kept, and both are reported.
    Collide,
}

/// Options of a checkout.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The number of worker threads (`checkout.workers`).
    pub workers: Workers,
    /// The number of files below which a single thread is used (`checkout.thresholdForParallelism`).
    /// Only applies to [`Workers::Exactly`].
    pub threshold_for_parallelism: usize,
    /// Create symbolic links (`core.symlinks`); otherwise files contain the target of the link.
    pub symlinks: bool,
    /// The treatment of obstructions.
    pub obstructions: Obstructions,
    /// A directory that is kept even if it becomes empty: the current directory of the user, relative
    /// to the top of the worktree.
    pub keep_directory: Option<BString>,
    /// Other worktrees whose file contents new files may share (`checkout.reflink`).
    pub reflink_sources: Option<Arc<ReflinkSources>>,
    /// Whether replaced files may be overwritten in place (`checkout.inPlace`).
    pub in_place: InPlace,
}

/// The mode of overwriting files in place (`checkout.inPlace`). In-place writes are used only if the
/// result cannot be distinguished from a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InPlace {
    /// Remove each file and create a new file.
    Never,
    /// Overwrite in place on file systems where this is known to be faster, if there are enough files.
    #[default]
    Auto,
    /// Overwrite in place on any file system that permits it.
    Always,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: Workers::ADAPTIVE,
            threshold_for_parallelism: 100,
            symlinks: true,
            obstructions: Obstructions::Replace,
            keep_directory: None,
            reflink_sources: None,
            in_place: InPlace::default(),
        }
    }
}

/// The result of executing a plan.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The stat data of each item to write; `None` if the item was not written.
    pub written: Vec<Option<Stat>>,
    /// The paths that could not be removed or written, in the order of the index.
    pub failed: Vec<CheckoutFailure>,
    /// The paths that the file system treats as equal, sorted.
    pub collided: Vec<BString>,
    /// Warnings about other problems.
    pub warnings: Vec<CheckoutWarning>,
    /// The largest number of workers at one time.
    pub most_workers: usize,
    /// Whether the checkout was interrupted.
    pub interrupted: bool,
    /// The filter programs. Their processes still run, and may convert further files.
    pub programs: Option<Box<FilterPrograms>>,
}

/// A path that could not be removed or written.
#[derive(Debug)]
pub struct CheckoutFailure {
    /// The path from the top of the worktree.
    pub path: BString,
    /// The error. Its kind is one of [`ErrorKind`](crate::ErrorKind), which is more precise than that of
    /// the operation.
    pub error: Error,
}

/// The error with the kind that an operation on the repository has for it.
impl From<CheckoutFailure> for pronto_config::Error {
    fn from(failure: CheckoutFailure) -> Self {
        failure.error.map_kind(pronto_config::ErrorKind::from)
    }
}
