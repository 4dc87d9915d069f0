//! Writes reachability bitmaps of a pack or a multi-pack-index.
//!
//! Trees are not walked for each commit. Each commit is compared once with its parents, and the objects
//! that it introduces are recorded. The objects reachable from a commit are then the union of the
//! objects that the commit and its ancestors introduce.

mod brought;
mod commits;
mod objects;
mod unite;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pronto_config::durability::Component;
use pronto_config::path;
use pronto_config::shared;
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_pack::bitmap::write::{self, BitmapContents};
use pronto_pack::idx::PackIndex;
use pronto_pack::pack::PackReader;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Repository, Result};

pub(crate) use objects::{BitmapObjects, MidxPack};

/// A counter that makes the names of temporary files unique in this process.
static TEMPORARY: AtomicU32 = AtomicU32::new(0);

/// Options for writing bitmaps; see [`settings`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Store the hashes of object names (`pack.writeBitmapHashCache`).
    pub name_hashes: bool,
    /// Write a lookup table for single bitmaps (`pack.writeBitmapLookupTable`).
    pub lookup_table: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            name_hashes: true,
            lookup_table: false,
        }
    }
}

/// The commits at which the walk for bitmaps starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitmapTips {
    /// The objects to which refs point, peeled.
    pub ids: Vec<ObjectId>,
    /// The tips that are preferred for bitmaps (`pack.preferBitmapTips`).
    pub preferred: BTreeSet<ObjectId>,
    /// The number of newest tips that always get a bitmap. Git has no such setting: it selects one
    /// commit in each stretch of history, and stretches get longer with age. A clone walks from the
    /// tips that have no bitmap.
    pub bitmapped_tips: usize,
}

/// Returns whether the ref `name` is below `directory`, with or without a slash at its end.
fn is_below(name: &[u8], directory: &[u8]) -> bool {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    let rest = name.strip_prefix(directory);
    rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// The state that is shared by all stages of writing bitmaps.
pub(crate) struct BitmapContext<'a> {
    pub(crate) repository: &'a Repository,
    /// The object store without replacements.
    pub(crate) store: Store,
    /// Receives progress and can interrupt the operation.
    pub(crate) watch: &'a Watch<'a>,
}

/// Returns the configured settings.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a value is not a boolean.
pub fn settings(repository: &Repository) -> Result<Settings> {
    let config = repository.config();
    Ok(Settings {
        name_hashes: config.bool_or("pack.writebitmaphashcache", true)?,
        lookup_table: config.bool_or("pack.writebitmaplookuptable", false)?,
    })
}

/// Writes the bitmaps of the pack with the index at `index_path`, and returns the path of the `.bitmap`
/// file. The pack must contain all objects that are reachable from its commits.
///
/// Costs reading each commit, and the differences between the trees of commits and their parents.
/// Memory holds the compressed bitmaps and some words for each object.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] and Git's message if the pack lacks reachable objects,
/// [`ErrorKind::Object`] if the pack or an object cannot be read, or [`ErrorKind::Io`] if the file
/// cannot be written.
pub fn write(
    repository: &Repository,
    index_path: &Path,
    tips: &BitmapTips,
    settings: &Settings,
    watch: &Watch<'_>,
) -> Result<PathBuf> {
    let work = BitmapContext::new(repository, watch)?;
    let (kind, access) = (repository.object_hash(), work.store.options().access);
    let index = PackIndex::open(index_path, kind, access).map_err(from_pack)?;
    let pack_path = index_path.with_extension("pack");
    let pack = PackReader::open(&pack_path, kind, access).map_err(from_pack)?;
    pack.check_index(&index).map_err(from_pack)?;
    let objects = BitmapObjects::of_pack(&pack, &index)?;
    let checksum = pack.checksum().map_err(from_pack)?;
    let target = index_path.with_extension("bitmap");
    work.write(&objects, tips, settings, checksum, &target)?;
    Ok(target)
}

/// Returns the existing objects to which refs point, peeled, and the preferred ones among them.
///
/// # Errors
/// Fails with [`ErrorKind::Reference`] or [`ErrorKind::Io`] if the refs cannot be read.
pub fn tips(repository: &Repository) -> Result<BitmapTips> {
    let prefixes = repository.config().list("pack.preferbitmaptips");
    let mut tips = BitmapTips::default();
    let mut preferred = Vec::new();
    repository.refs().for_each("refs/", |reference| {
        let id = reference.peeled.unwrap_or(reference.id);
        let name = reference.name;
        if prefixes.iter().any(|prefix| is_below(name, prefix)) {
            preferred.push(id);
        }
        tips.ids.push(id);
        Ok(ControlFlow::Continue(()))
    })?;
    for id in preferred {
        tips.preferred
            .insert(repository.peel_tag(id)?.unwrap_or(id));
    }
    Ok(tips)
}

/// Reads tips from the file `path`: one object id in each line, with a `+` before preferred tips
/// (`--refs-snapshot`).
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the file cannot be read, or [`ErrorKind::InvalidInput`] if a line is
/// not an object id.
pub fn read_tips(repository: &Repository, path: &Path) -> Result<BitmapTips> {
    let shown = path::as_bytes(path);
    let read = std::fs::read(repository.environment().absolute(path)).map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        let message = format!("could not open '{shown}' for reading: {reason}");
        Error::new(ErrorKind::Io, message)
    })?;
    let mut tips = BitmapTips::default();
    for line in bstr::ByteSlice::lines(&read[..]) {
        let hex = line.strip_prefix(b"+").unwrap_or(line);
        let wrong = |what: &str| {
            let message = format!("{what} line: {}", bstr::BStr::new(line));
            Error::new(ErrorKind::InvalidInput, message)
        };
        let len = repository.object_hash().len_in_hex();
        let id = hex
            .get(..len)
            .and_then(|hex| pronto_hash::parse_hex(hex).ok());
        let id = id.ok_or_else(|| wrong("could not parse"))?;
        if hex.len() > len {
            return Err(wrong("malformed"));
        }
        if hex.len() < line.len() {
            tips.preferred.insert(id);
        }
        tips.ids.push(id);
    }
    Ok(tips)
}

impl<'a> BitmapContext<'a> {
    /// # Errors
    /// Fails if the object store cannot be opened.
    pub(crate) fn new(repository: &'a Repository, watch: &'a Watch<'a>) -> Result<Self> {
        Ok(BitmapContext {
            repository,
            store: repository.objects()?.without_replacements(),
            watch,
        })
    }

    /// Writes the bitmaps of `objects` to `target`. `checksum` is that of their pack or
    /// multi-pack-index.
    ///
    /// # Errors
    /// As for [`write`](self::write()).
    pub(crate) fn write(
        &self,
        objects: &BitmapObjects<'_>,
        tips: &BitmapTips,
        settings: &Settings,
        checksum: ObjectId,
        target: &Path,
    ) -> Result<()> {
        let history = commits::gather(self, objects, tips)?;
        let selected = history.select(self.watch.progress(), tips);
        let history = history.ancestors_of(&selected);
        // Missing commits are reported before other missing objects.
        (history.commits.iter()).try_for_each(|commit| commit.row().map(drop))?;
        let brought = brought::brought(self, objects, &history)?;
        let mut reach = unite::unite(self, objects, &history, &brought)?;
        // As in Git, the bitmaps of old commits are stored first.
        reach.reverse();
        let name_hashes = match settings.name_hashes {
            true => Some(objects.name_hashes(self, &|found| brought.for_each_name_hash(found))?),
            false => None,
        };
        let contents = BitmapContents {
            checksum,
            kinds: objects.kinds(),
            commits: &reach,
            name_hashes: name_hashes.as_deref(),
            lookup_table: settings.lookup_table,
        };
        self.install(target, &contents)
    }

    fn check(&self) -> Result<()> {
        let interrupted = |reason: pronto_io::interrupt::Interrupted| {
            Error::new(ErrorKind::Interrupted, reason.to_string())
        };
        self.watch.interrupt().check().map_err(interrupted)
    }

    /// Writes a temporary file without write permission, and renames it to `target`.
    fn install(&self, target: &Path, contents: &BitmapContents<'_>) -> Result<()> {
        let failed = "unable to write bitmap index";
        self.store.begin_writing().map_err(from_odb)?;
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let name = format!("tmp_bitmap_{:x}_{number:x}", std::process::id());
        let path = target.with_file_name(name);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o444).open(&path);
        let mut file = opened.context(ErrorKind::Io, failed, &path)?;
        // The guard removes the file only if this process has created it.
        let guard = Guard::new(&path);
        write::write(&mut file, self.store.kind(), contents).context(
            ErrorKind::Io,
            failed,
            &path,
        )?;
        let synced = self
            .repository
            .fsync()?
            .of(Component::PackMetadata)
            .apply(&file);
        synced.context(ErrorKind::Io, failed, &path)?;
        shared::adjust(self.store.options().sharing, &path)?;
        std::fs::rename(&path, target).context(ErrorKind::Io, failed, target)?;
        guard.keep();
        Ok(())
    }
}

/// Returns the error for a pack that lacks objects reachable from its commits.
#[cold]
fn lacking(id: &pronto_hash::oid) -> Error {
    let message = format!(
        "Failed to write bitmap index. Packfile doesn't have full closure (object {id} is missing)"
    );
    Error::new(ErrorKind::Refused, message)
}
