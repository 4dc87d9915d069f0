//! Removes the selected paths.

use pronto_io::watch::Watch;

use super::*;

/// Removes the paths `found`, in order.
pub(super) fn remove(
    repository: &Repository,
    top: &Directory,
    found: &[BString],
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<Event>> {
    let here = repository.directory_to_keep();
    let mut remover = Remover {
        repository,
        top,
        options,
        here,
        root: 0,
        said: Vec::new(),
    };
    for path in found {
        let stopped = |_| Error::new(ErrorKind::Interrupted, "interrupted");
        watch.interrupt().check().map_err(stopped)?;
        let gone = match path.strip_suffix(b"/") {
            Some(directory) => {
                remover.root = path.len();
                remover.directory(directory.as_bstr())
            }
            None => {
                remover.root = 0;
                remover.file(path.as_bstr())
            }
        };
        if gone {
            let path = path.clone();
            remover
                .said
                .push(Event::Removed(CleanPath { path, root: 0 }));
        }
    }
    Ok(remover.said)
}

struct Remover<'a> {
    repository: &'a Repository,
    top: &'a Directory,
    options: &'a Options,
    /// The current directory, which is not removed.
    here: Option<BString>,
    /// The length of the leading directory that is removed as a whole.
    root: usize,
    said: Vec<Event>,
}

/// A directory that is being removed: one level of the stack of the walk. The stack is on the heap,
/// because directories can be nested more deeply than a thread's stack permits.
struct DirectoryRemoval {
    path: BString,
    entries: std::vec::IntoIter<(Vec<u8>, EntryKind)>,
    /// Whether all entries so far were removed, or would be.
    goes: bool,
    /// The removed paths, which are reported if the directory itself is not removed.
    gone: Vec<Event>,
}

impl Remover<'_> {
    fn place(&self, path: BString) -> CleanPath {
        let root = match self.root < path.len() {
            true => self.root,
            false => 0,
        };
        CleanPath { path, root }
    }

    fn parent(&self, path: &BStr) -> io::Result<Directory> {
        self.top.open_beneath(crate::path::split(path).0)
    }

    fn fail(&mut self, path: &BStr, error: io::Error) {
        let place = self.place(path.to_owned());
        self.said.push(Event::Failed(place, error));
    }

    /// Removes a file. Returns whether the file was removed, or would be.
    fn file(&mut self, path: &BStr) -> bool {
        let name = crate::path::split(path).1;
        let removed = match self.options.dry_run {
            true => Ok(()),
            false => self
                .parent(path)
                .and_then(|parent| parent.remove_file(name)),
        };
        match removed {
            Ok(()) => true,
            Err(error) => {
                self.fail(path, error);
                false
            }
        }
    }

    /// Removes a directory. Returns whether the directory was removed, or would be. If it is not,
    /// its removed paths are reported.
    fn directory(&mut self, path: &BStr) -> bool {
        let mut levels: Vec<DirectoryRemoval> = self.level(path.to_owned()).into_iter().collect();
        let mut is_gone = false;
        while let Some(level) = levels.last_mut() {
            let (path, gone) = if let Some((name, kind)) = level.entries.next() {
                let mut below = level.path.clone();
                below.push(b'/');
                below.extend_from_slice(&name);
                let is_directory = match kind {
                    EntryKind::Unknown => self.is_directory(level.path.as_bstr(), &name),
                    kind => kind == EntryKind::Directory,
                };
                if !is_directory {
                    let gone = self.file(below.as_bstr());
                    (below, gone)
                } else if let Some(entered) = self.level(below.clone()) {
                    levels.push(entered);
                    continue;
                } else {
                    (below, false)
                }
            } else {
                let Some(level) = levels.pop() else { break };
                is_gone = level.goes && self.empty_directory(level.path.as_bstr());
                if !is_gone {
                    self.said.extend(level.gone);
                }
                (level.path, is_gone)
            };
            let Some(level) = levels.last_mut() else {
                continue;
            };
            match gone {
                true => level.gone.push(Event::Removed(self.place(path))),
                false => level.goes = false,
            }
        }
        is_gone
    }

    /// Lists a directory to remove; `None` for a nested repository that is skipped.
    fn level(&mut self, path: BString) -> Option<DirectoryRemoval> {
        if !self.options.repositories && is_nested_repository(self.repository, path.as_bstr()) {
            self.said.push(Event::Repository(self.place(path)));
            return None;
        }
        let opened = self.top.open_beneath(path.as_bstr());
        let listed = opened.and_then(|opened| opened.entries());
        Some(DirectoryRemoval {
            path,
            // An unreadable directory may be empty.
            entries: listed.unwrap_or_default().into_iter(),
            goes: true,
            gone: Vec::new(),
        })
    }

    fn is_directory(&self, directory: &BStr, name: &[u8]) -> bool {
        let opened = self.top.open_beneath(directory);
        let metadata = opened.and_then(|opened| opened.metadata(name));
        metadata.is_ok_and(|metadata| metadata.is_directory())
    }

    /// Removes a directory whose entries were all removed. Returns whether the directory was
    /// removed, or would be.
    fn empty_directory(&mut self, path: &BStr) -> bool {
        if self.here.as_ref().is_some_and(|here| here == path) {
            self.said.push(Event::Here);
            return false;
        }
        if self.options.dry_run {
            return true;
        }
        let name = crate::path::split(path).1;
        let removed = self
            .parent(path)
            .and_then(|parent| parent.remove_directory(name));
        match removed {
            Ok(()) => true,
            Err(error) => {
                self.fail(path, error);
                false
            }
        }
    }
}
