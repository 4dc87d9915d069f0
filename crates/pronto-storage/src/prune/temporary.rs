//! Removes abandoned temporary files and directories of writers.

use std::path::Path;

use pronto_odb::Quarantine;
use pronto_repository::Result;

use super::loose::begins;
use super::{PruneRun, PrunedFile};
use crate::pack_objects::names;

impl PruneRun<'_> {
    pub(super) fn prune_temporary(&mut self) -> Result<()> {
        for directory in [self.objects.clone(), self.objects.join("pack")] {
            for name in names(&directory)? {
                let path = directory.join(name);
                if begins(&path, b"tmp_") {
                    self.prune_file(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a temporary file or directory if it has expired. No process that takes the lock writes
    /// to it any more; a directory may still be in use by a process that receives objects.
    pub(super) fn prune_file(&mut self, path: &Path) -> Result<()> {
        let Ok(found) = path.symlink_metadata() else {
            return Ok(());
        };
        let modified = found.modified();
        if !modified.is_ok_and(|modified| self.has_expired(modified)) {
            return Ok(());
        }
        let pruning = match self.options.dry_run {
            true => None,
            false => match self.begin()? {
                None => return Ok(()),
                pruning => pruning,
            },
        };
        if !found.is_dir() {
            (self.report)(&PrunedFile::TemporaryFile(path.to_owned()));
            if pruning.is_some() {
                self.unlink(path);
            }
            return Ok(());
        }
        if Quarantine::is_in_use(path) {
            return Ok(());
        }
        (self.report)(&PrunedFile::TemporaryDirectory(path.to_owned()));
        if pruning.is_some() {
            // Remaining files are removed in the next run.
            let _ = std::fs::remove_dir_all(path);
        }
        Ok(())
    }
}
