//! Examines all objects of an arriving pack without storing it.

use super::spool::Store;
use super::tables::Base;
use super::{Context, Options, Outcome, outcome, run, stopped};
use crate::error::Error;
use crate::pack::{EntryReader, Pack, PackOffset};
use crate::temporary::Temporary;
use pronto_hash::{ObjectId, oid};
use pronto_io::sync::SyncMethod;
use pronto_io::view::Access;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A pack whose objects have all been examined. Dropping it removes the file.
pub struct Examined {
    outcome: Outcome,
    pack: Arc<Pack>,
    /// Ids and offsets of what is not a delta, by rising id.
    whole: Vec<(ObjectId, PackOffset)>,
    _temporary: Temporary,
}

impl Examined {
    /// Returns the outcome. No file has its final name.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Like [`outcome`](Self::outcome), where the pack is needed no longer.
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Reads an object of the pack piece by piece: one that was
    /// [too large](super::Inspect::large_blob) to be held. `None` for what is not in the pack, or
    /// is a delta there.
    ///
    /// # Errors
    /// `Io` when the temporary file cannot be read.
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

/// Checks that a pack from `input` is well formed, and keeps nothing. Deltas are not applied;
/// [`Context::inspect`] sees all other objects.
///
/// # Errors
/// Like [`index_stream`](super::index_stream), but for those about deltas.
pub fn scan_stream(
    input: &mut dyn Read,
    options: &Options,
    context: &Context<'_>,
) -> Result<Outcome, Error> {
    let mut options = options.clone();
    // A delta is applied on arrival if its base is at hand, which none shall be.
    options.base_cache_bytes = 0;
    options.kept_deltas_bytes = 0;
    run(&options, context).scan(input)
}

/// Like [`index_stream`](super::index_stream), for the sake of [`Context::inspect`] alone: the pack
/// is written to `directory` under a temporary name only, without waiting for the disk, and gets
/// no index.
///
/// # Errors
/// As [`index_stream`](super::index_stream).
pub fn examine_stream(
    input: &mut dyn Read,
    directory: &Path,
    options: &Options,
    context: &Context<'_>,
) -> Result<Examined, Error> {
    let mut options = options.clone();
    options.sync = SyncMethod::No;
    options.sync_indexes = SyncMethod::No;
    let store = Store::New(Temporary::create(directory, "pack")?);
    let (done, store) = run(&options, context).index(input, store)?;
    let Store::New(temporary) = store else {
        return Err(stopped());
    };
    let id_len = options.kind.len_in_bytes();
    let whole = done.order.iter().map(|place| *place as usize);
    let whole = whole
        .filter(|place| done.tables.bases[*place] == Base::NONE)
        .map(|place| {
            let id = ObjectId::from_bytes_or_panic(&done.ids[place * id_len..][..id_len]);
            (id, PackOffset(done.tables.offsets[place]))
        })
        .collect();
    Ok(Examined {
        pack: Arc::new(Pack::open(&temporary.path, options.kind, Access::Auto)?),
        outcome: outcome(done),
        whole,
        _temporary: temporary,
    })
}
