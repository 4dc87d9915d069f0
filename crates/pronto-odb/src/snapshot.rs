//! The list of packs: made once, shared by all readers, and made again when an object is missing
//! and a directory has changed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use pronto_io::error::IoContext as _;
use pronto_io::view::View;
use pronto_pack::midx::MultiIndex;

use crate::error::{Error, ErrorKind, from_pack, is_gone};
use crate::options::Options;
use crate::packs::{Listed, PackFile, beside};

/// A directory that was changed this shortly before it was listed may have been changed again
/// without its time telling, for clocks tick.
const TICK: Duration = Duration::from_millis(100);
/// The same for file systems that record whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(3);

/// The packs of all directories of a store at some moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The number of earlier listings; zero for a snapshot that has not been listed.
    pub(crate) generation: u64,
    pub(crate) multi: Vec<Multi>,
    /// Packs to be searched one by one: those no multi-pack-index covers.
    pub(crate) single: Vec<Arc<PackFile>>,
    /// Packs that a multi-pack-index covers.
    pub(crate) covered: Vec<Arc<PackFile>>,
    /// All packs, by their numbers.
    numbered: Vec<Arc<PackFile>>,
    stamps: Vec<Stamp>,
    /// The place in `single` of the pack where something was found last.
    pub(crate) last_hit: AtomicUsize,
    /// Defects of files without which objects can still be found.
    pub(crate) warnings: Vec<Arc<Error>>,
}

/// A multi-pack-index and its packs, by their numbers in it; one that is not there is `None`.
#[derive(Debug)]
pub(crate) struct Multi {
    pub(crate) index: Arc<MultiIndex>,
    pub(crate) packs: Vec<Option<Arc<PackFile>>>,
}

/// When a `pack` directory was last changed, and whether another change would show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<(i64, i64)>,
    inode: u64,
    settled: bool,
}

impl Snapshot {
    pub(crate) fn all_packs(&self) -> impl Iterator<Item = &Arc<PackFile>> {
        self.single.iter().chain(&self.covered)
    }

    /// The pack with this number.
    pub(crate) fn pack(&self, number: u32) -> Option<&Arc<PackFile>> {
        let found = self
            .numbered
            .binary_search_by_key(&number, |pack| pack.number);
        found.ok().map(|at| &self.numbered[at])
    }

    /// Whether a new listing could say anything else. One `stat` for each directory, and a look at
    /// the end of each mapped index.
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

    /// Whether both have the same files.
    pub(crate) fn equals(&self, other: &Snapshot) -> bool {
        let numbers = |snapshot: &Snapshot| -> Vec<u32> {
            snapshot.all_packs().map(|pack| pack.number).collect()
        };
        let identities = |snapshot: &Snapshot| -> Vec<_> {
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
    /// `Io` when a directory exists and cannot be listed.
    pub(crate) fn list(
        before: &Snapshot,
        directories: &[impl AsRef<Path>],
        options: &Options,
        numbers: &AtomicU32,
    ) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot {
            generation: before.generation + 1,
            ..Snapshot::default()
        };
        let mut known: HashMap<&Path, &Arc<PackFile>> = before
            .all_packs()
            .filter(|pack| !pack.has_vanished())
            .map(|pack| (pack.listed.index_path.as_path(), pack))
            .collect();
        for directory in directories {
            let pack_directory = directory.as_ref().join("pack");
            // Before the listing, so that a change during it shows.
            snapshot.stamps.push(stamp_of(&pack_directory));
            let listing = Listing::read(&pack_directory)?;
            let multis = (listing.multi, listing.chain);
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

    /// Takes the packs that the multi-pack-index of `directory` covers out of `packs`, or else
    /// those that a chain of them covers. One that cannot be used costs speed only, so it is no
    /// more than a warning.
    fn add_multis(
        &mut self,
        before: &Snapshot,
        directory: &Path,
        (single, chain): (bool, bool),
        packs: &mut Vec<Arc<PackFile>>,
        options: &Options,
    ) {
        let path = directory.join("multi-pack-index");
        if single && self.add_multi(before, &path, packs, options) || !chain {
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
        // What was added last covers what is young.
        self.multi[first..].reverse();
    }

    /// Takes the packs that the multi-pack-index at `path` covers out of `packs`; whether there
    /// is one.
    fn add_multi(
        &mut self,
        before: &Snapshot,
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

impl Listed {
    /// Its age does not count: Git touches packs to keep them from being pruned.
    fn same_file(&self, other: &Listed) -> bool {
        let marks = |listed: &Listed| (listed.promisor, listed.kept, listed.cruft);
        self.inode == other.inode && marks(self) == marks(other)
    }
}

/// A multi-pack-index that is the same file as before need not be opened again.
fn open_multi(
    before: &Snapshot,
    path: &Path,
    options: &Options,
) -> Result<Arc<MultiIndex>, pronto_pack::Error> {
    let view = View::open(path, options.access).context(
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

/// Sorts packs, the newest first, because recent objects are read most.
fn sort(packs: &mut [Arc<PackFile>]) {
    packs.sort_by(|a, b| {
        let newest_first = b.listed.modified.cmp(&a.listed.modified);
        newest_first.then_with(|| a.index_name().cmp(b.index_name()))
    });
}

#[derive(Default)]
struct Listing {
    packs: Vec<Listed>,
    multi: bool,
    chain: bool,
}

impl Listing {
    /// Reads a directory. A pack counts if both the pack and its index exist. The ages of packs are
    /// read only if there are several.
    fn read(directory: &Path) -> Result<Listing, Error> {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Listing::default());
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
        let mut packs: Vec<Listed> = inodes
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "idx"))
            .filter(|(path, _)| inodes.contains_key(&beside(path, "pack")))
            .map(|(path, inode)| Listed {
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
        Ok(Listing {
            multi: inodes.contains_key(&directory.join("multi-pack-index")),
            chain: inodes.contains_key(&directory.join("multi-pack-index.d")),
            packs,
        })
    }
}

fn stamp_of(directory: &Path) -> Stamp {
    let Ok(metadata) = directory.metadata() else {
        // What is not there shows when it comes.
        return Stamp {
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
    Stamp {
        modified: Some((metadata.mtime(), metadata.mtime_nsec())),
        inode: metadata.ino(),
        settled: age.is_some_and(|age| age > tick),
    }
}
