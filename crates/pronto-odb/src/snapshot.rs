//! The list of packs of a store. The list is read once, shared by all readers, and read again if an
//! object is missing and a directory has changed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use pronto_io::error::IoContext as _;
use pronto_io::view::FileView;
use pronto_pack::midx::MultiIndex;

use crate::error::{Error, ErrorKind, from_pack, is_gone};
use crate::options::Options;
use crate::packs::{PackFile, PackListing, beside};

/// The time before a listing within which a change of a directory is not reliable: because of the
/// granularity of clocks, a later change may leave the same modification time.
const TICK: Duration = Duration::from_millis(100);
/// The value of [`TICK`] for file systems that record whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(3);

/// The packs of all directories of a store at some moment.
#[derive(Debug, Default)]
pub(crate) struct PackSnapshot {
    /// The number of earlier listings; zero for a snapshot before the first listing.
    pub(crate) generation: u64,
    pub(crate) multi: Vec<Multi>,
    /// The packs that no multi-pack-index covers, which are searched one by one.
    pub(crate) single: Vec<Arc<PackFile>>,
    /// The packs that a multi-pack-index covers.
    pub(crate) covered: Vec<Arc<PackFile>>,
    /// All packs, sorted by their numbers.
    numbered: Vec<Arc<PackFile>>,
    stamps: Vec<DirectoryStamp>,
    /// The position in `single` of the pack in which an object was found last.
    pub(crate) last_hit: AtomicUsize,
    /// Errors of files that are not necessary to find objects.
    pub(crate) warnings: Vec<Arc<Error>>,
}

/// A multi-pack-index and its packs, in the order of their numbers in the file; `None` for a
/// missing pack.
#[derive(Debug)]
pub(crate) struct Multi {
    pub(crate) index: Arc<MultiIndex>,
    pub(crate) packs: Vec<Option<Arc<PackFile>>>,
}

/// The modification time of a `pack` directory, and whether another change would be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DirectoryStamp {
    modified: Option<(i64, i64)>,
    inode: u64,
    settled: bool,
}

impl PackSnapshot {
    pub(crate) fn all_packs(&self) -> impl Iterator<Item = &Arc<PackFile>> {
        self.single.iter().chain(&self.covered)
    }

    /// Returns the pack with this number.
    pub(crate) fn pack(&self, number: u32) -> Option<&Arc<PackFile>> {
        let found = self
            .numbered
            .binary_search_by_key(&number, |pack| pack.number);
        found.ok().map(|at| &self.numbered[at])
    }

    /// Returns whether a new listing could have another result. Costs one `stat` for each
    /// directory, and a check of the end of each mapped index.
    pub(crate) fn may_be_outdated(&self, directories: &[impl AsRef<Path>]) -> bool {
        self.generation == 0
            || self.all_packs().any(|pack| pack.is_outdated())
            || self
                .multi
                .iter()
                .any(|multi| multi.index.view().verify().is_err())
            || self.stamps.len() != directories.len()
            || self
                .stamps
                .iter()
                .zip(directories)
                .any(|(stamp, directory)| {
                    let now = stamp_of(&directory.as_ref().join("pack"));
                    !stamp.settled || (now.modified, now.inode) != (stamp.modified, stamp.inode)
                })
    }

    /// Returns whether both snapshots have the same packs and multi-pack-indexes.
    pub(crate) fn equals(&self, other: &PackSnapshot) -> bool {
        let numbers = |snapshot: &PackSnapshot| -> Vec<u32> {
            snapshot.all_packs().map(|pack| pack.number).collect()
        };
        let identities = |snapshot: &PackSnapshot| -> Vec<_> {
            let multi = snapshot.multi.iter();
            multi.map(|multi| multi.index.view().identity()).collect()
        };
        self.generation != 0
            && numbers(self) == numbers(other)
            && identities(self) == identities(other)
    }

    /// Lists `directories` again. Open packs that still exist stay open.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a directory exists and cannot be listed.
    pub(crate) fn list(
        before: &PackSnapshot,
        directories: &[impl AsRef<Path>],
        options: &Options,
        numbers: &AtomicU32,
    ) -> Result<PackSnapshot, Error> {
        let mut snapshot = PackSnapshot {
            generation: before.generation + 1,
            ..PackSnapshot::default()
        };
        let mut known: HashMap<&Path, &Arc<PackFile>> = before
            .all_packs()
            .filter(|pack| !pack.has_vanished())
            .map(|pack| (pack.listed.index_path.as_path(), pack))
            .collect();
        for directory in directories {
            let pack_directory = directory.as_ref().join("pack");
            // The stamp is taken before the listing, so that a change during the listing is
            // detected.
            snapshot.stamps.push(stamp_of(&pack_directory));
            let listing = PackDirectory::read(&pack_directory)?;
            let multis = listing.multis;
            let packs = listing.packs.into_iter().map(|listed| {
                match known.remove(listed.index_path.as_path()) {
                    Some(pack) if pack.listed.same_file(&listed) => pack.clone(),
                    _ => Arc::new(PackFile::new(
                        numbers.fetch_add(1, Relaxed),
                        listed,
                        options.kind,
                        options.access,
                    )),
                }
            });
            let mut packs: Vec<Arc<PackFile>> = packs.collect();
            if options.multi_pack_index {
                snapshot.add_multis(before, &pack_directory, multis, &mut packs, options);
            }
            snapshot.single.append(&mut packs);
        }
        snapshot.numbered = snapshot.all_packs().cloned().collect();
        snapshot.numbered.sort_unstable_by_key(|pack| pack.number);
        Ok(snapshot)
    }

    /// Moves the packs that the multi-pack-index of `directory` covers, or a chain of
    /// multi-pack-indexes, out of `packs`. An unusable multi-pack-index only reduces speed, so it
    /// causes a warning instead of an error.
    fn add_multis(
        &mut self,
        before: &PackSnapshot,
        directory: &Path,
        multis: MultiPackIndexes,
        packs: &mut Vec<Arc<PackFile>>,
        options: &Options,
    ) {
        let path = directory.join("multi-pack-index");
        if multis.single && self.add_multi(before, &path, packs, options) || !multis.chain {
            return;
        }
        let files = match pronto_pack::midx::chain::files(directory, options.kind) {
            Ok((files, error)) => {
                let error = error.map(|error| Arc::new(from_pack(error)));
                self.warnings.extend(error);
                files
            }
            Err(error) => {
                self.warnings.push(Arc::new(from_pack(error)));
                return;
            }
        };
        let first = self.multi.len();
        for path in files {
            if !self.add_multi(before, &path, packs, options) {
                break;
            }
        }
        // The layer that was added last covers the newest packs.
        self.multi[first..].reverse();
    }

    /// Moves the packs that the multi-pack-index at `path` covers out of `packs`. Returns whether
    /// the file exists.
    fn add_multi(
        &mut self,
        before: &PackSnapshot,
        path: &Path,
        packs: &mut Vec<Arc<PackFile>>,
        options: &Options,
    ) -> bool {
        let index = match open_multi(before, path, options) {
            Ok(index) => index,
            Err(error) if is_gone(&error) => return false,
            Err(error) => {
                self.warnings.push(Arc::new(from_pack(error)));
                return false;
            }
        };
        let mut by_name: HashMap<OsString, Arc<PackFile>> = packs
            .drain(..)
            .map(|pack| (pack.index_name().to_owned(), pack))
            .collect();
        let names = index.pack_names().iter();
        let covered: Vec<_> = names
            .map(|name| by_name.remove(OsString::from(name).as_os_str()))
            .collect();
        packs.extend(by_name.into_values());
        sort(packs);
        self.covered.extend(covered.iter().flatten().cloned());
        self.multi.push(Multi {
            index,
            packs: covered,
        });
        true
    }
}

impl PackListing {
    /// Returns whether both have the same files. The modification time is ignored: Git updates it
    /// to protect packs from being pruned.
    fn same_file(&self, other: &PackListing) -> bool {
        let marks = |listed: &PackListing| (listed.promisor, listed.kept, listed.cruft);
        self.inode == other.inode && marks(self) == marks(other)
    }
}

/// Returns the multi-pack-index at the path, and shares the opened one if the file has not changed.
fn open_multi(
    before: &PackSnapshot,
    path: &Path,
    options: &Options,
) -> Result<Arc<MultiIndex>, pronto_pack::Error> {
    let view = FileView::open(path, options.access).context(
        pronto_pack::ErrorKind::Io,
        "cannot open",
        path,
    )?;
    let known = before.multi.iter().find(|multi| {
        let known = multi.index.view();
        multi.index.path() == path && known.identity() == view.identity() && known.check().is_ok()
    });
    if let Some(known) = known {
        return Ok(known.index.clone());
    }
    MultiIndex::from_view(view, path, options.kind).map(Arc::new)
}

/// Sorts packs, newest first, because recent objects are read most often.
fn sort(packs: &mut [Arc<PackFile>]) {
    packs.sort_by(|a, b| {
        let newest_first = b.listed.modified.cmp(&a.listed.modified);
        newest_first.then_with(|| a.index_name().cmp(b.index_name()))
    });
}

#[derive(Default)]
struct PackDirectory {
    packs: Vec<PackListing>,
    multis: MultiPackIndexes,
}

/// The files of multi-pack-indexes in a directory: a single file or a chain.
#[derive(Clone, Copy, Default)]
struct MultiPackIndexes {
    single: bool,
    chain: bool,
}

impl PackDirectory {
    /// Reads a directory. Only a pack with its index counts. The modification times of packs are
    /// read only if there are several packs.
    fn read(directory: &Path) -> Result<PackDirectory, Error> {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(PackDirectory::default());
            }
            Err(error) => {
                return Err(error).context(ErrorKind::Io, "cannot list", directory);
            }
        };
        let mut inodes = HashMap::new();
        for entry in entries {
            let entry = entry.context(ErrorKind::Io, "cannot list", directory)?;
            inodes.insert(directory.join(entry.file_name()), entry.ino());
        }
        let mut packs: Vec<PackListing> = inodes
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "idx"))
            .filter(|(path, _)| inodes.contains_key(&beside(path, "pack")))
            .map(|(path, inode)| PackListing {
                index_path: path.clone(),
                inode: *inode,
                promisor: inodes.contains_key(&beside(path, "promisor")),
                cruft: inodes.contains_key(&beside(path, "mtimes")),
                kept: inodes.contains_key(&beside(path, "keep")),
                modified: None,
            })
            .collect();
        if packs.len() > 1 {
            for listed in &mut packs {
                let metadata = beside(&listed.index_path, "pack").metadata();
                listed.modified = metadata.and_then(|metadata| metadata.modified()).ok();
            }
        }
        packs.sort_by(|a, b| {
            let newest_first = b.modified.cmp(&a.modified);
            newest_first.then_with(|| a.index_path.cmp(&b.index_path))
        });
        Ok(PackDirectory {
            multis: MultiPackIndexes {
                single: inodes.contains_key(&directory.join("multi-pack-index")),
                chain: inodes.contains_key(&directory.join("multi-pack-index.d")),
            },
            packs,
        })
    }
}

fn stamp_of(directory: &Path) -> DirectoryStamp {
    let Ok(metadata) = directory.metadata() else {
        // A directory that does not exist is detected when it is created.
        return DirectoryStamp {
            modified: None,
            inode: 0,
            settled: true,
        };
    };
    let tick = match metadata.mtime_nsec() {
        0 => COARSE_TICK,
        _ => TICK,
    };
    let age = metadata
        .modified()
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified).ok());
    DirectoryStamp {
        modified: Some((metadata.mtime(), metadata.mtime_nsec())),
        inode: metadata.ino(),
        settled: age.is_some_and(|age| age > tick),
    }
}
