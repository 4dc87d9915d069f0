//! Changes of a repository.

use std::time::Duration;

use bytes::Bytes;

use crate::manifest::{LayerKind, RepositoryLayer, StoredPack, TableRecord};
use crate::name::UploadId;
use crate::refs::{RefDecision, RefUpdate};

/// A change of a repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreChange {
    /// Adds packs, and updates refs.
    Push(PackPush),
    /// Replaces packs, tables and layers, as upkeep does.
    Replace(PackReplacement),
    /// Replaces the configuration.
    Configure(Configuration),
}

/// The packs and ref updates of a push.
#[derive(Clone, Debug, Default)]
pub struct PackPush {
    /// The number of the generation that was found to contain the objects that the packs lack, or
    /// `None` if the packs are complete. If objects were deleted after that generation, the push
    /// fails and must be checked again.
    pub base: Option<u64>,
    /// The packs, which contain all objects that the refs need and the repository lacks.
    pub packs: Vec<Uploaded>,
    /// The ref updates, at most one for each ref.
    pub updates: Vec<RefUpdate>,
    /// Apply all ref updates or none (`--atomic`).
    pub is_atomic: bool,
    /// The limits on the content of the generation after the push. They are checked against the
    /// generation that is replaced, so that concurrent pushes cannot exceed them together.
    pub bounds: GenerationBounds,
}

/// The limits on the content of a generation after a push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerationBounds {
    /// The largest size in bytes of the objects of the store.
    pub bytes: Option<u64>,
    /// The largest number of refs below `refs/`.
    pub refs: Option<u64>,
}

/// The replacement of the configuration of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The configuration that is replaced. The change fails if the current configuration differs.
    pub old: Bytes,
    /// The new configuration, in Git's format.
    pub new: Bytes,
}

/// The replacement of packs, tables and layers, as a step of upkeep.
#[derive(Clone, Debug, Default)]
pub struct PackReplacement {
    /// The packs that are removed. All of them must exist.
    pub dropped_packs: Vec<UploadId>,
    /// The packs that contain the objects of the removed packs.
    pub packs: Vec<Uploaded>,
    /// Adjacent tables that are merged. All of them must exist.
    pub tables: Option<MergedTables>,
    /// The layers, which replace all layers of their kinds.
    pub layers: Vec<MergedLayers>,
    /// The update index of the refs from which the objects that only the removed packs contain are
    /// unreachable, or `None` if the new packs contain all objects of the removed ones. The
    /// replacement fails if refs have changed since.
    pub prunes: Option<u64>,
}

/// The replacement of all layers of a kind.
#[derive(Clone, Debug)]
pub struct MergedLayers {
    /// The kind.
    pub kind: LayerKind,
    /// The layers that are replaced, which must be all existing layers of the kind.
    pub old: Vec<UploadId>,
    /// The new layers, in order, which may include some of the old ones.
    pub new: Vec<RepositoryLayer>,
    /// The time before the first new layer was written.
    pub(crate) begun: Duration,
}

/// A merge of several tables into one.
#[derive(Clone, Debug)]
pub struct MergedTables {
    /// The merged tables, the oldest first.
    pub(crate) old: Vec<UploadId>,
    /// The table with their records, and its bytes, or `None` if no records are left.
    pub(crate) new: Option<(TableRecord, Bytes)>,
    /// The time before the new table was written.
    pub(crate) begun: Duration,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The generation that contains the change, or on which the change was refused.
    pub generation: u64,
    /// The result of each ref update of a push.
    pub verdicts: Vec<RefDecision>,
}

/// A pack whose files are in the store. The pack must be committed within a quarter of the grace
/// period.
#[derive(Clone, Debug)]
pub struct Uploaded {
    pub(crate) pack: StoredPack,
    /// The time before the first file was written.
    pub(crate) begun: Duration,
}
