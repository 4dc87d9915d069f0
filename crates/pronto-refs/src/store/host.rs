//! The interface through which transactions of refs use the rest of the repository.

use std::fmt;

use bstr::BStr;
use pronto_config::durability::Fsync;
use pronto_config::{Config, Result};
use pronto_hash::{ObjectId, oid};

use super::References;

/// The repository that contains the refs: its configuration, its objects and its hook.
///
/// Refs are changed through this trait, so that this crate does not depend on the object store or
/// on the way in which processes are started.
pub trait RefHost: fmt::Debug + Sync {
    /// Returns the refs of the repository.
    fn refs(&self) -> &References;

    /// Returns the configuration.
    fn config(&self) -> &Config;

    /// Returns the files to flush to the disk, and the method (`core.fsync`, `core.fsyncMethod`).
    ///
    /// # Errors
    /// Fails if a setting has a malformed value.
    fn fsync(&self) -> Result<Fsync>;

    /// Announces to the object store that refs to its objects are about to be written, so that no
    /// present object is pruned.
    ///
    /// # Errors
    /// Fails if the object store cannot be opened or locked.
    fn begin_writing(&self) -> Result<()>;

    /// Returns whether the object `id` exists.
    ///
    /// # Errors
    /// Fails if the object store cannot be read.
    fn has_object(&self, id: &oid) -> Result<bool>;

    /// Checks that the ref `name` may point to the object `id`: the object must exist, and must be
    /// a commit if the ref is a branch.
    ///
    /// # Errors
    /// Fails if the ref may not point to the object, or if the object store cannot be read.
    fn check_storable(&self, name: &BStr, id: &oid) -> Result<()>;

    /// Peels the tag `id` and returns the id of its final object; `None` if `id` is not a tag or
    /// does not exist.
    ///
    /// # Errors
    /// Fails if a tag in the chain is malformed or cannot be read.
    fn peel_tag(&self, id: ObjectId) -> Result<Option<ObjectId>>;

    /// Returns the committer and the time in the format of reflog lines.
    ///
    /// # Errors
    /// Fails if a given date is malformed, or if a setting has a malformed value.
    fn log_signature(&self) -> Result<String>;

    /// Returns whether a hook `reference-transaction` is installed.
    fn has_hook(&self) -> bool;

    /// Runs the hook `reference-transaction` with `state` as its argument and `input` on its
    /// standard input. Returns the exit code, or `None` if there is no such hook.
    ///
    /// # Errors
    /// Fails if the hook cannot be started.
    fn run_hook(&self, state: &str, input: Vec<u8>) -> Result<Option<i32>>;

    /// Records that the ref `name` points to an object that does not exist, and is therefore not
    /// packed.
    fn note_missing_target(&self, name: &BStr);
}
