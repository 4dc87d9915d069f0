//! Repacking the objects of a repository into few packs.
//!
//! Every object is present at any moment. A new pack is complete under its name before anything is
//! removed. Unreachable objects are loose before their pack is removed. A multi-pack-index names no
//! pack that is about to be removed. Loose objects are removed only if a remaining pack has them.

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
use pronto_odb::packing::{self, Contents, Counts};
use pronto_repository::expiry::Expiry;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::writer_options;
use pronto_repository::support::{self, Operation};
use pronto_repository::{ErrorKind, Repository, Result};
use pronto_repository::{Notice, PackNotice};

use crate::bitmaps;
use crate::multi_pack_index::{self, BitmapOptions, WriteOptions};
use crate::pack_objects::{self, Known, LeaveOut, Select, Selection, names};

/// The form of the repack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Reachable loose objects become a pack.
    Loose,
    /// All reachable objects become one pack (`-a`).
    All {
        /// Whether unreachable objects become loose when their pack is removed (`-A`).
        loosen: bool,
    },
    /// All reachable objects become one pack, and unreachable ones a cruft pack with the times of
    /// their last use (`--cruft`).
    Cruft(Cruft),
    /// Packs are merged until each has at least this many times the objects of the next smaller one
    /// (`--geometric`); loose objects are included.
    Geometric(u32),
}

/// The treatment of unreachable objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cruft {
    /// Leave out what was last used before this moment, unless something younger leads to it
    /// (`--cruft-expiration`). What is left out is lost when its pack goes.
    pub expiration: Option<Expiry>,
    /// Leave packs of unreachable objects unchanged that have at least this many bytes
    /// (`--combine-cruft-below-size`). Has no effect if there is an expiration.
    pub combine_below: Option<u64>,
    /// Write the objects that are left out into a pack with this path prefix (`--expire-to`).
    pub expire_to: Option<PathBuf>,
}

/// Whether bitmaps are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bitmaps {
    /// Not.
    No,
    /// If that can be done.
    IfPossible,
    /// Yes, with a remark if that cannot be done.
    Yes,
}

/// Options for repacking a repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The form of the repack.
    pub what: What,
    /// Whether packs and loose objects go that are of no use any more (`-d`).
    pub delete: bool,
    /// Whether objects of alternates stay where they are (`-l`).
    pub local: bool,
    /// Whether packs with a `.keep` are packed like others.
    pub pack_kept_objects: bool,
    /// The names of packs that stay as they are.
    pub keep_packs: Vec<BString>,
    /// Whether to write bitmaps.
    pub bitmaps: Bitmaps,
    /// So many tips of refs, the youngest, have a bitmap in any case.
    pub bitmapped_tips: usize,
    /// Whether to write a multi-pack-index, to which the bitmaps then belong.
    pub multi_pack_index: bool,
    /// Whether to write what servers of files need (`objects/info/packs`, `info/refs`).
    pub server_info: bool,
    /// With `-A`: what was last used before this moment does not become loose, but is lost
    /// (`--unpack-unreachable`).
    pub unpack_unreachable: Option<Expiry>,
    /// The time to wait for processes that write before packs are removed. If it is not enough,
    /// packs are kept, with a warning.
    pub patience: Duration,
    /// Options for making the pack.
    pub packing: packing::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            what: What::Loose,
            delete: false,
            local: false,
            pack_kept_objects: false,
            keep_packs: Vec::new(),
            bitmaps: Bitmaps::No,
            bitmapped_tips: 0,
            multi_pack_index: false,
            server_info: true,
            unpack_unreachable: None,
            patience: crate::prune::PATIENCE,
            packing: packing::Options::default(),
        }
    }
}

/// A pack that was there before.
struct Existing {
    /// Without `.pack`.
    stem: BString,
    is_kept: bool,
}

struct Work<'a> {
    repository: &'a Repository,
    options: &'a Options,
    watch: &'a Watch<'a>,
    directory: PathBuf,
    existing: Vec<Existing>,
}

/// Repacks. `None` if there was nothing that was not in a pack where it belongs.
///
/// Costs what selecting and writing the objects costs, see [`pack_objects::select`];
/// memory for 50 bytes or so of each object.
///
/// # Errors
/// An object is missing or cannot be read, files cannot be written, or it was interrupted:
/// then nothing has been removed.
pub fn repack(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Option<Counts>> {
    support::require(Operation::Repack, repository)?;
    // What packs there are before anything is selected: those that come later stay.
    let directory = repository.objects()?.path().join("pack");
    let mut work = Work {
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

impl Work<'_> {
    fn run(&self) -> Result<Option<Counts>> {
        let options = self.options;
        let writes_tips = options.multi_pack_index && options.bitmaps == Bitmaps::Yes;
        let tips = writes_tips.then(|| self.write_tips()).transpose()?;
        let geometry = match options.what {
            What::Geometric(factor) => Some(self.geometry(factor)?),
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
        let loosens = options.what == What::All { loosen: true } && options.delete;
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
            // Not that of unreachable objects.
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

    /// Whether what is not selected is not packed with the rest.
    fn takes_all(&self) -> bool {
        matches!(self.options.what, What::All { .. } | What::Cruft(_))
    }

    fn cruft(&self) -> Option<&Cruft> {
        match &self.options.what {
            What::Cruft(cruft) => Some(cruft),
            _ => None,
        }
    }

    /// Whether the pack was there when this began.
    fn was_there(&self, pack: &Known) -> bool {
        let name = pack.name();
        (self.existing.iter()).any(|found| named(&found.stem, ".pack") == name)
    }

    /// Whether the pack was there when this began, and nothing keeps it.
    fn may_go(&self, pack: &Known) -> bool {
        let name = pack.name();
        let mut existing = self.existing.iter().filter(|found| !found.is_kept);
        pack.is_own && existing.any(|found| named(&found.stem, ".pack") == name)
    }

    /// Selects the objects that references, their reflogs and the indexes reach; returns whether
    /// these are all.
    fn select(&self) -> Result<(Selection, bool)> {
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

    /// Writes the pack, and bitmaps of it: its name without `.pack`.
    fn write(&self, selection: &Selection, is_whole: bool) -> Result<Option<(BString, Counts)>> {
        if selection.members.is_empty() {
            return Ok(None);
        }
        let (repository, options) = (self.repository, self.options);
        let files = writer_options(repository.config(), repository.object_hash())?;
        let contents = Contents {
            members: &selection.members,
            whole: Some(&selection.whole),
            ..Contents::default()
        };
        let store = repository.objects()?;
        let made = store.pack_into(
            &contents,
            &options.packing,
            &self.directory,
            files,
            self.watch,
        );
        let (written, counts) = made.map_err(from_odb)?;
        let stem = written.pack.file_stem().unwrap_or_default();
        let stem: BString = path::as_bytes(Path::new(stem)).into();
        // A pack of this name had the same objects. Its other files are written again.
        let bitmap = written.pack.with_extension("bitmap");
        if self.existing.iter().any(|pack| pack.stem == stem) {
            for extension in ["bitmap", "mtimes"] {
                let _ = std::fs::remove_file(bitmap.with_extension(extension));
            }
        }
        if options.bitmaps == Bitmaps::No || options.multi_pack_index {
            return Ok(Some((stem, counts)));
        }
        let is_quiet = options.bitmaps == Bitmaps::IfPossible;
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
            Err(error) if is_quiet && *error.kind() == ErrorKind::Refused => {}
            bitmaps => _ = bitmaps?,
        }
        Ok(Some((stem, counts)))
    }

    /// The packs that the new one takes the place of.
    fn replaced(&self, new: &[BString]) -> Vec<BString> {
        if !self.options.delete || !self.takes_all() {
            return Vec::new();
        }
        let hash_len = self.repository.object_hash().len_in_hex();
        let is_replaced = |pack: &&Existing| {
            // Packs with other names than git's are never removed.
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
        let write = WriteOptions {
            preferred_pack,
            packs: Some(packs.clone()),
            bitmap: (bitmaps == Bitmaps::Yes).then(|| BitmapOptions {
                refs_snapshot: tips.cloned(),
            }),
            ..WriteOptions::default()
        };
        multi_pack_index::write(self.repository, &write, self.watch)?;
        if bitmaps != Bitmaps::No {
            for name in packs {
                let path = self.directory.join(path::borrow(&name));
                let _ = std::fs::remove_file(path.with_extension("bitmap"));
            }
        }
        Ok(())
    }

    /// Writes down what references point to now: bitmaps are of what the pack was made of.
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

/// The name of a file of the pack.
fn named(stem: &BString, ending: &str) -> BString {
    [stem.as_slice(), ending.as_bytes()].concat().into()
}

/// The packs in `directory`.
fn existing(directory: &Path, keep: &[BString]) -> Result<Vec<Existing>> {
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
        packs.push(Existing {
            stem: stem.into(),
            is_kept: is_named || path.with_extension("keep").exists(),
        });
    }
    packs.sort_by(|a, b| a.stem.cmp(&b.stem));
    Ok(packs)
}
