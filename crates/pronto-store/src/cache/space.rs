//! The directories of a cache, and the removal of unused files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirEntry};
use std::io::ErrorKind as Io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use pronto_io::error::IoContext as _;

use super::Shelf;
use crate::manifest::Manifest;
use crate::{ErrorKind, Result};

/// The size in bytes of the unit of `st_blocks`.
const SECTOR_BYTES: u64 = 512;

/// The files of one object.
#[derive(Default)]
struct ObjectFiles {
    paths: Vec<PathBuf>,
    bytes: u64,
    /// Whether a view has a hard link to one of the files.
    is_linked: bool,
}

impl Shelf {
    pub(super) fn new(directory: PathBuf) -> Self {
        Shelf {
            directory,
            current: Mutex::new(None),
            used: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Measures the files.
    pub(super) fn measure(&self) {
        let bytes = self.groups().values().map(|group| group.bytes).sum();
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Removes the files to which no view has hard links, except for those of the objects in
    /// `kept`.
    pub(super) fn sweep(&self, kept: &HashSet<String>) {
        let mut left = 0;
        for (stem, group) in self.groups() {
            if group.is_linked || kept.contains(&stem) {
                left += group.bytes;
                continue;
            }
            for path in group.paths {
                // A file that cannot be removed stays until the next attempt.
                let _ = fs::remove_file(path);
            }
        }
        self.bytes.store(left, Ordering::Relaxed);
    }

    /// Removes the view and its files unless a request uses the view. Returns whether they were
    /// removed.
    pub(super) fn evict(&self) -> bool {
        let mut current = match self.current.try_lock() {
            Ok(current) => current,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        // No request can get the view while the mutex is locked.
        if current.as_ref().is_some_and(|it| Arc::strong_count(it) > 1) {
            return false;
        }
        *current = None;
        self.sweep(&HashSet::new());
        true
    }

    fn groups(&self) -> BTreeMap<String, ObjectFiles> {
        let mut groups: BTreeMap<String, ObjectFiles> = BTreeMap::new();
        for entry in entries(&self.directory.join("file")) {
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let group = groups.entry(stem(&name).to_owned()).or_default();
            group.bytes += found.blocks() * SECTOR_BYTES;
            group.is_linked |= found.nlink() > 1;
            group.paths.push(entry.path());
        }
        groups
    }
}

/// Returns the part of a name that all files of an object share.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Returns the stems of the files of a generation.
pub(super) fn stems(manifest: &Manifest) -> HashSet<String> {
    let names = manifest.objects().map(|object| object.name);
    let stems = names.map(|name| stem(&name.replace('/', "-")).to_owned());
    stems.collect()
}

/// Removes the temporary files and views of an ended process from the cache at `directory`. Returns
/// the repositories that have files.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be removed.
pub(super) fn tidy(directory: &Path) -> Result<HashMap<String, Arc<Shelf>>> {
    let mut shelves = HashMap::new();
    for entry in entries(directory) {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Other files in the directory stay.
        let is_own = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_own || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        for part in ["view", "push"] {
            remove(&entry.path().join(part))?;
        }
        for file in entries(&entry.path().join("file")) {
            if file.file_name().to_string_lossy().contains(".temp-") {
                let path = file.path();
                fs::remove_file(&path).context(ErrorKind::Io, "cannot remove", &path)?;
            }
        }
        let shelf = Shelf::new(entry.path());
        shelf.measure();
        shelves.insert(name, Arc::new(shelf));
    }
    Ok(shelves)
}

/// Creates the parent directories of the view `target`, and removes the remains of a failed
/// attempt.
pub(super) fn prepare(shelf: &Path, target: &Path) -> Result<()> {
    for part in ["view", "push", "file"] {
        let path = shelf.join(part);
        fs::create_dir_all(&path).context(ErrorKind::Io, "cannot create", &path)?;
    }
    remove(target)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != Io::NotFound => {
            Err(error).context(ErrorKind::Io, "cannot remove", path)
        }
        _ => Ok(()),
    }
}

/// Creates the repository `target`, which has the refs of the view `view` and borrows its objects.
pub(super) fn borrow(view: &Path, target: &Path) -> Result<()> {
    for part in ["objects/pack", "objects/info", "reftable"] {
        let path = target.join(part);
        fs::create_dir_all(&path).context(ErrorKind::Io, "cannot create", &path)?;
    }
    let path = target.join("objects/info/alternates");
    let mut text = view.join("objects").into_os_string().into_encoded_bytes();
    text.push(b'\n');
    fs::write(&path, text).context(ErrorKind::Io, "cannot write", &path)?;
    for name in ["HEAD", "config", "reftable/tables.list"] {
        let to = target.join(name);
        fs::copy(view.join(name), &to).context(ErrorKind::Io, "cannot write", &to)?;
    }
    for entry in entries(&view.join("reftable")) {
        let to = target.join("reftable").join(entry.file_name());
        if entry.file_name() != "tables.list" {
            fs::hard_link(entry.path(), &to).context(ErrorKind::Io, "cannot link", &to)?;
        }
    }
    Ok(())
}

/// Returns the entries of a directory, or no entries if the directory cannot be read.
fn entries(directory: &Path) -> Vec<DirEntry> {
    let listed = fs::read_dir(directory);
    listed.map_or(Vec::new(), |listed| listed.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_view_needs_stay() {
        let folder = tempfile::tempdir().expect("a directory");
        let shelf = Shelf::new(folder.path().to_owned());
        let file = |name: &str| folder.path().join("file").join(name);
        fs::create_dir(folder.path().join("file")).expect("a directory");
        for name in [
            "pack-1.pack",
            "pack-1.pack.map",
            "pack-2.pack",
            "pack-3.pack",
        ] {
            fs::write(file(name), vec![1; 8192]).expect("a file");
        }
        fs::hard_link(file("pack-1.pack"), folder.path().join("link")).expect("a link");
        shelf.measure();
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 4 * 8192);
        shelf.sweep(&HashSet::from(["pack-2".to_owned()]));
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 3 * 8192);
        let is_there = |name: &str| file(name).exists();
        assert!(is_there("pack-1.pack") && is_there("pack-1.pack.map") && is_there("pack-2.pack"));
        assert!(!is_there("pack-3.pack"));
        assert!(shelf.evict());
        assert!(is_there("pack-1.pack") && !is_there("pack-2.pack"));
        fs::remove_file(folder.path().join("link")).expect("there");
        assert!(shelf.evict());
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 0);
    }
}
