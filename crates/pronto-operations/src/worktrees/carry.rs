//! Copies ignored files (build outputs, installed dependencies) from the current worktree to a new
//! one.
//!
//! Only ignored, untracked files are considered. A directory that matches a pattern is copied with
//! all its contents. See `docs/design/checkout.md`, "Carried files".

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{Index, mode};
use pronto_io::dir::{BlockSharing, CopyFailure, Directory, EntryKind, TreeCopy, is_missing};
use pronto_io::error::{IoContext, OsReason};
use pronto_io::watch::Watch;
use pronto_worktree::ignore::{IgnoreStack, Patterns};

use super::refused;
use crate::status::{ignore_patterns, read_ignore_file};
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::Notice;

/// The ignored files to copy to a new worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// The patterns of the files, in the syntax of `.gitignore` and relative to the top. A later
    /// pattern overrides an earlier one. If empty, no files are copied.
    pub patterns: Vec<BString>,
    /// Whether the copies share their disk blocks with the originals (reflinks).
    pub sharing: BlockSharing,
}

/// Fails early if files must share blocks, and the file system does not support reflinks.
pub(super) fn check_carry(repository: &Repository, carry: &Carry) -> Result<()> {
    if carry.patterns.is_empty() {
        return Ok(());
    }
    let path = repository.require_work_tree()?;
    let top = Directory::open(path).context(ErrorKind::Io, "cannot open", path)?;
    let cannot = top
        .file_system()
        .is_ok_and(pronto_io::file_system::FileSystem::never_shares_blocks);
    match carry.sharing {
        BlockSharing::Always if cannot => {
            let place = path.display();
            Err(cannot_share(&format!("'{place}'")))
        }
        _ => Ok(()),
    }
}

/// Copies the files that match the patterns to the worktree of `inside`, after its checkout.
pub(super) fn carry(
    repository: &Repository,
    carry: &Carry,
    inside: &Repository,
    watch: &Watch<'_>,
) -> Result<()> {
    if carry.patterns.is_empty() {
        return Ok(());
    }
    let open = |repository: &Repository| -> Result<Directory> {
        let path = repository.require_work_tree()?;
        Directory::open(path).context(ErrorKind::Io, "cannot open", path)
    };
    let (source, target) = (open(repository)?, open(inside)?);
    let roots = find_carried(repository, &source, carry, watch)?;
    let there = inside.index()?;
    let is_forbidden = |path: &[u8], is_directory: bool| is_tracked(&there, path, is_directory);
    let meter = watch.progress().begin("Carrying files", None);
    let copy = TreeCopy {
        source: &source,
        target: &target,
        sharing: carry.sharing,
        workers: repository.checkout_options()?.workers,
        meter: &meter,
        interrupt: watch.interrupt(),
        is_forbidden: &is_forbidden,
    };
    let skipped = copy.run(&roots).map_err(failed)?;
    meter.finish();
    for skipped in skipped {
        repository.notify(Notice::NotCarried {
            path: skipped.path.into(),
            reason: skipped.reason,
        });
    }
    Ok(())
}

/// Returns the paths that match the patterns. A matching directory is returned as a whole.
fn find_carried(
    repository: &Repository,
    top: &Directory,
    carry: &Carry,
    watch: &Watch<'_>,
) -> Result<Vec<Vec<u8>>> {
    let index = repository.index()?;
    let ignored = ignore_patterns(repository)?;
    let objects = repository.objects()?;
    let read =
        |directory: &BStr| read_ignore_file(top, b".gitignore", &index, Some(objects), directory);
    let mut wanted = Patterns::new(repository.ignores_case()?);
    for pattern in &carry.patterns {
        wanted.add_pattern(pattern);
    }
    let mut search = CarriedPaths {
        top,
        index: &index,
        watch,
        ignored: IgnoreStack::new(&ignored, Some(&read)),
        wanted: IgnoreStack::new(&wanted, None),
        found: Vec::new(),
        left: vec![BString::default()],
    };
    while let Some(directory) = search.left.pop() {
        search.directory(directory.as_bstr())?;
    }
    search.found.sort();
    Ok(search.found)
}

/// Searches the paths to copy, directory by directory.
struct CarriedPaths<'a> {
    top: &'a Directory,
    index: &'a Index,
    watch: &'a Watch<'a>,
    ignored: IgnoreStack<'a>,
    wanted: IgnoreStack<'a>,
    found: Vec<Vec<u8>>,
    /// Directories that have not been searched.
    left: Vec<BString>,
}

impl CarriedPaths<'_> {
    fn directory(&mut self, directory: &BStr) -> Result<()> {
        let stopped = |_| Error::new(ErrorKind::Interrupted, "interrupted");
        self.watch.interrupt().check().map_err(stopped)?;
        let opened = self.top.open_readable_beneath(directory);
        let entries = match opened.and_then(|opened| opened.entries()) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => {
                let message = format!("could not open directory '{directory}/'");
                return Err(Error::new(ErrorKind::Io, message).because(OsReason(error)));
            }
        };
        let is_top = directory.is_empty();
        if !is_top && entries.iter().any(|(name, _)| name == b".git") {
            // Files in a nested repository are not copied.
            return Ok(());
        }
        self.ignored.enter(directory);
        self.wanted.enter(directory);
        let mut below = Vec::new();
        for (name, kind) in entries {
            if name == b".git" {
                continue;
            }
            let mut path = directory.to_owned();
            if !is_top {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            let is_directory = match kind {
                EntryKind::Unknown => self.is_directory(directory, &name),
                kind => kind == EntryKind::Directory,
            };
            if self.takes(path.as_bstr(), is_directory) {
                self.found.push(path.into());
            } else if is_directory && self.index.stages(path.as_bstr()).is_empty() {
                below.push(path);
            }
        }
        // In this order, each ignore file is read once.
        below.sort_by(|one, other| other.cmp(one));
        self.left.extend(below);
        Ok(())
    }

    /// Whether `path` is copied: untracked, ignored, and matched by a pattern.
    fn takes(&self, path: &BStr, is_directory: bool) -> bool {
        self.wanted.is_ignored(path, is_directory)
            && self.ignored.is_ignored(path, is_directory)
            && self.index.stages(path).is_empty()
            && self.index.below(path).is_empty()
    }

    fn is_directory(&self, directory: &BStr, name: &[u8]) -> bool {
        let opened = self.top.open_beneath(directory);
        let metadata = opened.and_then(|opened| opened.metadata(name));
        metadata.is_ok_and(|metadata| metadata.is_directory())
    }
}

/// Whether the index has an entry at `path`, or for a directory, an entry below it. Nothing else
/// may be copied to such a path.
fn is_tracked(index: &Index, path: &[u8], is_directory: bool) -> bool {
    let path = path.as_bstr();
    if !index.stages(path).is_empty() {
        return true;
    }
    !is_directory && !index.below(path).is_empty() || is_in_submodule(index, path)
}

/// Whether `path` is inside a submodule.
fn is_in_submodule(index: &Index, path: &BStr) -> bool {
    let ends = path.find_iter(b"/");
    let mut stages = ends.flat_map(|end| index.stages(path[..end].as_bstr()));
    stages.any(|at| index.entry(at).mode == mode::GITLINK)
}

fn failed(failure: CopyFailure) -> Error {
    let path = failure.path.as_bstr();
    if failure.cannot_share {
        return cannot_share(&format!("'{path}'")).because(OsReason(failure.error));
    }
    if failure.error.kind() == std::io::ErrorKind::Interrupted {
        return Error::new(ErrorKind::Interrupted, "interrupted");
    }
    let message = format!("could not carry '{path}'");
    Error::new(ErrorKind::Io, message).because(OsReason(failure.error))
}

fn cannot_share(what: &str) -> Error {
    refused(format!(
        "could not carry {what}: the file system cannot share blocks of files; \
         --carry-reflink=auto copies them"
    ))
}
