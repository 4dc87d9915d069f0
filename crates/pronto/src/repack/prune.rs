//! Loose objects that are in a pack as well.

use super::Work;
use crate::Result;
use crate::pack_objects::{loose_objects, mark};

impl Work<'_> {
    /// Removes the loose objects that are in one of the packs that are there now, and the
    /// directories that are empty then.
    ///
    /// # Errors
    /// An index or a directory cannot be read.
    pub(super) fn prune_packed(&self) -> Result<()> {
        let objects = self.directory.parent().unwrap_or(&self.directory);
        let ids = loose_objects(objects)?;
        let mut marks = vec![false; ids.len()];
        for pack in self.repository.known_packs()? {
            mark(&pack.index, &ids, &mut marks)?;
        }
        let mut bytes = Vec::new();
        for (id, _) in ids.iter().zip(marks).filter(|(_, mark)| *mark) {
            let hex = id.to_string();
            let _ = std::fs::remove_file(objects.join(&hex[..2]).join(&hex[2..]));
            if bytes.last() != Some(&id.first_byte()) {
                bytes.push(id.first_byte());
            }
        }
        for byte in bytes {
            // Fails as long as something is in it.
            let _ = std::fs::remove_dir(objects.join(format!("{byte:02x}")));
        }
        Ok(())
    }
}
