//! Executes a plan: removes files, creates directories, writes files, and reports the result for
//! each. See `docs/design/checkout.md` for costs and reasons.
//!
//! Every system call is relative to a directory handle and follows no link. A file that cannot be
//! written is reported and leaves nothing behind; the others are still written.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Stat, mode};
use pronto_io::dir::Directory;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::Workers;
use pronto_io::progress::Progress;

use crate::attributes::Attributes;
use crate::filter::{Programs, Settings};
use crate::{Error, Objects};

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
pub use warning::Warning;

/// The work of a checkout, both parts in the order of the index.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Removed before anything is written, along with the directories that become empty.
    pub remove: Vec<Removal>,
    /// Written.
    pub write: Vec<Item>,
}

/// A path to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// From the top of the worktree.
    pub path: BString,
    /// Whether it is the directory of a submodule, which goes only if it is empty.
    pub gitlink: bool,
}

/// A path to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// From the top of the worktree.
    pub path: BString,
    /// The blob, or the commit of a submodule.
    pub id: ObjectId,
    /// One of [`mode`]'s, but for a directory.
    pub mode: u32,
    /// Whether a file of this path is expected to be there, to be replaced.
    pub replaces: bool,
}

impl Item {
    /// Whether it is a submodule, which has no content here.
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

/// The directory of a path (no slash at its end) and the last component.
fn split(path: &BStr) -> (&BStr, &BStr) {
    match path.rfind_byte(b'/') {
        Some(slash) => (path[..slash].as_bstr(), path[slash + 1..].as_bstr()),
        None => (b"".as_bstr(), path),
    }
}

/// The places and observers of a checkout.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The top of the worktree.
    pub top: &'a Directory,
    /// The source of contents.
    pub objects: &'a dyn Objects,
    /// The attributes of the paths; must select [`ATTRIBUTES`](crate::filter::ATTRIBUTES).
    pub attributes: &'a Attributes,
    /// The settings for conversions of content.
    pub settings: &'a Settings,
    /// Receives the progress of "Updating files" and "Filtering content".
    pub progress: &'a dyn Progress,
    /// Checked between files.
    pub interrupt: &'a Interrupt,
}

/// The treatment of obstructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstructions {
    /// The obstruction is replaced: the creator of the plan has verified that nothing is lost.
    Replace,
    /// The worktree was empty, so it is another path of the plan that the file system takes for
    /// the same. The last one in the order of the index stays, and both are reported.
    Collide,
}

/// Options of a checkout.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The number of threads.
    pub workers: Workers,
    /// With fewer files than this one thread does it; only obeyed with
    /// [`Workers::Exactly`].
    pub threshold_for_parallelism: usize,
    /// `core.symlinks`: whether links can be made; otherwise files hold the target.
    pub symlinks: bool,
    /// The treatment of obstructions.
    pub obstructions: Obstructions,
    /// A directory that stays even if it is empty: where the user is. From the top of the
    /// worktree.
    pub keep_directory: Option<BString>,
    /// Other worktrees, whose contents new files may share.
    pub reflink_sources: Option<Arc<ReflinkSources>>,
    /// Whether files that are replaced may get their new content in place.
    pub in_place: InPlace,
}

/// Whether the content of files is replaced in place if the result cannot be distinguished from a
/// new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InPlace {
    /// Each file is removed, and a new one made.
    Never,
    /// On file systems where it is known to be faster, if there are a few files.
    #[default]
    Auto,
    /// On any file system that can.
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

/// The result of a plan.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// For each item to be written its recorded stat data, or `None` if it was not written.
    pub written: Vec<Option<Stat>>,
    /// The paths that could not be removed or written, in the order of the index.
    pub failed: Vec<Failure>,
    /// The paths that the file system takes for one another, sorted.
    pub collided: Vec<BString>,
    /// Warnings about other problems.
    pub warnings: Vec<Warning>,
    /// The most workers that there were at one time.
    pub most_workers: usize,
    /// Whether it was broken off.
    pub interrupted: bool,
    /// The programs that filtered files. Their processes still run, and may convert others.
    pub programs: Option<Box<Programs>>,
}

/// A path that failed.
#[derive(Debug)]
pub struct Failure {
    /// From the top of the worktree.
    pub path: BString,
    /// The error.
    pub error: Error,
}
