//! Writing, verifying, expiring and repacking the multi-pack-index of a repository.

mod bitmap;
mod expire;
mod fault;
mod incremental;
mod merge;
mod present;
mod repack;
mod verify;

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::BString;
use pronto_config::durability::Component;
use pronto_config::lock::{Lock, PATIENCE};
use pronto_config::path;
use pronto_config::shared;
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_pack::idx::PackIndex;
use pronto_pack::midx::write;
use pronto_repository::{Error, ErrorKind, Repository, Result};
use pronto_repository::{Notice, PackNotice};

use crate::object_directory;

pub use bitmap::BitmapOptions;
pub(crate) use expire::forget;
pub use expire::{ExpirePacksOptions, expire};
pub use fault::MidxFault;
use present::Present;
pub use repack::{RepackOptions, repack};
pub use verify::{VerifyOptions, verify};

/// The file that lists the layers of a chain.
const CHAIN: &str = "multi-pack-index-chain";

/// The suffixes of the files of a layer.
const LAYER_ENDINGS: &[&str] = &[".bitmap", ".rev", ".midx"];

const NOT_WRITTEN: &str = "could not write multi-pack-index";

/// Options for writing a multi-pack-index. The defaults are those of Git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MidxWriteOptions {
    /// Write to this object directory, which must be the repository's own or an alternate
    /// (`--object-dir`).
    pub object_dir: Option<PathBuf>,
    /// The preferred pack, by its name or that of its index (`--preferred-pack`). Of objects in several
    /// packs its copies are used.
    pub preferred_pack: Option<BString>,
    /// Include only these packs, named by their indexes `pack-….idx` (`--stdin-packs`).
    pub packs: Option<BTreeSet<BString>>,
    /// Write bitmaps with these options (`--bitmap`).
    pub bitmap: Option<BitmapOptions>,
    /// Add the packs that are not covered yet as a new layer of a chain, and keep the existing layers
    /// (`--incremental`).
    pub incremental: bool,
}

/// A pack that the new multi-pack-index covers.
struct SourcePack {
    /// The name of its pack index.
    name: BString,
    /// Its pack index; `None` if its objects are taken from the existing multi-pack-index.
    index: Option<PackIndex>,
    /// Its modification time, in seconds since 1970; zero if the existing multi-pack-index covers the
    /// pack.
    modified: u64,
    dropped: bool,
}

/// The state that is shared by all operations.
struct MidxContext<'a> {
    repository: &'a Repository,
    /// Receives progress and can interrupt the operation.
    watch: &'a Watch<'a>,
    /// The directory `objects/pack`.
    directory: PathBuf,
}

/// Writes the multi-pack-index, unless the existing one covers all packs and has the requested bitmaps.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if there is no pack, or bitmaps are requested and the packs lack
/// reachable objects; [`ErrorKind::Object`] if a pack cannot be read; [`ErrorKind::Locked`] if another
/// process writes the file; or [`ErrorKind::Io`] if the file cannot be written.
pub fn write(repository: &Repository, options: &MidxWriteOptions, watch: &Watch<'_>) -> Result<()> {
    let work = MidxContext::new(repository, options.object_dir.as_ref(), watch)?;
    match options.incremental {
        true => work.write_layer(options),
        false => work.write(options, &BTreeSet::new()),
    }
}

impl<'a> MidxContext<'a> {
    fn new(
        repository: &'a Repository,
        object_dir: Option<&PathBuf>,
        watch: &'a Watch<'a>,
    ) -> Result<Self> {
        let (objects_dir, _) = object_directory::find(repository, object_dir)?;
        Ok(MidxContext {
            repository,
            watch,
            directory: objects_dir.join("pack"),
        })
    }
}

impl MidxContext<'_> {
    fn path(&self) -> PathBuf {
        self.directory.join("multi-pack-index")
    }

    fn display_path(&self, path: &Path) -> PathBuf {
        self.repository.display_path(path)
    }

    fn write(&self, options: &MidxWriteOptions, dropped: &BTreeSet<BString>) -> Result<()> {
        self.undisturbed(|last| self.write_once(options, dropped, last))
    }

    /// Makes one attempt to write the multi-pack-index. Returns `false` if another process has written
    /// or removed packs in the meantime, unless this is the `last` attempt.
    fn write_once(
        &self,
        options: &MidxWriteOptions,
        dropped: &BTreeSet<BString>,
        last: bool,
    ) -> Result<bool> {
        let before = self.state();
        let found = self.sound()?;
        let (present, other) = match options.packs {
            None => (found, None),
            // The objects of this index are not reused, but it may already be up to date.
            Some(_) => (None, found),
        };
        let names = present.iter().flat_map(Present::pack_names);
        let known: Vec<SourcePack> = names.map(|name| SourcePack::known(name)).collect();
        let is_gone = |source: &SourcePack| !self.pack_path(source).exists();
        let gone = known.iter().position(is_gone);
        if let Some(number) = gone.filter(|_| dropped.is_empty()) {
            let message = format!("could not load pack {number}");
            let refused = Err(Error::new(ErrorKind::Refused, message));
            return if last { refused } else { Ok(false) };
        }
        let mut sources = self.sources(known, options, None)?;
        if let Some(found) = present.as_ref().or(other.as_ref())
            && dropped.is_empty()
            && self.is_up_to_date(found, &sources, options)?
        {
            return Ok(true);
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
        let lock = Lock::acquire(self.path(), PATIENCE)?.recorded(self.repository.config());
        if !last && self.is_disturbed(&before, &sources) {
            return Ok(false);
        }
        let contents = MidxContents::new(&sources, entries, &numbers)?;
        if contents.names.is_empty() {
            return Err(Error::new(ErrorKind::Refused, "no pack files to index."));
        }
        let preferred = preferred.and_then(|number| numbers[number]);
        let is_empty = contents.entries.is_empty();
        let bitmap = options.bitmap.as_ref().filter(|_| !is_empty);
        if bitmap.is_none() && options.bitmap.is_some() {
            self.notify(PackNotice::NoObjectsForBitmaps);
        }
        let order = bitmap.map(|_| write::order(&contents.entries, preferred));
        let path = lock.path().to_owned();
        let Some(file) = lock.file() else {
            return Err(Error::new(ErrorKind::Io, NOT_WRITTEN));
        };
        let id = self.fill(file, &path, &contents, order.as_deref())?;
        drop((contents, order));
        if let Some(bitmap) = bitmap {
            self.write_bitmaps(bitmap, lock.path(), id)?;
        }
        lock.commit()?;
        self.clear(&self.directory, &[".bitmap", ".rev"], &[id]);
        let chain = self.chain_directory();
        // A reader prefers the single file, so that the chain can be removed now.
        let _ = std::fs::remove_file(chain.join(CHAIN));
        self.clear(&chain, LAYER_ENDINGS, &[]);
        Ok(true)
    }

    /// Returns whether `found` covers exactly `sources` and has the requested bitmaps. Bitmaps that are
    /// not requested are removed.
    fn is_up_to_date(
        &self,
        found: &Present,
        sources: &[SourcePack],
        options: &MidxWriteOptions,
    ) -> Result<bool> {
        let names: HashSet<&[u8]> = found.pack_names().map(|name| name.as_bytes()).collect();
        let covers = |source: &SourcePack| names.contains(source.name.as_slice());
        if names.len() != sources.len() || !sources.iter().all(covers) {
            return Ok(false);
        }
        if options.bitmap.is_none() {
            self.clear(&self.directory, &[".bitmap"], &[]);
            return Ok(true);
        }
        match found.layers.as_slice() {
            [index] if !found.is_chain => self.has_bitmaps(index),
            _ => Ok(false),
        }
    }

    /// Writes the content of a new file that no process reads yet. Returns its checksum.
    fn fill(
        &self,
        mut file: &File,
        path: &Path,
        contents: &MidxContents<'_>,
        order: Option<&[u32]>,
    ) -> Result<ObjectId> {
        let kind = self.repository.object_hash();
        let id = write::write(&mut file, kind, &contents.names, &contents.entries, order);
        let id = id.context(ErrorKind::Io, NOT_WRITTEN, path)?;
        let synced = self
            .repository
            .fsync()?
            .of(Component::PackMetadata)
            .apply(file);
        synced.context(ErrorKind::Io, NOT_WRITTEN, path)?;
        shared::adjust(self.repository.objects()?.options().sharing, path)?;
        Ok(id)
    }

    /// Returns the packs to cover, without those that the layers in `below` cover: first the known
    /// packs, then others in the order of the directory listing. As in Git, this order decides between
    /// packs of equal age.
    fn sources(
        &self,
        known: Vec<SourcePack>,
        options: &MidxWriteOptions,
        below: Option<&Present>,
    ) -> Result<Vec<SourcePack>> {
        let title = "Adding packfiles to multi-pack-index";
        let meter = self.watch.progress().begin(title, None);
        let names = known.iter().map(|source| source.name.clone());
        let below = below.into_iter().flat_map(Present::pack_names);
        let names: HashSet<BString> = names
            .chain(below.map(|name| name.as_str().into()))
            .collect();
        let mut sources = known;
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
            let is_known = names.contains(&name);
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

    fn source(&self, path: &Path, name: BString) -> Result<Option<SourcePack>> {
        let display_path = self.display_path(path);
        let Some(modified) = modified(&path.with_extension("pack")) else {
            self.notify(PackNotice::MissingPack(display_path));
            return Ok(None);
        };
        let Ok(index) = self.index(path)? else {
            self.notify(PackNotice::UnusableIndex(display_path));
            return Ok(None);
        };
        Ok(Some(SourcePack {
            name,
            index: Some(index),
            modified,
            dropped: false,
        }))
    }

    fn index(&self, path: &Path) -> Result<std::result::Result<PackIndex, pronto_pack::Error>> {
        let kind = self.repository.object_hash();
        let access = self.repository.objects()?.options().access;
        Ok(PackIndex::open(path, kind, access))
    }

    fn pack_path(&self, source: &SourcePack) -> PathBuf {
        let path = self.directory.join(path::borrow(&source.name));
        path.with_extension("pack")
    }

    fn opened_index(&self, source: &SourcePack) -> Result<PackIndex> {
        let path = self.pack_path(source).with_extension("idx");
        let failed = |_| Error::new(ErrorKind::Refused, "could not load pack");
        self.index(&path)?.map_err(failed)
    }

    /// Returns the index of a pack, and opens it on first use.
    fn open_index<'a>(&self, source: &'a mut SourcePack) -> Result<&'a PackIndex> {
        let index = match source.index.take() {
            Some(index) => index,
            None => self.opened_index(source)?,
        };
        Ok(source.index.insert(index))
    }

    fn notify(&self, notice: PackNotice) {
        self.repository.notify(Notice::Packs(notice));
    }

    /// Returns the number of the preferred pack.
    fn preferred(
        &self,
        sources: &mut [SourcePack],
        options: &MidxWriteOptions,
    ) -> Result<Option<usize>> {
        let Some(wanted) = &options.preferred_pack else {
            return Ok(None);
        };
        let stem = |name: &BString| -> BString {
            let stem = name.strip_suffix(b".pack".as_slice());
            stem.map_or_else(|| name.clone(), |stem| [stem, b".idx"].concat().into())
        };
        let wanted_name = stem(wanted);
        let found = sources.iter().position(|source| source.name == wanted_name);
        let Some(number) = found else {
            self.notify(PackNotice::UnknownPreferredPack(wanted.clone()));
            return Ok(None);
        };
        if self.open_index(&mut sources[number])?.is_empty() {
            let pack = self.display_path(&self.pack_path(&sources[number]));
            let message = format!(
                "cannot select preferred pack {} with no objects",
                pack.display()
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        Ok(Some(number))
    }

    /// Removes the files in `directory` that belong to a multi-pack-index whose checksum is not in
    /// `keep`.
    fn clear(&self, directory: &Path, endings: &[&str], keep: &[ObjectId]) {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return;
        };
        let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = path::as_bytes(Path::new(&name));
            let Some(rest) = name.strip_prefix(b"multi-pack-index-".as_slice()) else {
                continue;
            };
            let ending = endings
                .iter()
                .find_map(|ending| rest.strip_suffix(ending.as_bytes()));
            if ending.is_some_and(|id| !keep.iter().any(|keep| id == keep.as_bytes())) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl SourcePack {
    /// Creates the source for a pack that the existing multi-pack-index names.
    fn known(name: &str) -> SourcePack {
        SourcePack {
            name: name.into(),
            index: None,
            modified: 0,
            dropped: false,
        }
    }
}

/// The content of the new file.
struct MidxContents<'a> {
    /// The names of the pack indexes, sorted.
    names: Vec<&'a BString>,
    entries: Vec<write::Entry>,
}

impl<'a> MidxContents<'a> {
    /// Collects the packs of `sources` that are not dropped. In `entries`, the positions of packs in
    /// `sources` are replaced by their new `numbers`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object is in a dropped pack.
    fn new(
        sources: &'a [SourcePack],
        entries: Vec<write::Entry>,
        numbers: &[Option<u32>],
    ) -> Result<MidxContents<'a>> {
        let kept = sources.iter().filter(|source| !source.dropped);
        let mut names: Vec<&BString> = kept.map(|source| &source.name).collect();
        names.sort_unstable();
        let mut written = Vec::with_capacity(entries.len());
        for entry in entries {
            let number = numbers.get(entry.pack as usize).copied().flatten();
            let pack = number.ok_or_else(|| {
                let message = format!("object in an expired pack with id {}", entry.pack);
                Error::new(ErrorKind::Object, message)
            })?;
            written.push(write::Entry { pack, ..entry });
        }
        Ok(MidxContents {
            names,
            entries: written,
        })
    }
}

/// Returns the modification time of the file at `path`, in seconds since 1970; `None` if the file does
/// not exist.
fn modified(path: &Path) -> Option<u64> {
    let modified = path.metadata().ok()?.modified();
    let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
    let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(modified.as_secs())
}

/// Marks the packs in `dropped`. Returns the new number of each pack, in the order of names; `None` for
/// dropped packs.
fn number(sources: &mut [SourcePack], dropped: &BTreeSet<BString>) -> Result<Vec<Option<u32>>> {
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
