//! Removes the selected paths.

use pronto_io::watch::Watch;

use super::*;

/// Removes `found`, in order.
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
            remover.said.push(Event::Removed(Place { path, root: 0 }));
        }
    }
    Ok(remover.said)
}

struct Remover<'a> {
    repository: &'a Repository,
    top: &'a Directory,
    options: &'a Options,
    /// The current directory, which stays.
    here: Option<BString>,
    /// The length of the directory that goes as a whole.
    root: usize,
    said: Vec<Event>,
}

impl Remover<'_> {
    fn place(&self, path: BString) -> Place {
        let root = match self.root < path.len() {
            true => self.root,
            false => 0,
        };
        Place { path, root }
    }

    fn parent(&self, path: &BStr) -> io::Result<Directory> {
        self.top.open_beneath(crate::path::split(path).0)
    }

    fn fail(&mut self, path: &BStr, error: io::Error) {
        let place = self.place(path.to_owned());
        self.said.push(Event::Failed(place, error));
    }

    /// Removes a file. Returns whether it was removed, or would be.
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

    /// Removes a directory. Returns whether it was removed, or would be. Paths that are removed
    /// from a directory that stays are reported.
    fn directory(&mut self, path: &BStr) -> bool {
        if !self.options.repositories && is_nested_repository(self.repository, path) {
            let place = self.place(path.to_owned());
            self.said.push(Event::Repository(place));
            return false;
        }
        let listed = self
            .top
            .open_beneath(path)
            .and_then(|opened| opened.entries());
        let (mut goes, mut gone) = (true, Vec::new());
        // One that cannot be read may be empty.
        for (name, kind) in listed.unwrap_or_default() {
            let mut below = path.to_owned();
            below.push(b'/');
            below.extend_from_slice(&name);
            let is_directory = match kind {
                EntryKind::Unknown => {
                    let opened = self.top.open_beneath(path);
                    let metadata = opened.and_then(|opened| opened.metadata(&name));
                    metadata.is_ok_and(|metadata| metadata.is_directory())
                }
                kind => kind == EntryKind::Directory,
            };
            let is_gone = match is_directory {
                true => self.directory(below.as_bstr()),
                false => self.file(below.as_bstr()),
            };
            match is_gone {
                true => gone.push(Event::Removed(self.place(below))),
                false => goes = false,
            }
        }
        if goes && self.here.as_ref().is_some_and(|here| here == path) {
            self.said.push(Event::Here);
            goes = false;
        }
        if goes && !self.options.dry_run {
            let name = crate::path::split(path).1;
            let removed = self
                .parent(path)
                .and_then(|parent| parent.remove_directory(name));
            if let Err(error) = removed {
                self.fail(path, error);
                goes = false;
            }
        }
        if !goes {
            self.said.append(&mut gone);
        }
        goes
    }
}
