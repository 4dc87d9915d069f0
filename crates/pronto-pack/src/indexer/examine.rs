//! Examines all objects of a received pack without storing the pack.

use super::spool::SpoolStorage;
use super::tables::EntryBase;
use super::{IndexContext, Options, Outcome, outcome, run, stopped};
use crate::error::Error;
use crate::pack::{EntryReader, PackOffset, PackReader};
use crate::temporary::TemporaryFile;
use pronto_hash::{ObjectId, oid};
use pronto_io::sync::SyncMethod;
use pronto_io::view::ViewAccess;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A pack whose objects have all been examined. Dropping the value removes the temporary file.
pub struct ExaminedPack {
    outcome: Outcome,
    pack: Arc<PackReader>,
    /// The ids and offsets of the entries that are not deltas, sorted by id.
    whole: Vec<(ObjectId, PackOffset)>,
    _temporary: TemporaryFile,
}

impl ExaminedPack {
    /// Returns the outcome. No file has its final name.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns the outcome and removes the temporary file.
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Returns a reader of an object of the pack that was [too large](super::Inspect::large_blob)
    /// to be held in memory. Returns `None` if the pack does not contain the object, or stores it
    /// as a delta.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the temporary file cannot be read.
    pub fn reader(&self, id: &oid) -> Result<Option<EntryReader>, Error> {
        match self
            .whole
            .binary_search_by(|(whole, _)| whole.as_ref().cmp(id))
        {
            Ok(place) => self.pack.reader(self.whole[place].1),
            Err(_) => Ok(None),
        }
    }
}

/// Checks that a pack from `input` is well formed, and stores nothing. Deltas are not resolved;
/// [`IndexContext::inspect`] receives all other objects.
///
/// # Errors
/// Fails as [`index_stream`](super::index_stream) does, except for errors about deltas.
pub fn scan_stream(
    input: &mut dyn Read,
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<Outcome, Error> {
    let mut options = options.clone();
    // Without a cache, no base is available, so no delta is resolved on arrival.
    options.base_cache_bytes = 0;
    options.kept_deltas_bytes = 0;
    run(&options, context).scan(input)
}

/// Does the same as [`index_stream`](super::index_stream), only for the calls of
/// [`IndexContext::inspect`]: the pack is written to a temporary file in `directory` without flushing,
/// and gets no index.
///
/// # Errors
/// Fails as [`index_stream`](super::index_stream) does.
pub fn examine_stream(
    input: &mut dyn Read,
    directory: &Path,
    options: &Options,
    context: &IndexContext<'_>,
) -> Result<ExaminedPack, Error> {
    let mut options = options.clone();
    options.sync = SyncMethod::No;
    options.sync_indexes = SyncMethod::No;
    let store = SpoolStorage::New(TemporaryFile::create(directory, "pack")?);
    let (done, store) = run(&options, context).index(input, store)?;
    let SpoolStorage::New(temporary) = store else {
        return Err(stopped());
    };
    let id_len = options.kind.len_in_bytes();
    let whole = done.order.iter().map(|place| *place as usize);
    let whole = whole
        .filter(|place| done.tables.bases[*place] == EntryBase::NONE)
        .map(|place| {
            let id = ObjectId::from_bytes_or_panic(&done.ids[place * id_len..][..id_len]);
            (id, PackOffset(done.tables.offsets[place]))
        })
        .collect();
    Ok(ExaminedPack {
        pack: Arc::new(PackReader::open(
            &temporary.path,
            options.kind,
            ViewAccess::Auto,
        )?),
        outcome: outcome(done),
        whole,
        _temporary: temporary,
    })
}
