//! Coordinates writing and pruning of a store.

use std::time::Duration;

use super::Store;
use crate::error::Error;
use crate::turns::{Pruning, WritingTurn};

impl Store {
    /// Declares that this process writes objects or relies on objects that it has found. Other
    /// processes of pronto prune none of these objects until
    /// [`finish_writing`](Self::finish_writing), or until the store is dropped. Every function that
    /// writes through the store calls this function. A caller that relies on existing objects
    /// before it sets a ref must call this function before it looks up the objects. The first call
    /// costs five system calls, and waits for a pruner that is deleting. Packs that have been
    /// deleted by then are removed from the list, even if they are open; if packs were listed, this
    /// costs one `stat` for each directory.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a pruner holds the lock for a minute, or if a directory cannot
    /// be listed.
    pub fn begin_writing(&self) -> Result<(), Error> {
        let turn = self.writing().begin()?;
        self.since_turn(turn)
    }

    /// Does the same as [`begin_writing`](Self::begin_writing) for a long-lived process. Pruners
    /// may run after the last thread has dropped the returned value.
    ///
    /// # Errors
    /// Fails as [`begin_writing`](Self::begin_writing) does.
    pub fn turn_of_writing(&self) -> Result<WritingTurn, Error> {
        let turn = self.writing().count_turn();
        self.begin_writing()?;
        Ok(turn)
    }

    /// Lets pruners proceed. Written objects must be reachable from refs or an index before this
    /// call, or they may be pruned. Call this function before waiting for an editor, for another
    /// process that may prune, or for the next request. No other thread may write meanwhile.
    pub fn finish_writing(&self) {
        self.writing().finish();
    }

    /// Waits up to `patience` until no process writes, and then blocks writers until the returned
    /// value is dropped. Returns `None` on a timeout. Ends the turn of writing of this store.
    /// During the wait, new writers are blocked for at most 200 ms at a time.
    ///
    /// The caller must decide again which objects to delete, because refs may have been set during
    /// the wait.
    pub fn begin_pruning(&self, patience: Duration) -> Option<Pruning> {
        self.writing().begin_pruning(self.path(), patience)
    }
}
