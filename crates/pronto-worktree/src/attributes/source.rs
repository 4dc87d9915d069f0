//! The source of a directory's `.gitattributes`.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::EntryRef;
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::short::Short as _;
use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, Links};

use crate::objects::{self, Objects};
use crate::{Error, ErrorKind};

/// The name of the files.
pub(super) const NAME: &[u8] = b".gitattributes";

/// Reads the `.gitattributes` of directories.
pub trait Source: Send + Sync {
    /// The `.gitattributes` of `directory` (no slash at its end, empty for the top), if it has
    /// one.
    ///
    /// # Errors
    /// When there is one and it cannot be read.
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error>;

    /// Takes the directories whose file is a symbolic link, which is skipped.
    fn take_links(&self) -> Vec<BString> {
        Vec::new()
    }
}

/// Attributes that are in memory, by directory.
pub type Directories = HashMap<BString, Vec<u8>>;

impl Source for Directories {
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get(directory).cloned())
    }
}

/// From the worktree, and if it has none, from `otherwise`: for examining and adding files.
pub struct FromWorktree<S> {
    top: Directory,
    otherwise: S,
    links: Mutex<Vec<BString>>,
}

impl<S> FromWorktree<S> {
    /// The worktree whose top is `top`. `otherwise` is asked where it has no file: usually the
    /// index, or nothing (`Directories`).
    pub fn new(top: Directory, otherwise: S) -> Self {
        FromWorktree {
            top,
            otherwise,
            links: Mutex::default(),
        }
    }
}

impl<S: Source> Source for FromWorktree<S> {
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        let file = match directory.is_empty() {
            true => self.top.open_file(NAME),
            // One call, and none for the directory.
            false => {
                let path = [directory.as_bytes(), b"/", NAME].concat();
                self.top.open_file_beneath(&path)
            }
        };
        match found(file, directory)? {
            Found::File(Some(content)) => return Ok(Some(content)),
            Found::Link => {
                let links = self.links.lock();
                let mut links = links.unwrap_or_else(PoisonError::into_inner);
                links.push(directory.to_owned());
            }
            _ => {}
        }
        self.otherwise.read(directory)
    }

    fn take_links(&self) -> Vec<BString> {
        let links = self.links.lock();
        std::mem::take(&mut links.unwrap_or_else(PoisonError::into_inner))
    }
}

/// From blobs, and where there is none, from the worktree: what holds while files are checked
/// out.
pub struct FromIndex<O> {
    /// The blob of each directory that has one.
    pub blobs: HashMap<BString, ObjectId>,
    /// The store of the blobs.
    pub objects: O,
    /// The worktree, unless it is known to be empty.
    pub worktree: Option<Growing>,
}

/// A worktree that directories are added to while it is read. Those that were not there when they
/// were asked for are taken to have nothing but what is checked out, and so is all below them: so
/// directories are to be asked for from the top down. Remembers each directory that was missing.
/// `Send + Sync`, for any number of threads at once.
#[derive(Debug)]
pub struct Growing {
    top: Directory,
    missing: RwLock<HashSet<BString>>,
    /// Directories whose file does not count, whether it is gone already or not.
    going: HashSet<BString>,
}

impl Growing {
    /// The worktree whose top is `top`.
    pub fn new(top: Directory) -> Self {
        Growing {
            top,
            missing: RwLock::default(),
            going: HashSet::new(),
        }
    }

    /// Of the files at `paths` those with attributes do not count any more: they are about to be
    /// removed. One pass over them; only directories with attributes are remembered.
    #[must_use]
    pub fn without<'a>(mut self, paths: impl IntoIterator<Item = &'a BStr>) -> Self {
        let directories = paths.into_iter().filter_map(directory_of);
        self.going.extend(directories.map(ToOwned::to_owned));
        self
    }

    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        if self.going.contains(directory) {
            return Ok(None);
        }
        let above = directory
            .last_position_of(b'/')
            .map(|slash| &directory[..slash]);
        let known = self.missing.read().unwrap_or_else(PoisonError::into_inner);
        let is_missing = above.is_some_and(|above| known.contains(above.as_bstr()));
        drop(known);
        let found = match is_missing {
            true => Found::NoDirectory,
            false => look(&self.top, directory)?,
        };
        match found {
            Found::File(content) => Ok(content),
            Found::Nothing | Found::Link => Ok(None),
            Found::NoDirectory => {
                let missing = self.missing.write();
                let mut missing = missing.unwrap_or_else(PoisonError::into_inner);
                missing.insert(directory.to_owned());
                Ok(None)
            }
        }
    }
}

impl<O> FromIndex<O> {
    /// Returns the blobs of attributes files among the entries of an index. For a conflict our side
    /// counts, as in Git.
    pub fn find_in_index<'a>(
        entries: impl IntoIterator<Item = EntryRef<'a>>,
    ) -> HashMap<BString, ObjectId> {
        let counts = |entry: &EntryRef<'_>| matches!(entry.stage(), 0 | 2);
        let entries = entries.into_iter().filter(counts);
        Self::find(entries.map(|entry| (entry.path, entry.id.to_owned())))
    }

    /// The blobs of attributes among paths and ids of a tree.
    pub fn find<'a>(
        entries: impl IntoIterator<Item = (&'a BStr, ObjectId)>,
    ) -> HashMap<BString, ObjectId> {
        entries
            .into_iter()
            .filter_map(|(path, id)| Some((directory_of(path)?.to_owned(), id)))
            .collect()
    }
}

/// Returns the directory whose attributes are in the file at `path`, if it is an attributes file.
fn directory_of(path: &BStr) -> Option<&BStr> {
    let directory = path.strip_suffix(NAME)?;
    match directory.split_last() {
        None => Some(directory.as_bstr()),
        Some((b'/', above)) => Some(above.as_bstr()),
        Some(_) => None,
    }
}

impl<O: Objects> Source for FromIndex<O> {
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        if let Some(id) = self.blobs.get(directory) {
            let mut buffer = Vec::new();
            objects::blob(&self.objects, id, &mut buffer)?;
            return Ok((buffer.len() as u64 <= LARGEST_TEXT_BYTES).then_some(buffer));
        }
        match &self.worktree {
            Some(worktree) => worktree.read(directory),
            None => Ok(None),
        }
    }
}

/// The result of looking for the attributes file of a directory.
enum Found {
    /// A file, unless it is too large or no file.
    File(Option<Vec<u8>>),
    Nothing,
    /// A symbolic link in its place, or on the way to it.
    Link,
    NoDirectory,
}

fn look(top: &Directory, directory: &BStr) -> Result<Found, Error> {
    let file = if directory.is_empty() {
        top.open_file(NAME)
    } else {
        match top.open_beneath(directory) {
            Ok(directory) => directory.open_file(NAME),
            Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(Found::NoDirectory),
            Err(error) => Err(error),
        }
    };
    found(file, directory)
}

fn found(file: std::io::Result<std::fs::File>, directory: &BStr) -> Result<Found, Error> {
    let shown = || Path::new(&directory.to_str_lossy().into_owned()).join(".gitattributes");
    match file {
        Ok(file) => {
            let content = read_limited(&file);
            let content = content.context(ErrorKind::Patterns, "unable to read", shown());
            content.map(Found::File)
        }
        // Not there, below a file, or at a path that the system does not permit: as if there were
        // none.
        Err(error)
            if matches!(
                error.kind(),
                IoErrorKind::NotFound
                    | IoErrorKind::NotADirectory
                    | IoErrorKind::PermissionDenied
                    | IoErrorKind::InvalidFilename
            ) =>
        {
            Ok(Found::Nothing)
        }
        Err(error) if is_link_error(&error) => Ok(Found::Link),
        Err(error) => Err(error).context(ErrorKind::Patterns, "unable to access", shown()),
    }
}

fn is_link_error(error: &std::io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

/// Reads a file; `None` if it exceeds Git's limit or is not a regular file.
fn read_limited(file: &std::fs::File) -> std::io::Result<Option<Vec<u8>>> {
    match untrusted::read_open(file, LARGEST_TEXT_BYTES) {
        Ok(content) => Ok(Some(content)),
        Err(error) if is_unfit(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether what was found is not a file that is read.
fn is_unfit(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        IoErrorKind::InvalidInput | IoErrorKind::IsADirectory | IoErrorKind::FileTooLarge
    )
}

/// A file that the user or the administrator named.
pub(super) fn read_global(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match untrusted::open(path, Links::Follow) {
        Err(error) if is_unfit(&error) => Ok(None),
        Ok(file) => read_limited(&file).context(ErrorKind::Patterns, "unable to read", path),
        Err(error)
            if matches!(
                error.kind(),
                IoErrorKind::NotFound | IoErrorKind::NotADirectory | IoErrorKind::PermissionDenied
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error).context(ErrorKind::Patterns, "unable to access", path),
    }
}
