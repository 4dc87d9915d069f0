//! The turns of writing and pruning of a store.

use std::time::Duration;

use super::Store;
use crate::error::Error;
use crate::turns::{Pruning, Turn};

impl Store {
    /// Declares that this process writes objects or relies on objects that it has found. Other
    /// processes of pronto prune none of them until [`finish_writing`](Self::finish_writing) or the
    /// end of the store. Everything that writes through the store calls it. A caller that relies on
    /// existing objects before it sets a ref must call it before looking them up. Costs five system
    /// calls the first time, and waits for a pruner that is deleting. Packs that are gone by then
    /// are forgotten, even if they are open: one `stat` for each directory if packs were listed.
    ///
    /// # Errors
    /// `Io` when a pruner holds the lock for a minute, or a directory cannot be listed.
    pub fn begin_writing(&self) -> Result<(), Error> {
        let turn = self.writing().begin()?;
        self.since_turn(turn)
    }

    /// Does the same as [`begin_writing`](Self::begin_writing) for a long-lived process. Pruners
    /// may run when the last thread drops the returned value.
    ///
    /// # Errors
    /// As [`begin_writing`](Self::begin_writing).
    pub fn turn_of_writing(&self) -> Result<Turn, Error> {
        let turn = self.writing().count_turn();
        self.begin_writing()?;
        Ok(turn)
    }

    /// Lets pruners proceed. What was written must be reachable from references or an index by now,
    /// or may be pruned. Call it before waiting for an editor, for another process that may prune,
    /// or for the next request. No thread may be writing.
    pub fn finish_writing(&self) {
        self.writing().finish();
    }

    /// Waits up to `patience` until no process writes, and keeps writers out from then on; `None`
    /// if others write all the time. Ends the writing of this store. While it waits, new writers
    /// are kept out for at most 200 ms at a time.
    ///
    /// The decision what to delete must be repeated afterwards, because refs may have been set.
    pub fn begin_pruning(&self, patience: Duration) -> Option<Pruning> {
        self.writing().begin_pruning(self.path(), patience)
    }
}
