//! The times at which the objects of a cruft pack were last used (`.mtimes`).

use std::time::{Duration, SystemTime};

use pronto_hash::Kind;
use pronto_pack::mtimes::Mtimes;
use pronto_repository::Result;
use pronto_repository::packs::from_pack;

use crate::pack_objects::ExistingPack;

/// The time at which each object of a cruft pack was last used.
pub(crate) struct Dates(Mtimes);

impl Dates {
    /// # Errors
    /// Fails with `ErrorKind::Object` or `ErrorKind::Io` if the file cannot be read.
    pub(crate) fn at(&self, row: u32) -> Result<SystemTime> {
        let seconds = self.0.at(row).map_err(from_pack)?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into()))
    }
}

/// Opens the `.mtimes` file of `pack`. Returns `None` if there is no such file: then the modification
/// time of the pack applies to all objects.
///
/// # Errors
/// Fails with `ErrorKind::Object` or `ErrorKind::Io` if the file exists and cannot be read.
pub(crate) fn dates(pack: &ExistingPack, hash: Kind) -> Result<Option<Dates>> {
    let path = pack.path.with_extension("mtimes");
    if !path.exists() {
        return Ok(None);
    }
    let access = pronto_io::view::ViewAccess::Auto;
    let opened = Mtimes::open(&path, hash, pack.index.len(), access).map_err(from_pack)?;
    Ok(Some(Dates(opened)))
}
