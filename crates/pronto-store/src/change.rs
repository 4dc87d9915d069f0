//! Changes of a repository.

use std::time::Duration;

use bytes::Bytes;

use crate::manifest::{Layer, LayerKind, Pack, TableRecord};
use crate::name::UploadId;
use crate::refs::{RefUpdate, Verdict};

/// A change of a repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// New packs and refs.
    Push(Push),
    /// Other files for the same content.
    Replace(Replacement),
    /// Another configuration.
    Configure(Configuration),
}

/// New packs and refs.
#[derive(Clone, Debug, Default)]
pub struct Push {
    /// The generation that was found to have the objects which the packs lack; `None` if they lack none. If
    /// objects were deleted since, the push fails and must be checked again.
    pub base: Option<u64>,
    /// The packs, which have all objects that the refs need and the repository lacks.
    pub packs: Vec<Uploaded>,
    /// The changes of refs, each ref once.
    pub updates: Vec<RefUpdate>,
    /// Whether all refs change or none.
    pub is_atomic: bool,
    /// The most that the generation may hold. They are checked against the generation that is replaced, so that
    /// pushes at the same time cannot exceed them together.
    pub bounds: Bounds,
}

/// The most that a generation may hold after a push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes of objects of the store.
    pub bytes: Option<u64>,
    /// The most refs below `refs/`.
    pub refs: Option<u64>,
}

/// Another configuration of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The one that is replaced. The change fails if it is another one.
    pub old: Bytes,
    /// The new one, in the form of Git.
    pub new: Bytes,
}

/// Other files for the same content: a step of upkeep.
#[derive(Clone, Debug, Default)]
pub struct Replacement {
    /// The packs that are dropped. They must all be there.
    pub dropped_packs: Vec<UploadId>,
    /// The packs with their objects.
    pub packs: Vec<Uploaded>,
    /// Neighbouring tables that are merged. They must all be there.
    pub tables: Option<MergedTables>,
    /// Layers, which replace all of their kinds.
    pub layers: Vec<MergedLayers>,
    /// The update index that followed those of the refs which reach nothing that the dropped packs alone
    /// have; `None` if the packs have all objects of the dropped ones. The replacement fails if refs have
    /// changed since.
    pub prunes: Option<u64>,
}

/// All layers of a kind.
#[derive(Clone, Debug)]
pub struct MergedLayers {
    /// The kind.
    pub kind: LayerKind,
    /// Those that are replaced. They must be all that are there.
    pub old: Vec<UploadId>,
    /// The layers, in order; they may have some of the old ones.
    pub new: Vec<Layer>,
    /// The moment before the first new one was written.
    pub(crate) begun: Duration,
}

/// Tables of which another has all records.
#[derive(Clone, Debug)]
pub struct MergedTables {
    /// The tables, the oldest first.
    pub(crate) old: Vec<UploadId>,
    /// The table with their records, and its bytes; `None` if there are none.
    pub(crate) new: Option<(TableRecord, Bytes)>,
    /// The moment before it was written.
    pub(crate) begun: Duration,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The generation in which the change is, or on which it was refused.
    pub generation: u64,
    /// The decision about each ref of a push.
    pub verdicts: Vec<Verdict>,
}

/// A pack whose files are in the store. It must be committed within a quarter of the grace period.
#[derive(Clone, Debug)]
pub struct Uploaded {
    pub(crate) pack: Pack,
    /// The moment before the first file was written.
    pub(crate) begun: Duration,
}
