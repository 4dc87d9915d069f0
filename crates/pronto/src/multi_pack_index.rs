//! Writing, verifying and thinning out the multi-pack-index of a repository.

mod bitmap;
mod merge;
mod verify;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_pack::idx::{Index, IndexPosition};
use pronto_pack::midx::{MultiIndex, write};

use crate::history::from_graph;
use crate::init::shared;
use crate::lock::Lock;
use crate::{Error, ErrorKind, Repository, Result, path};

pub use bitmap::BitmapOptions;

/// How to write a multi-pack-index. The default is Git's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The object directory to write to, if not the repository's own: one of its alternates.
    pub object_dir: Option<PathBuf>,
    /// The pack whose copies are taken of objects that are in several, by its name or that of its
    /// index.
    pub preferred_pack: Option<BString>,
    /// Only these packs, named by their indexes (`pack-….idx`).
    pub packs: Option<BTreeSet<BString>>,
    /// Whether to write bitmaps, too, and how.
    pub bitmap: Option<BitmapOptions>,
}

/// A pack that a multi-pack-index is made of.
struct Source {
    /// The name of its index.
    name: BString,
    /// Its index; `None` if its objects are taken from the multi-pack-index there is.
    index: Option<Index>,
    /// When it was last written, in seconds since 1970; zero for one that was known already.
    modified: u64,
    dropped: bool,
}

/// What all operations share.
struct Work<'a> {
    repository: &'a Repository,
    progress: &'a dyn Progress,
    interrupt: &'a Interrupt,
    /// The directory of packs.
    directory: PathBuf,
}

impl Repository {
    /// Writes the multi-pack-index, unless it covers all packs already and has the bitmaps that are
    /// asked for.
    ///
    /// # Errors
    /// There is no pack, a pack cannot be read, the packs lack something that their commits lead to
    /// where bitmaps are asked for, or the file cannot be written.
    pub fn write_multi_pack_index(
        &self,
        options: &WriteOptions,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let work = self.multi_pack_work(options.object_dir.as_ref(), progress, interrupt)?;
        work.write(options, &BTreeSet::new())
    }

    /// Removes the packs of which the multi-pack-index uses no object, and writes it anew without
    /// them.
    ///
    /// # Errors
    /// As [`write_multi_pack_index`](Self::write_multi_pack_index).
    pub fn expire_multi_pack_index(
        &self,
        object_dir: Option<&PathBuf>,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let work = self.multi_pack_work(object_dir, progress, interrupt)?;
        let Some(index) = work.present()? else {
            return Ok(());
        };
        let mut used = vec![false; index.pack_names().len()];
        let meter = progress.begin("Counting referenced objects", Some(index.len().into()));
        for row in 0..index.len() {
            let (pack, _) = index.location_at(IndexPosition(row)).map_err(from_graph)?;
            used[pack.0 as usize] = true;
            meter.add(1);
        }
        meter.finish();
        let title = "Finding and deleting unreferenced packfiles";
        let meter = progress.begin(title, Some(used.len() as u64));
        let mut dropped = BTreeSet::new();
        for (name, used) in index.pack_names().iter().zip(used) {
            meter.add(1);
            let path = work.directory.join(name);
            let beside = |extension: &str| path.with_extension(extension);
            let is_kept = beside("keep").exists() || beside("mtimes").exists();
            if used || is_kept || !beside("pack").exists() {
                continue;
            }
            dropped.insert(BString::from(name.as_str()));
            for extension in ["idx", "pack", "rev", "bitmap", "promisor"] {
                let _ = std::fs::remove_file(beside(extension));
            }
        }
        meter.finish();
        match dropped.is_empty() {
            true => Ok(()),
            false => work.write(&WriteOptions::default(), &dropped),
        }
    }

    fn multi_pack_work<'a>(
        &'a self,
        object_dir: Option<&PathBuf>,
        progress: &'a dyn Progress,
        interrupt: &'a Interrupt,
    ) -> Result<Work<'a>> {
        Ok(Work {
            repository: self,
            progress,
            interrupt,
            directory: self.object_directory(object_dir)?.0.join("pack"),
        })
    }
}

impl Work<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join("multi-pack-index")
    }

    fn spoken(&self, path: &Path) -> PathBuf {
        self.repository.spoken(path)
    }

    /// The multi-pack-index there is, if it may be used.
    fn present(&self) -> Result<Option<MultiIndex>> {
        let repository = self.repository;
        if !repository.config().bool_or("core.multipackindex", true)? {
            return Ok(None);
        }
        self.open()
    }

    /// The multi-pack-index, if there is one that can be read. What Git can do without is a
    /// complaint.
    fn open(&self) -> Result<Option<MultiIndex>> {
        let path = self.path();
        if !path.exists() {
            return Ok(None);
        }
        let kind = self.repository.object_hash();
        let access = self.repository.objects()?.options().access;
        match MultiIndex::open(&path, kind, access) {
            Ok(index) => Ok(Some(index)),
            Err(error) => {
                let message = error.message().to_owned();
                let is_hash = message.starts_with("multi-pack-index hash version");
                if *error.kind() != pronto_pack::ErrorKind::Truncated && !is_hash {
                    return Err(Error::new(ErrorKind::Object, message));
                }
                let spoken = self.spoken(&path);
                let small = format!("multi-pack-index file {} is too small", spoken.display());
                let is_small = message == "multi-pack-index file is too small";
                self.repository
                    .complain(if is_small { small } else { message });
                Ok(None)
            }
        }
    }

    fn write(&self, options: &WriteOptions, dropped: &BTreeSet<BString>) -> Result<()> {
        let mut present = match options.packs {
            None => self.present()?,
            Some(_) => None,
        };
        if let Some(index) = &present
            && !index.checksum_holds().map_err(from_graph)?
        {
            let message = "ignoring existing multi-pack-index; checksum mismatch";
            self.repository.warn(message);
            present = None;
        }
        let mut sources = self.sources(present.as_ref(), options)?;
        let is_complete = present
            .as_ref()
            .filter(|index| index.pack_names().len() == sources.len() && dropped.is_empty());
        if let Some(index) = is_complete {
            if options.bitmap.is_none() {
                self.clear(&[".bitmap"], None);
                return Ok(());
            }
            if self.has_bitmaps(index)? {
                return Ok(());
            }
        }
        let preferred = match (&options.preferred_pack, &options.bitmap) {
            (None, Some(_)) => self.oldest(&sources)?,
            _ => self.preferred(&mut sources, options)?,
        };
        if let Some(number) = preferred {
            self.open_index(&mut sources[number])?;
        }
        let entries = merge::merge(self, present.as_ref(), &sources, preferred)?;
        let numbers = number(&mut sources, dropped)?;
        let mut lock = Lock::acquire(self.path(), Duration::ZERO)?;
        let mut names: Vec<&BString> = sources
            .iter()
            .filter(|source| !source.dropped)
            .map(|source| &source.name)
            .collect();
        names.sort_unstable();
        if names.is_empty() {
            return Err(Error::new(ErrorKind::Refused, "no pack files to index."));
        }
        let mut written = Vec::with_capacity(entries.len());
        for entry in entries {
            let number = numbers.get(entry.pack as usize).copied().flatten();
            let pack = number.ok_or_else(|| {
                let message = format!("object in an expired pack with id {}", entry.pack);
                Error::new(ErrorKind::Object, message)
            })?;
            written.push(write::Entry { pack, ..entry });
        }
        let preferred = preferred.and_then(|number| numbers[number]);
        let order = options
            .bitmap
            .as_ref()
            .map(|_| write::order(&written, preferred));
        let id = self.fill(&mut lock, &names, &written, order.as_deref())?;
        drop((written, order));
        if let Some(bitmap) = &options.bitmap {
            self.write_bitmaps(bitmap, lock.path(), id)?;
        }
        lock.commit()?;
        self.clear(&[".bitmap", ".rev"], Some(&id.to_string()));
        Ok(())
    }

    /// Writes the file that is locked; its checksum.
    fn fill(
        &self,
        lock: &mut Lock,
        names: &[&BString],
        entries: &[write::Entry],
        order: Option<&[u32]>,
    ) -> Result<ObjectId> {
        let path = lock.path().to_owned();
        let failed = "could not write multi-pack-index";
        let Some(file) = lock.file() else {
            return Err(Error::new(ErrorKind::Io, failed));
        };
        let kind = self.repository.object_hash();
        let id = write::write(file, kind, names, entries, order);
        let id = id.context(ErrorKind::Io, failed, &path)?;
        file.sync_all().context(ErrorKind::Io, failed, &path)?;
        shared::adjust(self.repository.objects()?.options().sharing, &path)?;
        Ok(id)
    }

    /// The packs: first those of the multi-pack-index there is, then others in the order of the
    /// directory, which decides between equals as in Git.
    fn sources(&self, present: Option<&MultiIndex>, options: &WriteOptions) -> Result<Vec<Source>> {
        let title = "Adding packfiles to multi-pack-index";
        let meter = self.progress.begin(title, None);
        let names = present.map(MultiIndex::pack_names).unwrap_or_default();
        let mut sources: Vec<Source> = names
            .iter()
            .map(|name| Source {
                name: name.as_str().into(),
                index: None,
                modified: 0,
                dropped: false,
            })
            .collect();
        let failed = "unable to open object pack directory";
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(sources),
            Err(error) => return Err(error).context(ErrorKind::Io, failed, &self.directory),
        };
        for entry in entries {
            let entry = entry.context(ErrorKind::Io, failed, &self.directory)?;
            let path = entry.path();
            let name = BString::from(path::as_bytes(Path::new(&entry.file_name())));
            if !name.ends_with(b".idx") {
                continue;
            }
            meter.add(1);
            let is_known = names
                .iter()
                .any(|known| known.as_bytes() == name.as_bytes());
            let is_asked_for = options
                .packs
                .as_ref()
                .is_none_or(|packs| packs.contains(&name));
            if is_known || !is_asked_for {
                continue;
            }
            sources.extend(self.source(&path, name)?);
        }
        meter.finish();
        Ok(sources)
    }

    fn source(&self, path: &Path, name: BString) -> Result<Option<Source>> {
        let spoken = self.spoken(path);
        let Some(modified) = modified(&path.with_extension("pack")) else {
            let message = format!("failed to add packfile '{}'", spoken.display());
            self.repository.warn(message);
            return Ok(None);
        };
        let Ok(index) = self.index(path)? else {
            let message = format!("failed to open pack-index '{}'", spoken.display());
            self.repository.warn(message);
            return Ok(None);
        };
        Ok(Some(Source {
            name,
            index: Some(index),
            modified,
            dropped: false,
        }))
    }

    fn index(&self, path: &Path) -> Result<std::result::Result<Index, pronto_pack::Error>> {
        let kind = self.repository.object_hash();
        let access = self.repository.objects()?.options().access;
        Ok(Index::open(path, kind, access))
    }

    fn pack_path(&self, source: &Source) -> PathBuf {
        let path = self.directory.join(path::borrow(&source.name));
        path.with_extension("pack")
    }

    fn opened_index(&self, source: &Source) -> Result<Index> {
        let path = self.pack_path(source).with_extension("idx");
        let failed = |_| Error::new(ErrorKind::Refused, "could not load pack");
        self.index(&path)?.map_err(failed)
    }

    /// The index of a pack, opened if it was not yet.
    fn open_index<'a>(&self, source: &'a mut Source) -> Result<&'a Index> {
        let index = match source.index.take() {
            Some(index) => index,
            None => self.opened_index(source)?,
        };
        Ok(source.index.insert(index))
    }

    /// The number of the preferred pack.
    fn preferred(&self, sources: &mut [Source], options: &WriteOptions) -> Result<Option<usize>> {
        let Some(wanted) = &options.preferred_pack else {
            return Ok(None);
        };
        let stem = |name: &BString| -> BString {
            let stem = name.strip_suffix(b".pack".as_slice());
            stem.map_or_else(|| name.clone(), |stem| [stem, b".idx"].concat().into())
        };
        let wanted_name = stem(wanted);
        let found = sources.iter().position(|source| source.name == wanted_name);
        if found.is_none() {
            let message = format!("unknown preferred pack: '{wanted}'");
            self.repository.warn(message);
        }
        // Git then takes the first one.
        let number = found.unwrap_or(0);
        if sources.is_empty() {
            return Ok(None);
        }
        if self.open_index(&mut sources[number])?.is_empty() {
            let pack = self.spoken(&self.pack_path(&sources[number]));
            let message = format!(
                "cannot select preferred pack {} with no objects",
                pack.display()
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        Ok(Some(number))
    }

    /// Removes files that belong to a multi-pack-index other than `keep`.
    fn clear(&self, endings: &[&str], keep: Option<&str>) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = path::as_bytes(Path::new(&name));
            let Some(rest) = name.strip_prefix(b"multi-pack-index-".as_slice()) else {
                continue;
            };
            let ending = endings
                .iter()
                .find_map(|ending| rest.strip_suffix(ending.as_bytes()));
            if ending.is_some_and(|id| keep.is_none_or(|keep| id != keep.as_bytes())) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// When the file at `path` was last written, in seconds since 1970; `None` if there is none.
fn modified(path: &Path) -> Option<u64> {
    let modified = path.metadata().ok()?.modified();
    let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
    let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(modified.as_secs())
}

/// Marks the packs that are dropped; for each pack its number among those that are not, by name.
fn number(sources: &mut [Source], dropped: &BTreeSet<BString>) -> Result<Vec<Option<u32>>> {
    for name in dropped {
        match sources.iter_mut().find(|source| source.name == *name) {
            Some(source) => source.dropped = true,
            None => {
                let message = format!("did not see pack-file {name} to drop");
                return Err(Error::new(ErrorKind::Refused, message));
            }
        }
    }
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.retain(|at| !sources[*at].dropped);
    order.sort_by(|a, b| sources[*a].name.cmp(&sources[*b].name));
    let mut numbers = vec![None; sources.len()];
    for (number, at) in order.into_iter().enumerate() {
        numbers[at] = Some(number as u32);
    }
    Ok(numbers)
}
