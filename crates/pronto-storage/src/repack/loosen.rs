//! Writes unreachable objects as loose objects with the age of their pack, before the pack is removed
//! (`-A`).

use std::collections::HashSet;
use std::time::SystemTime;

use pronto_hash::ObjectId;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::RepackRun;
use crate::pack_objects::{SelectedObjects, known_packs, mark};
use crate::prune::ReachableMarks;

impl RepackRun<'_> {
    /// Writes the objects of packs that may be removed as loose objects, unless they are in `selection`
    /// or in a kept pack.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object cannot be read, [`ErrorKind::Io`] if an object
    /// cannot be written, or with [`ErrorKind::Interrupted`].
    pub(super) fn loosen(&self, selection: &SelectedObjects) -> Result<()> {
        let chosen = selection.members.iter().map(|member| member.id);
        let chosen: HashSet<ObjectId> = chosen.collect();
        let packs = known_packs(self.repository)?;
        let recent = match self.options.unpack_unreachable {
            Some(expire) => {
                let mut marks = ReachableMarks::new(self.repository, self.watch)?;
                marks.lead_from_recent(expire)?;
                Some(marks)
            }
            None => None,
        };
        let named = &self.options.keep_packs;
        let (staying, going): (Vec<_>, Vec<_>) = packs
            .iter()
            .partition(|pack| !pack.is_own || pack.is_kept || named.contains(&pack.name()));
        let store = self.repository.objects()?.without_replacements();
        for pack in going {
            let mut ids = Vec::new();
            let scanned = pack.index.scan_ids(0..pack.index.len(), |id| {
                let id = id.to_owned();
                let is_wanted = recent.as_ref().is_none_or(|recent| recent.contains(&id));
                ids.extend((is_wanted && !chosen.contains(&id)).then_some(id));
            });
            scanned.map_err(from_pack)?;
            let mut marks = vec![false; ids.len()];
            for pack in &staying {
                mark(&pack.index, &ids, &mut marks)?;
            }
            let modified = pack
                .path
                .metadata()
                .and_then(|metadata| metadata.modified());
            let modified = modified.unwrap_or_else(|_| SystemTime::now());
            for (id, _) in ids.iter().zip(marks).filter(|(_, mark)| !mark) {
                let interrupted = |reason: pronto_io::interrupt::Interrupted| {
                    Error::new(ErrorKind::Interrupted, reason.to_string())
                };
                self.watch.interrupt().check().map_err(interrupted)?;
                store.loosen(id, modified).map_err(from_odb)?;
            }
        }
        Ok(())
    }
}
