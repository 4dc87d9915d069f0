//! Deletes loose objects that are also packed.

use pronto_hash::ObjectId;
use pronto_io::progress::Progress;
use pronto_repository::Result;
use pronto_repository::objects::from_odb;

use super::{BATCH, PruneRun, PrunedFile, REST};
use crate::pack_objects::{loose_objects, packed};

impl PruneRun<'_> {
    /// Removes the loose objects that are in a pack, and the directories that become empty. `progress`
    /// shows the progress, which only `git prune-packed` does.
    pub(super) fn prune_packed(&mut self, progress: &dyn Progress) -> Result<()> {
        let ids = loose_objects(&self.objects)?;
        let duplicates = self.duplicates(ids)?;
        if self.options.dry_run {
            for id in duplicates {
                self.report_duplicate(&id);
            }
            return Ok(());
        }
        let meter = progress.begin("Removing duplicate objects", Some(256));
        let mut rest = duplicates.as_slice();
        while !rest.is_empty() {
            let Some(_pruning) = self.begin()? else {
                break;
            };
            // No pack is removed while the lock is held.
            let (some, others) = rest.split_at(rest.len().min(BATCH));
            rest = others;
            for id in self.duplicates(some.to_vec())? {
                let path = self.report_duplicate(&id);
                self.unlink(&path);
                let _ = path.parent().map(std::fs::remove_dir);
            }
            if !rest.is_empty() {
                std::thread::sleep(REST);
            }
        }
        meter.add(256);
        meter.finish();
        if !self.outcome.gave_up {
            for byte in 0..=u8::MAX {
                // The call fails if the directory is not empty.
                let _ = std::fs::remove_dir(self.objects.join(format!("{byte:02x}")));
            }
        }
        self.repository.objects()?.refresh().map_err(from_odb)?;
        Ok(())
    }

    fn duplicates(&self, ids: Vec<ObjectId>) -> Result<Vec<ObjectId>> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let marks = packed(self.repository, &ids)?;
        let packed = ids.into_iter().zip(marks).filter(|(_, mark)| *mark);
        Ok(packed.map(|(id, _)| id).collect())
    }

    fn report_duplicate(&mut self, id: &ObjectId) -> std::path::PathBuf {
        let hex = id.to_string();
        let path = self.objects.join(&hex[..2]).join(&hex[2..]);
        (self.report)(&PrunedFile::Duplicate(path.clone()));
        path
    }
}
