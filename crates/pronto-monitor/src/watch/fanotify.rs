//! Watches a directory tree with `fanotify`: one mark for each file system.
//!
//! The start is independent of the number of directories. An event contains the handle of a
//! directory. One system call opens the directory on the mount of the top, and three read its path
//! and that of the top. The paths are cached until any directory on these file systems is renamed.
//! So most events, also those of other users of the file system, cost only a lookup in the cache.
//!
//! The path is the current one, not the one at the time of the event. This is sufficient, because
//! the events of later renames are in the queue, too: an event for a moved directory reports both
//! names and all entries below it.

use super::events::{self, DirectoryId, Event, EventError, EventIter};
use super::{Doubt, Drained, WatchState, add_directory, is_git, is_gone, join};
use crate::Journal;
use bstr::{BString, ByteSlice};
use pronto_io::dir::Directory;
use pronto_io::fanotify::{FanotifyGroup, handle_of, open_handle};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The size of the buffer for events.
const CHUNK_BYTES: usize = 64 * 1024;
/// The number of cached directories at which the cache is cleared.
const MOST_KNOWN: usize = 65_536;
/// The number of attempts to read a path while parent directories of the top are renamed.
const TRIES: usize = 8;

/// A mount on which directories are opened by handle.
#[derive(Debug)]
struct WatchedMount {
    file_system: u64,
    /// The mount point, or `None` for the mount of the top. It is not kept open, so that it can be
    /// unmounted.
    point: Option<PathBuf>,
}

/// The marks on file systems, and the state for interpreting their events.
#[derive(Debug)]
pub(super) struct Fanotify {
    group: FanotifyGroup,
    mounts: Vec<WatchedMount>,
    /// The identity and the handle of the directory for cookies.
    cookies: Option<(Vec<u8>, Directory)>,
    /// The parent directory of the top and the name of the top in it, or `None` if the top is a
    /// mount point.
    above: Option<(Vec<u8>, Vec<u8>)>,
    /// The cached paths of directories. A directory outside of the top has none.
    known: HashMap<Vec<u8>, Vec<BString>>,
    buffer: Vec<u8>,
}

impl Fanotify {
    /// # Errors
    /// Fails if `fanotify` is not permitted, or not supported by the kernel.
    pub(super) fn new() -> io::Result<Fanotify> {
        Ok(Fanotify {
            group: FanotifyGroup::new()?,
            mounts: Vec::new(),
            cookies: None,
            above: None,
            known: HashMap::new(),
            buffer: vec![0; CHUNK_BYTES],
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }

    /// Returns whether the directory for cookies was removed. Costs one system call.
    pub(super) fn has_ended(&self) -> bool {
        let cookies = self.cookies.as_ref();
        cookies.is_some_and(|(_, directory)| is_gone(directory))
    }

    /// Marks the file systems of the top, of the mounts below it, and of the directory for cookies.
    /// Costs some system calls for each mount.
    pub(super) fn start(&mut self, common: &mut WatchState) -> io::Result<()> {
        self.group.remove_all(&common.root)?;
        self.known.clear();
        self.mounts.clear();
        self.add_mount(&common.root, None)?;
        for point in common.mounts.clone() {
            match Directory::open(&point) {
                Ok(directory) => self.add_mount(&directory, Some(point))?,
                // The mount was removed, or a parent directory was renamed.
                Err(_) => common.doubt(Doubt::Mount(point.as_os_str().as_bytes().into())),
            }
        }
        let cookies = Directory::open(&common.cookies).inspect_err(|error| {
            common.has_ended |= error.kind() == io::ErrorKind::NotFound;
        })?;
        if !self.is_marked(file_system_of(&cookies)?) {
            self.group.add_directory(&cookies)?;
        }
        self.cookies = Some((place_of(&cookies)?, cookies));
        let path = link(&common.root)?;
        let name = path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..].to_vec();
        // Read after marking, so that a later rename is reported.
        let above = above(&common.root)?;
        self.above = match self.is_marked(file_system_of(&above)?) {
            true => Some((place_of(&above)?, name)),
            // The top is a mount point, which cannot be renamed.
            false => None,
        };
        Ok(())
    }

    fn is_marked(&self, file_system: u64) -> bool {
        let mut mounts = self.mounts.iter();
        mounts.any(|mount| mount.file_system == file_system)
    }

    /// Marks the file system of `directory`, if its file handles can be opened again.
    fn add_mount(&mut self, directory: &Directory, point: Option<PathBuf>) -> io::Result<()> {
        let file_system = file_system_of(directory)?;
        if !self.is_marked(file_system) {
            self.group.add_file_system(directory)?;
        }
        let same = open_handle(directory, &handle_of(directory)?)?.own_metadata()?;
        let own = directory.own_metadata()?;
        if (same.device, same.inode) != (own.device, own.inode) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.mounts.push(WatchedMount { file_system, point });
        Ok(())
    }

    /// Processes all pending events. Returns whether some were lost.
    pub(super) fn drain(
        &mut self,
        common: &mut WatchState,
        journal: &mut Journal,
    ) -> io::Result<Drained> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let drained = loop {
            let len = match self.group.read(&mut buffer) {
                Ok(0) => break Ok(Drained::All),
                Ok(len) => len,
                Err(error) => break Err(error),
            };
            let noted = EventIter::new(&buffer[..len]).try_for_each(|event| match event {
                Ok(event) => self.note(&event, common, journal),
                Err(EventError::Lost) => Err(Errno::OVERFLOW.into()),
                Err(EventError::Malformed) => Err(io::ErrorKind::InvalidData.into()),
            });
            if noted.is_err() {
                // The marks are still valid, but some events were not received.
                break Ok(Drained::Lost);
            }
        };
        self.buffer = buffer;
        drained
    }

    fn note(
        &mut self,
        event: &Event<'_>,
        common: &mut WatchState,
        journal: &mut Journal,
    ) -> io::Result<()> {
        let cookies = self.cookies.as_ref();
        if cookies.is_some_and(|(place, _)| event.place == place) {
            if event.appears() {
                common.seen_cookies.push(event.name.to_vec());
            }
            return Ok(());
        }
        if event.moves_directory() {
            let moved = (event.place, event.name);
            let top = self.above.as_ref();
            common.has_ended |= top.is_some_and(|(place, name)| moved == (place, name));
            self.known.clear();
        }
        if !self.known.contains_key(event.place) {
            let paths = self.paths(event.place, &common.root)?;
            if self.known.len() >= MOST_KNOWN {
                self.known.clear();
            }
            self.known.insert(event.place.to_vec(), paths);
        }
        for directory in self.known.get(event.place).into_iter().flatten() {
            note_name(directory, event, common, journal);
        }
        Ok(())
    }

    /// Returns the paths of a directory below the top for which changes are reported.
    fn paths(&self, place: &DirectoryId, root: &Directory) -> io::Result<Vec<BString>> {
        let parts = events::split(place).ok_or(io::ErrorKind::InvalidData)?;
        let (file_system, handle) = (parts.file_system, parts.handle);
        for _ in 0..TRIES {
            let top = link(root)?;
            let mut paths = Vec::new();
            for mount in &self.mounts {
                if mount.file_system != file_system {
                    continue;
                }
                let point = mount.point.as_ref();
                let point = point.map(|point| Directory::open(point)).transpose()?;
                let directory = match open_handle(point.as_ref().unwrap_or(root), handle) {
                    Ok(directory) => directory,
                    // The directory was removed. The event of its parent directory reports that.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::STALE) => continue,
                    Err(error) => return Err(error),
                };
                let path = link(&directory)?;
                let path = below(&path, &top).map(BString::from);
                paths.extend(path.filter(|path| counts(path) && !paths.contains(path)));
            }
            if link(root)? == top {
                return Ok(paths);
            }
        }
        Err(Errno::AGAIN.into())
    }
}

fn note_name(
    directory: &BString,
    event: &Event<'_>,
    common: &mut WatchState,
    journal: &mut Journal,
) {
    if is_git(directory) {
        return journal.add(directory.clone());
    }
    if event.name == b"." {
        return match directory.is_empty() {
            true => journal.restart(),
            false => add_directory(directory, journal),
        };
    }
    let path = join(directory, event.name);
    if path == ".git" {
        return;
    }
    if !event.is_directory() {
        return journal.add(path);
    }
    add_directory(&path, journal);
    if event.appears() {
        // Its entries may have been moved with the directory.
        common.walk(path, Some(journal), |_, path, _| Ok(!is_git(path)));
    }
}

/// Returns whether changes in the directory at `path` are reported. Changes in the `.git` of the
/// worktree are not. In a nested repository, only changes of the entries of its `.git` itself are.
fn counts(path: &[u8]) -> bool {
    !(path == b".git" || path.starts_with(b".git/") || path.contains_str("/.git/"))
}

/// Returns `path` relative to `top`, or `None` if `path` is outside of `top`.
fn below<'a>(path: &'a [u8], top: &[u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(top)?;
    match rest {
        [] => Some(rest),
        [b'/', rest @ ..] => Some(rest),
        // The top is the root directory.
        _ => (top == b"/").then_some(rest),
    }
}

fn file_system_of(directory: &Directory) -> io::Result<u64> {
    Ok(rustix::fs::fstatvfs(directory)?.f_fsid)
}

/// Returns the identity of a directory, as events contain it.
fn place_of(directory: &Directory) -> io::Result<Vec<u8>> {
    let file_system = file_system_of(directory)?;
    Ok(events::join(file_system, &handle_of(directory)?))
}

/// Returns the current path of an open directory.
fn link(directory: &Directory) -> io::Result<Vec<u8>> {
    let path = std::fs::read_link(directory.open_path())?;
    Ok(path.into_os_string().into_vec())
}

fn above(directory: &Directory) -> io::Result<Directory> {
    Directory::open(&directory.open_path().join(".."))
}
