//! The repository around the references, as transactions see it.

use std::fmt;

use bstr::BStr;
use pronto_config::durability::Fsync;
use pronto_config::{Config, Result};
use pronto_hash::{ObjectId, oid};

use super::References;

/// The repository that references belong to: its configuration, its objects and its hook.
///
/// References are changed through it, so that this crate need not know how objects are stored or
/// how programs are started.
pub trait Host: fmt::Debug + Sync {
    /// The references themselves.
    fn refs(&self) -> &References;

    /// The configuration.
    fn config(&self) -> &Config;

    /// Which files are flushed to the disk, and how.
    ///
    /// # Errors
    /// A configured value is not of its type.
    fn fsync(&self) -> Result<Fsync>;

    /// Tells the object store that references to its objects are about to be written, so that none
    /// of those that are there is pruned.
    ///
    /// # Errors
    /// The object store cannot be opened or locked.
    fn begin_writing(&self) -> Result<()>;

    /// Whether the object `id` exists.
    ///
    /// # Errors
    /// The object store cannot be read.
    fn has_object(&self, id: &oid) -> Result<bool>;

    /// Refuses to let `name` hold an object that does not exist, or a branch one that is no commit.
    ///
    /// # Errors
    /// It is refused, or the object store cannot be read.
    fn check_storable(&self, name: &BStr, id: &oid) -> Result<()>;

    /// The object that the tag `id` points to in the end; `None` when it is no tag, or does not
    /// exist.
    ///
    /// # Errors
    /// A tag on the way is malformed or cannot be read.
    fn peel_tag(&self, id: ObjectId) -> Result<Option<ObjectId>>;

    /// The committer and the time, as the lines of logs record them.
    ///
    /// # Errors
    /// A date was given that is none, or a configured value is not of its type.
    fn log_signature(&self) -> Result<String>;

    /// Whether there is a hook `reference-transaction`.
    fn has_hook(&self) -> bool;

    /// Runs the hook `reference-transaction` with `state` as its argument and `input` to read;
    /// its exit code, or `None` when there is no such hook.
    ///
    /// # Errors
    /// It cannot be started.
    fn run_hook(&self, state: &str, input: Vec<u8>) -> Result<Option<i32>>;

    /// Notes that the ref `name` points to an object that does not exist, and is not packed.
    fn note_missing_target(&self, name: &BStr);
}
