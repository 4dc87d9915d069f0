//! When the objects of a pack were last used (`.mtimes`).

use std::time::{Duration, SystemTime};

use pronto_hash::Kind;
use pronto_pack::mtimes::Mtimes;
use pronto_repository::Result;
use pronto_repository::history::from_graph;

use crate::pack_objects::Known;

/// When each object of a pack was last used.
pub(crate) struct Dates(Mtimes);

impl Dates {
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn at(&self, row: u32) -> Result<SystemTime> {
        let seconds = self.0.at(row).map_err(from_graph)?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into()))
    }
}

/// Opens the times of last use of the objects of `pack`. `None` if the pack does not record them:
/// then all objects were last used when it was written.
///
/// # Errors
/// The file is there and cannot be read.
pub(crate) fn dates(pack: &Known, hash: Kind) -> Result<Option<Dates>> {
    let path = pack.path.with_extension("mtimes");
    if !path.exists() {
        return Ok(None);
    }
    let access = pronto_io::view::Access::Auto;
    let opened = Mtimes::open(&path, hash, pack.index.len(), access).map_err(from_graph)?;
    Ok(Some(Dates(opened)))
}
