//! Sources of the `.gitattributes` file of a directory.

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
use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, SymlinkPolicy};

use crate::objects::{self, ObjectSource};
use crate::{Error, ErrorKind};

/// The name of the attributes files.
pub(super) const NAME: &[u8] = b".gitattributes";

/// Reads the `.gitattributes` of directories.
pub trait ReadAttributes: Send + Sync {
    /// Returns the content of the `.gitattributes` of `directory`, if the file exists. `directory` has
    /// no slash at its end and is empty for the top.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Patterns`] if the file exists and cannot be read.
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error>;

    /// Removes and returns the directories whose file is a symbolic link. Such files are skipped.
    fn take_links(&self) -> Vec<BString> {
        Vec::new()
    }
}

/// Attributes files in memory, by directory.
pub type AttributesByDirectory = HashMap<BString, Vec<u8>>;

impl ReadAttributes for AttributesByDirectory {
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get(directory).cloned())
    }
}

/// A source that reads the worktree first, and `otherwise` if the worktree has no file. `git add` and
/// `git status` use it.
pub struct FromWorktree<S> {
    top: Directory,
    otherwise: S,
    links: Mutex<Vec<BString>>,
}

impl<S> FromWorktree<S> {
    /// Creates a source for the worktree with the top `top`. `otherwise` is queried for missing files:
    /// usually the index, or an empty source (`AttributesByDirectory`).
    pub fn new(top: Directory, otherwise: S) -> Self {
        FromWorktree {
            top,
            otherwise,
            links: Mutex::default(),
        }
    }
}

impl<S: ReadAttributes> ReadAttributes for FromWorktree<S> {
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        let file = match directory.is_empty() {
            true => self.top.open_file(NAME),
            // A single system call opens the file; the directory is not opened.
            false => {
                let path = [directory.as_bytes(), b"/", NAME].concat();
                self.top.open_file_beneath(&path)
            }
        };
        match found(file, directory)? {
            AttributesFile::File(Some(content)) => return Ok(Some(content)),
            AttributesFile::Link => {
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

/// A source that reads blobs of the index first, and the worktree if there is no blob. Checkouts use
/// it.
pub struct FromIndex<O> {
    /// The blob of each directory that has an attributes file.
    pub blobs: HashMap<BString, ObjectId>,
    /// The store of the blobs.
    pub objects: O,
    /// The worktree; `None` if the worktree is known to be empty.
    pub worktree: Option<Growing>,
}

/// A worktree to which directories are added while attributes are read. A directory that does not exist
/// at the time of its query, and everything below it, is assumed to contain only checked out files.
/// Therefore directories must be queried from the top down. Missing directories are cached. A `Growing`
/// is `Send + Sync`, and several threads may use it at the same time.
#[derive(Debug)]
pub struct Growing {
    top: Directory,
    missing: RwLock<HashSet<BString>>,
    /// The directories whose attributes file is ignored because the plan removes it.
    going: HashSet<BString>,
}

impl Growing {
    /// Creates a source for the worktree with the top `top`.
    pub fn new(top: Directory) -> Self {
        Growing {
            top,
            missing: RwLock::default(),
            going: HashSet::new(),
        }
    }

    /// Ignores the attributes files among `paths`, because they are about to be removed. Makes one pass
    /// over the paths and stores only directories of attributes files.
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
            true => AttributesFile::NoDirectory,
            false => look(&self.top, directory)?,
        };
        match found {
            AttributesFile::File(content) => Ok(content),
            AttributesFile::Nothing | AttributesFile::Link => Ok(None),
            AttributesFile::NoDirectory => {
                let missing = self.missing.write();
                let mut missing = missing.unwrap_or_else(PoisonError::into_inner);
                missing.insert(directory.to_owned());
                Ok(None)
            }
        }
    }
}

impl<O> FromIndex<O> {
    /// Returns the blobs of attributes files in the entries of an index. As in Git, our side is used
    /// for a conflict.
    pub fn find_in_index<'a>(
        entries: impl IntoIterator<Item = EntryRef<'a>>,
    ) -> HashMap<BString, ObjectId> {
        let counts = |entry: &EntryRef<'_>| matches!(entry.stage(), 0 | 2);
        let entries = entries.into_iter().filter(counts);
        Self::find(entries.map(|entry| (entry.path, entry.id.to_owned())))
    }

    /// Returns the blobs of attributes files in the paths and ids of a tree.
    pub fn find<'a>(
        entries: impl IntoIterator<Item = (&'a BStr, ObjectId)>,
    ) -> HashMap<BString, ObjectId> {
        entries
            .into_iter()
            .filter_map(|(path, id)| Some((directory_of(path)?.to_owned(), id)))
            .collect()
    }
}

/// Returns the directory of the attributes file at `path`, if `path` is an attributes file.
fn directory_of(path: &BStr) -> Option<&BStr> {
    let directory = path.strip_suffix(NAME)?;
    match directory.split_last() {
        None => Some(directory.as_bstr()),
        Some((b'/', above)) => Some(above.as_bstr()),
        Some(_) => None,
    }
}

impl<O: ObjectSource> ReadAttributes for FromIndex<O> {
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

/// The result of looking up the attributes file of a directory.
enum AttributesFile {
    /// The content of a file; `None` if the file is too large or not a regular file.
    File(Option<Vec<u8>>),
    Nothing,
    /// The file, or a directory of its path, is a symbolic link.
    Link,
    NoDirectory,
}

fn look(top: &Directory, directory: &BStr) -> Result<AttributesFile, Error> {
    let file = if directory.is_empty() {
        top.open_file(NAME)
    } else {
        match top.open_beneath(directory) {
            Ok(directory) => directory.open_file(NAME),
            Err(error) if error.kind() == IoErrorKind::NotFound => {
                return Ok(AttributesFile::NoDirectory);
            }
            Err(error) => Err(error),
        }
    };
    found(file, directory)
}

fn found(file: std::io::Result<std::fs::File>, directory: &BStr) -> Result<AttributesFile, Error> {
    let shown = || Path::new(&directory.to_str_lossy().into_owned()).join(".gitattributes");
    match file {
        Ok(file) => {
            let content = read_limited(&file);
            let content = content.context(ErrorKind::Patterns, "unable to read", shown());
            content.map(AttributesFile::File)
        }
        // The file does not exist, is below a file, or its path is not permitted: the file counts as
        // missing.
        Err(error)
            if matches!(
                error.kind(),
                IoErrorKind::NotFound
                    | IoErrorKind::NotADirectory
                    | IoErrorKind::PermissionDenied
                    | IoErrorKind::InvalidFilename
            ) =>
        {
            Ok(AttributesFile::Nothing)
        }
        Err(error) if is_link_error(&error) => Ok(AttributesFile::Link),
        Err(error) => Err(error).context(ErrorKind::Patterns, "unable to access", shown()),
    }
}

fn is_link_error(error: &std::io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

/// Reads a file; `None` if it exceeds Git's size limit or is not a regular file.
fn read_limited(file: &std::fs::File) -> std::io::Result<Option<Vec<u8>>> {
    match untrusted::read_open(file, LARGEST_TEXT_BYTES) {
        Ok(content) => Ok(Some(content)),
        Err(error) if is_unfit(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the error means that the file is not of a kind that is read.
fn is_unfit(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        IoErrorKind::InvalidInput | IoErrorKind::IsADirectory | IoErrorKind::FileTooLarge
    )
}

/// Reads a file that the user or the administrator has configured.
pub(super) fn read_global(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match untrusted::open(path, SymlinkPolicy::Follow) {
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
