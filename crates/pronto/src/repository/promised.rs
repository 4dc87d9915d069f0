//! Missing objects of a partial clone, for code that only needs them to be present.
//!
//! Fetching belongs to the group `transfer`, which is above the code that reads and writes files.
//! So the root of the crate binds the function ([`crate::FETCH_PROMISED`]).

use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_odb::Store;

use crate::{Repository, Result};

/// Objects that are about to be read.
pub(crate) struct Promised<'a> {
    pub(crate) repository: &'a Repository,
    /// The objects of the repository.
    pub(crate) objects: &'a Store,
    /// Their ids, which are collected only in a partial clone.
    pub(crate) ids: &'a mut dyn Iterator<Item = ObjectId>,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) interrupt: &'a Interrupt,
}

/// Fetches the missing ones.
///
/// # Errors
/// An object stays missing, or the configuration or the objects cannot be read.
pub(crate) type Fetch = fn(Promised<'_>) -> Result<()>;
