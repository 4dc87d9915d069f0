//! Repacks a repository of a store in a view on the disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pronto::commit_graph::{self, CommitSource, SplitStrategy};
use pronto::expiry::ExpiryAge;
use pronto::repack::{self, Cruft, RepackMode, WriteBitmaps};
use pronto::{Environment, Watch, pack_objects};
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::view::ViewAccess;

use super::due::{BITMAPPED_TIPS, Due, FACTOR};
use crate::backend::StoreBackend as _;
use crate::blocking::{BlockingStore, StoredRepository};
use crate::blocks::{BlockOptions, RangedView};
use crate::change::{MergedLayers, PackReplacement, StoreChange};
use crate::clock::Clock as _;
use crate::manifest::{FileKind, LayerKind, Manifest, StoredPack};
use crate::repository::Generation;
use crate::upload::{NewPack, UploadFile};
use crate::{ErrorKind, Result};

/// The effect of a repack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repacked {
    /// The number of packs before the repack.
    pub packs_before: usize,
    /// The number of packs in the new generation.
    pub packs_after: usize,
}

/// A repack of a generation.
pub(super) struct GenerationRepack<'a> {
    pub(super) store: &'a BlockingStore,
    pub(super) repository: &'a Arc<StoredRepository>,
    pub(super) generation: &'a Generation,
    /// The directory of the view, which must not exist.
    pub(super) view: &'a Path,
    /// The directory of downloaded files.
    pub(super) files: &'a Path,
}

impl GenerationRepack<'_> {
    /// Repacks the packs that `due` selects, and writes the commit-graph. Unreachable objects that
    /// were last used before `expiry` (seconds since 1970) are deleted.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Conflict`] if another process was faster, or refs have changed
    /// during a deletion, so that nothing was changed. Also fails for the same reasons as
    /// [`write_view`](crate::StoreRepository::write_view) and [`commit`](crate::StoreRepository::commit).
    pub(super) fn run(
        &self,
        due: Option<Due>,
        expiry: Option<i64>,
        watch: &Watch<'_>,
    ) -> Result<Repacked> {
        let GenerationRepack {
            store,
            repository,
            generation,
            ..
        } = *self;
        let blocks = store.block_cache(BlockOptions::default(), |_| ());
        let writing =
            repository.write_ranged_view(generation, self.view, self.files, &blocks, watch);
        let ranged = store.wait(writing)?;
        let _guard = Guard::new(self.view);
        self.repack(due, expiry, watch)?;
        let mut replacement = self.replacement(&ranged, watch)?;
        replacement.prunes = expiry.map(|_| generation.manifest.next_update_index());
        let packs_before = generation.manifest.packs.len();
        let packs_after = packs_before - replacement.dropped_packs.len() + replacement.packs.len();
        let changes = !replacement.dropped_packs.is_empty()
            || !replacement.packs.is_empty()
            || !replacement.layers.is_empty();
        if changes {
            store.wait(repository.commit(StoreChange::Replace(replacement)))?;
        }
        Ok(Repacked {
            packs_before,
            packs_after,
        })
    }

    /// Repacks the view.
    fn repack(&self, due: Option<Due>, expiry: Option<i64>, watch: &Watch<'_>) -> Result<()> {
        let view = pronto::Repository::open(self.view, &Environment::empty(self.view));
        let view = view.map_err(failed)?;
        let mut options = repack::Options::default();
        let mut cruft = Cruft::default();
        cruft.expiration = expiry.map(ExpiryAge::Before);
        (options.what, options.bitmaps) = match (due, expiry) {
            (Some(Due::Small), None) => (RepackMode::Geometric(FACTOR), WriteBitmaps::No),
            _ => (RepackMode::Cruft(cruft), WriteBitmaps::IfPossible),
        };
        options.bitmapped_tips = BITMAPPED_TIPS;
        options.delete = true;
        options.server_info = false;
        // No other process uses the view.
        options.patience = Duration::ZERO;
        options.packing = pack_objects::packing_options(&view).map_err(failed)?;
        repack::repack(&view, &options, watch).map_err(failed)?;
        let mut options = commit_graph::GraphWriteOptions::default();
        options.source = CommitSource::Reachable;
        options.split = Some(SplitStrategy::Merge);
        options.changed_paths = Some(true);
        // The layers are opened again, with the new packs.
        let view = pronto::Repository::open(self.view, &Environment::empty(self.view));
        let view = view.map_err(failed)?;
        commit_graph::write(&view, &options, watch).map_err(failed)
    }

    /// Compares the view with its generation, and uploads the new files.
    fn replacement(&self, ranged: &RangedView, watch: &Watch<'_>) -> Result<PackReplacement> {
        let manifest = &self.generation.manifest;
        let found = packs(&self.view.join("objects/pack"), manifest)?;
        let is_same = |pack: &StoredPack| {
            let files = found.get(&pack.id);
            files.is_some_and(|files| has_files(pack, files))
        };
        let (kept, dropped): (Vec<&StoredPack>, Vec<&StoredPack>) =
            manifest.packs.iter().partition(|pack| is_same(pack));
        if dropped.iter().any(|pack| found.contains_key(&pack.id)) {
            // A pack that has got more accompanying files is uploaded together with them.
            ranged.fill(watch)?;
        }
        let mut replacement = PackReplacement {
            dropped_packs: dropped.iter().map(|pack| pack.upload).collect(),
            ..PackReplacement::default()
        };
        for (id, files) in &found {
            if !kept.iter().any(|pack| pack.id == *id) {
                let pack = self.new_pack(*id, files)?;
                let uploading = self.repository.upload_watched(&pack, watch);
                let uploaded = self.store.wait(uploading)?;
                replacement.packs.push(uploaded);
            }
        }
        replacement.layers.extend(self.layers()?);
        Ok(replacement)
    }

    fn new_pack(&self, id: ObjectId, files: &BTreeMap<FileKind, PathBuf>) -> Result<NewPack> {
        let index = files.get(&FileKind::Index).map(PathBuf::as_path);
        let index = pronto_pack::idx::PackIndex::open(
            index.unwrap_or(self.view),
            id.kind(),
            ViewAccess::Auto,
        );
        let index = index.map_err(|error| error.map_kind(|_| ErrorKind::Repository))?;
        let mut new = Vec::new();
        for (kind, path) in files {
            new.push(UploadFile::from_path(*kind, path)?);
        }
        let promisor = self.view.join(format!("objects/pack/pack-{id}.promisor"));
        Ok(NewPack {
            id,
            objects: index.len(),
            is_promisor: promisor.exists(),
            files: new,
        })
    }

    /// Returns the layers of the commit-graph if they have changed.
    fn layers(&self) -> Result<Option<MergedLayers>> {
        let manifest = &self.generation.manifest;
        let begun = self.repository.backend.clock().now();
        let directory = self.view.join("objects/info/commit-graphs");
        let chain = directory.join("commit-graph-chain");
        let text = match fs::read_to_string(&chain) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.context(ErrorKind::Io, "cannot read", &chain)?,
        };
        let is_graph = |layer: &&crate::RepositoryLayer| layer.kind == LayerKind::Graph;
        let old: Vec<_> = manifest.layers.iter().filter(is_graph).collect();
        let ids = text
            .lines()
            .map(|line| pronto_hash::parse_hex(line.as_bytes()));
        let ids: Vec<ObjectId> = ids.filter_map(std::result::Result::ok).collect();
        if ids.iter().eq(old.iter().map(|layer| &layer.id)) {
            return Ok(None);
        }
        let mut new = Vec::new();
        for id in ids {
            let known = old.iter().find(|layer| layer.id == id);
            new.push(match known {
                Some(known) => (*known).clone(),
                None => {
                    let path = directory.join(format!("graph-{id}.graph"));
                    let upload = self.repository.upload_layer(LayerKind::Graph, id, &path);
                    self.store.wait(upload)?
                }
            });
        }
        Ok(Some(MergedLayers {
            kind: LayerKind::Graph,
            old: old.iter().map(|layer| layer.upload).collect(),
            new,
            begun,
        }))
    }
}

/// Returns the files of the packs in a directory.
fn packs(
    directory: &Path,
    manifest: &Manifest,
) -> Result<BTreeMap<ObjectId, BTreeMap<FileKind, PathBuf>>> {
    let mut packs: BTreeMap<ObjectId, BTreeMap<FileKind, PathBuf>> = BTreeMap::new();
    let entries = fs::read_dir(directory).context(ErrorKind::Io, "cannot read", directory)?;
    for entry in entries {
        let path = entry
            .context(ErrorKind::Io, "cannot read", directory)?
            .path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let id = stem.and_then(|stem| stem.strip_prefix("pack-"));
        let id = id.and_then(|id| pronto_hash::parse_hex(id.as_bytes()).ok());
        let extension = path.extension().and_then(|extension| extension.to_str());
        let kind = FileKind::ALL
            .into_iter()
            .find(|kind| Some(kind.extension()) == extension);
        if let (Some(id), Some(kind)) = (id.filter(|id| id.kind() == manifest.hash), kind) {
            packs.entry(id).or_default().insert(kind, path);
        }
    }
    packs.retain(|_, files| files.contains_key(&FileKind::Pack));
    Ok(packs)
}

/// Returns whether a pack of the store has all these files.
fn has_files(pack: &StoredPack, files: &BTreeMap<FileKind, PathBuf>) -> bool {
    let has = |kind: &FileKind| pack.files.iter().any(|file| file.kind == *kind);
    files.keys().all(has)
}

fn failed(error: pronto::Error) -> crate::Error {
    error.map_kind(|_| ErrorKind::Repository)
}
