//! Repacking the objects of a repository into few packs.
//! Every object exists at any moment. A new pack is complete under its final name before any file is
//! removed. Unreachable objects are written as loose objects before their pack is removed. A
//! multi-pack-index names no pack that is about to be removed. Loose objects are removed only if a
//! remaining pack contains them.

mod cruft;
mod geometry;
mod loosen;
mod removal;
mod server_info;

pub use server_info::update_server_info;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::BString;
use pronto_config::path;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_odb::packing::{self, PackContents, PackCounts};
use pronto_repository::expiry::ExpiryAge;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::writer_options;
use pronto_repository::support::{self, Operation};
use pronto_repository::{ErrorKind, Repository, Result};
use pronto_repository::{Notice, PackNotice};

use crate::bitmaps;
use crate::multi_pack_index::{self, BitmapOptions, MidxWriteOptions};
use crate::pack_objects::{self, ExistingPack, LeaveOut, Select, SelectedObjects, names};

/// The mode of a repack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepackMode {
    /// Pack the reachable loose objects.
    Loose,
    /// Pack all reachable objects into one pack (`-a`).
    All {
        /// Whether unreachable objects of removed packs become loose (`-A`).
        loosen: bool,
    },
    /// Pack all reachable objects into one pack, and unreachable objects into a cruft pack with the
    /// times of their last use (`--cruft`).
    Cruft(Cruft),
    /// Merge packs and loose objects until each pack has at least this many times the objects of the
    /// next smaller one (`--geometric`).
    Geometric(u32),
}

/// Options for cruft packs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cruft {
    /// Omit objects that were last used before this time, unless they are reachable from newer objects
    /// (`--cruft-expiration`). Omitted objects are lost when their pack is removed.
    pub expiration: Option<ExpiryAge>,
    /// Keep cruft packs of at least this size in bytes unchanged (`--combine-cruft-below-size`). Has no
    /// effect if `expiration` is set.
    pub combine_below: Option<u64>,
    /// Write the omitted objects into a pack with this path prefix (`--expire-to`).
    pub expire_to: Option<PathBuf>,
}

/// The mode of writing bitmaps (`--write-bitmap-index`, `repack.writeBitmaps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBitmaps {
    /// Write no bitmaps.
    No,
    /// Write bitmaps if the pack permits it, without a notice otherwise.
    IfPossible,
    /// Write bitmaps, and report a notice if the pack does not permit it.
    Yes,
}

/// Options for repacking a repository (`git repack`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The mode of the repack.
    pub what: RepackMode,
    /// Remove redundant packs and loose objects (`-d`).
    pub delete: bool,
    /// Do not pack objects of alternates (`-l`).
    pub local: bool,
    /// Pack the objects of packs with a `.keep` file, too (`--pack-kept-objects`).
    pub pack_kept_objects: bool,
    /// Keep the packs with these names (`--keep-pack`).
    pub keep_packs: Vec<BString>,
    /// Write bitmaps (`-b`).
    pub bitmaps: WriteBitmaps,
    /// The number of newest tips of refs that always get a bitmap.
    pub bitmapped_tips: usize,
    /// Write a multi-pack-index, to which the bitmaps then belong (`--write-midx`).
    pub multi_pack_index: bool,
    /// Write the files for servers without Git support: `objects/info/packs` and `info/refs` (the
    /// opposite of `-n`).
    pub server_info: bool,
    /// With `-A`, omit unreachable objects that were last used before this time instead of loosening
    /// them (`--unpack-unreachable`).
    pub unpack_unreachable: Option<ExpiryAge>,
    /// The time to wait for writing processes before packs are removed. After this time, packs are kept
    /// and a notice is reported.
    pub patience: Duration,
    /// Options for writing the pack.
    pub packing: packing::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            what: RepackMode::Loose,
            delete: false,
            local: false,
            pack_kept_objects: false,
            keep_packs: Vec::new(),
            bitmaps: WriteBitmaps::No,
            bitmapped_tips: 0,
            multi_pack_index: false,
            server_info: true,
            unpack_unreachable: None,
            patience: crate::prune::PATIENCE,
            packing: packing::Options::default(),
        }
    }
}

/// A pack that existed before the repack.
struct RepackedPack {
    /// The file name without `.pack`.
    stem: BString,
    is_kept: bool,
}

struct RepackRun<'a> {
    repository: &'a Repository,
    options: &'a Options,
    watch: &'a Watch<'a>,
    directory: PathBuf,
    existing: Vec<RepackedPack>,
}

/// Repacks the repository. Returns `None` if all objects were already packed as requested.
///
/// Costs selecting and writing the objects, see [`pack_objects::select`], and about 50 bytes of memory
/// for each object.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if an object is missing or malformed, [`ErrorKind::Io`] if a file
/// cannot be written, or with [`ErrorKind::Interrupted`]. No file has been removed then.
pub fn repack(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Option<PackCounts>> {
    support::require(repository, Operation::Repack)?;
    // What packs there are before anything is selected: those that come later stay.
    let directory = repository.objects()?.path().join("pack");
    let mut work = RepackRun {
        repository,
        options,
        watch,
        existing: existing(&directory, &options.keep_packs)?,
        directory,
    };
    for at in 0..work.existing.len() {
        let name = named(&work.existing[at].stem, ".pack");
        let path = work.directory.join(path::borrow(&name));
        work.existing[at].is_kept |= work.is_retained(&path);
    }
    work.run()
}

impl RepackRun<'_> {
    fn run(&self) -> Result<Option<PackCounts>> {
        let options = self.options;
        let writes_tips = options.multi_pack_index && options.bitmaps == WriteBitmaps::Yes;
        let tips = writes_tips.then(|| self.write_tips()).transpose()?;
        let geometry = match options.what {
            RepackMode::Geometric(factor) => Some(self.geometry(factor)?),
            _ => None,
        };
        let (selection, is_whole) = match &geometry {
            Some(geometry) => (self.select_geometric(geometry)?, false),
            None => self.select()?,
        };
        let drops = options.delete && self.takes_all();
        let chosen = match drops || self.cruft().is_some() {
            true => selection.members.iter().map(|member| member.id).collect(),
            false => HashSet::new(),
        };
        let loosens = options.what == RepackMode::All { loosen: true } && options.delete;
        if loosens && self.existing.iter().any(|pack| !pack.is_kept) {
            self.loosen(&selection)?;
        }
        let made = self.write(&selection, is_whole)?;
        drop(selection);
        let name = made.as_ref().map(|(name, _)| name);
        let (mut written, mut marks) = (Vec::from_iter(name.cloned()), None);
        if let Some(cruft) = self.cruft() {
            for pack in self.write_cruft(cruft, &chosen)? {
                let stem = pack.file_stem().unwrap_or_default();
                written.push(path::as_bytes(Path::new(stem)).into());
            }
        }
        let redundant = match &geometry {
            Some(geometry) => self.rolled_up(geometry, name),
            None => self.replaced(&written),
        };
        if drops && !redundant.is_empty() {
            marks = Some(self.marks(chosen)?);
        }
        if options.multi_pack_index {
            let largest = geometry.as_ref().and_then(geometry::Geometry::largest);
            // The cruft pack is not preferred.
            let preferred = largest.or_else(|| name.map(|stem| named(stem, ".pack")));
            self.write_multi(
                &written,
                &redundant,
                preferred,
                tips.as_ref().map(|tips| &tips.0),
            )?;
        }
        if options.delete {
            self.remove(&redundant, marks)?;
        }
        if options.server_info {
            update_server_info(self.repository)?;
        }
        Ok(made.map(|(_, counts)| counts))
    }

    /// Returns whether all reachable objects are selected, so that the existing packs are replaced.
    fn takes_all(&self) -> bool {
        matches!(
            self.options.what,
            RepackMode::All { .. } | RepackMode::Cruft(_)
        )
    }

    fn cruft(&self) -> Option<&Cruft> {
        match &self.options.what {
            RepackMode::Cruft(cruft) => Some(cruft),
            _ => None,
        }
    }

    /// Returns whether the pack existed before the repack.
    fn was_there(&self, pack: &ExistingPack) -> bool {
        let name = pack.name();
        (self.existing.iter()).any(|found| named(&found.stem, ".pack") == name)
    }

    /// Returns whether the pack existed before the repack, and is not kept.
    fn is_repackable(&self, pack: &ExistingPack) -> bool {
        let name = pack.name();
        let mut existing = self.existing.iter().filter(|found| !found.is_kept);
        pack.is_own && existing.any(|found| named(&found.stem, ".pack") == name)
    }

    /// Selects the objects that are reachable from refs, reflogs and indexes. Returns whether the
    /// selection contains all of them.
    fn select(&self) -> Result<(SelectedObjects, bool)> {
        let (repository, options) = (self.repository, self.options);
        let is_all = self.takes_all();
        let mut wants = repository.work_tree_heads()?;
        wants.extend(pack_objects::ref_tips(repository)?);
        wants.extend(pack_objects::reflog_tips(repository)?);
        let select = Select {
            thin: false,
            sparse: repository.config().bool_or("pack.usesparse", true)?,
            bitmaps: false,
            unpacked: !is_all,
            ..Select::default()
        };
        let mut selection = pack_objects::select(repository, &wants, &[], &select, self.watch)?;
        pack_objects::include_indexed(repository, &mut selection, self.watch)?;
        let leave_out = LeaveOut {
            packed: !is_all,
            elsewhere: options.local,
            kept: !options.pack_kept_objects,
            packs: options.keep_packs.clone(),
        };
        let is_part = pack_objects::leave_out(repository, &mut selection, &leave_out)?;
        Ok((selection, !is_part))
    }

    /// Writes the pack and its bitmaps. Returns the name of the pack without `.pack`.
    fn write(
        &self,
        selection: &SelectedObjects,
        is_whole: bool,
    ) -> Result<Option<(BString, PackCounts)>> {
        if selection.members.is_empty() {
            return Ok(None);
        }
        let (repository, options) = (self.repository, self.options);
        let files = writer_options(repository.config(), repository.object_hash())?;
        let contents = PackContents {
            members: &selection.members,
            whole: Some(&selection.whole),
            ..PackContents::default()
        };
        selection.report_count(self.watch);
        let store = repository.objects()?;
        let made = store.pack_into(
            &contents,
            &options.packing,
            &self.directory,
            files,
            self.watch,
        );
        let (written, counts) = made.map_err(from_odb)?;
        pack_objects::report_totals(&counts, self.watch);
        let stem = written.pack.file_stem().unwrap_or_default();
        let stem: BString = path::as_bytes(Path::new(stem)).into();
        // An existing pack of this name has the same objects. Its other files are written again.
        let bitmap = written.pack.with_extension("bitmap");
        if self.existing.iter().any(|pack| pack.stem == stem) {
            for extension in ["bitmap", "mtimes"] {
                let _ = std::fs::remove_file(bitmap.with_extension(extension));
            }
        }
        if options.bitmaps == WriteBitmaps::No || options.multi_pack_index {
            return Ok(Some((stem, counts)));
        }
        let is_quiet = options.bitmaps == WriteBitmaps::IfPossible;
        if !is_whole {
            if !is_quiet {
                repository.notify(Notice::Packs(PackNotice::PartialPack));
            }
            return Ok(Some((stem, counts)));
        }
        let (mut tips, settings) = (bitmaps::tips(repository)?, bitmaps::settings(repository)?);
        tips.bitmapped_tips = options.bitmapped_tips;
        let bitmaps = bitmaps::write(repository, &written.index, &tips, &settings, self.watch);
        match bitmaps {
            Err(error) if is_quiet && error.kind() == ErrorKind::Refused => {}
            bitmaps => _ = bitmaps?,
        }
        Ok(Some((stem, counts)))
    }

    /// Returns the packs that the new pack replaces.
    fn replaced(&self, new: &[BString]) -> Vec<BString> {
        if !self.options.delete || !self.takes_all() {
            return Vec::new();
        }
        let hash_len = self.repository.object_hash().len_in_hex();
        let is_replaced = |pack: &&RepackedPack| {
            // Packs whose names do not follow git's scheme are never removed.
            !pack.is_kept && pack.stem.len() >= hash_len && !new.contains(&pack.stem)
        };
        let replaced = self.existing.iter().filter(is_replaced);
        replaced.map(|pack| pack.stem.clone()).collect()
    }

    fn write_multi(
        &self,
        new: &[BString],
        redundant: &[BString],
        preferred_pack: Option<BString>,
        tips: Option<&PathBuf>,
    ) -> Result<()> {
        let redundant: HashSet<&BString> = redundant.iter().collect();
        let existing = self.existing.iter().map(|pack| &pack.stem);
        let packs = existing.chain(new).filter(|stem| !redundant.contains(stem));
        let packs: BTreeSet<BString> = packs.map(|stem| named(stem, ".idx")).collect();
        if packs.is_empty() {
            return Ok(());
        }
        let bitmaps = self.options.bitmaps;
        let write = MidxWriteOptions {
            preferred_pack,
            packs: Some(packs.clone()),
            bitmap: (bitmaps == WriteBitmaps::Yes).then(|| BitmapOptions {
                refs_snapshot: tips.cloned(),
            }),
            ..MidxWriteOptions::default()
        };
        multi_pack_index::write(self.repository, &write, self.watch)?;
        if bitmaps != WriteBitmaps::No {
            for name in packs {
                let path = self.directory.join(path::borrow(&name));
                let _ = std::fs::remove_file(path.with_extension("bitmap"));
            }
        }
        Ok(())
    }

    /// Writes the current targets of refs to a file, so that the bitmaps match the refs for which the
    /// pack was made.
    fn write_tips(&self) -> Result<(PathBuf, Guard)> {
        let tips = bitmaps::tips(self.repository)?;
        let mut text = String::new();
        for id in &tips.ids {
            let mark = if tips.preferred.contains(id) { "+" } else { "" };
            text.push_str(&format!("{mark}{id}\n"));
        }
        let objects = self.directory.parent().unwrap_or(&self.directory);
        let path = objects.join(format!("bitmap-ref-tips_{:x}", std::process::id()));
        let guard = Guard::new(&path);
        std::fs::write(&path, text).context(ErrorKind::Io, "cannot write", &path)?;
        Ok((path, guard))
    }
}

/// Returns the name of a file of the pack.
fn named(stem: &BString, ending: &str) -> BString {
    [stem.as_slice(), ending.as_bytes()].concat().into()
}

/// Lists the packs in `directory`.
fn existing(directory: &Path, keep: &[BString]) -> Result<Vec<RepackedPack>> {
    let mut packs = Vec::new();
    for name in names(directory)? {
        let path = directory.join(&name);
        let name = path::as_bytes(Path::new(&name));
        // A pack without an index may be incomplete, so it is not removed.
        let Some(stem) = name.strip_suffix(b".pack") else {
            continue;
        };
        if !path.with_extension("idx").exists() {
            continue;
        }
        let is_named = keep.iter().any(|keep| keep == name);
        packs.push(RepackedPack {
            stem: stem.into(),
            is_kept: is_named || path.with_extension("keep").exists(),
        });
    }
    packs.sort_by(|a, b| a.stem.cmp(&b.stem));
    Ok(packs)
}
