//! The end of a repack: removes redundant packs and loose objects. Other processes may have started to
//! use omitted objects since the selection; these objects are written as loose objects first.

use std::collections::HashSet;
use std::time::SystemTime;

use bstr::BString;
use pronto_config::path;
use pronto_hash::ObjectId;
use pronto_odb::Pruning;
use pronto_repository::Result;
use pronto_repository::objects::from_odb;
use pronto_repository::{Notice, PackNotice};

use super::{RepackRun, named};
use crate::multi_pack_index;
use crate::pack_objects::{known_packs, loose_objects, mark};
use crate::prune::{self, ReachableMarks};

impl<'a> RepackRun<'a> {
    /// Marks the objects in `chosen`, the objects reachable from current tips, and the objects that
    /// were written since the selection.
    pub(super) fn marks(
        &self,
        chosen: HashSet<ObjectId>,
    ) -> Result<(ReachableMarks<'a>, Vec<ObjectId>)> {
        let mut marks = ReachableMarks::new(self.repository, self.watch)?;
        marks.assume(chosen);
        let new = marks.look_again()?;
        Ok((marks, new))
    }

    /// Removes packs, unless other processes write for too long, and then loose objects that are
    /// packed. `marks` is given if objects are removed that no other pack contains.
    ///
    /// # Errors
    /// Fails without removing a file if the roots of reachability cannot be read, or if a newly
    /// reachable object cannot be written as a loose object.
    pub(super) fn remove(
        &self,
        redundant: &[BString],
        marks: Option<(ReachableMarks<'_>, Vec<ObjectId>)>,
    ) -> Result<()> {
        let mut patience = self.options.patience;
        if !redundant.is_empty() {
            match prune::begin_pruning(self.repository, &mut patience)? {
                Some(pruning) => self.remove_packs(redundant, marks, &pruning)?,
                None => {
                    let notice = PackNotice::PruningGivenUp;
                    self.repository.notify(Notice::Packs(notice));
                    return Ok(());
                }
            }
        }
        self.repository.objects()?.refresh().map_err(from_odb)?;
        let options = prune::Options {
            patience,
            ..prune::Options::default()
        };
        let _ = prune::prune_packed(self.repository, &options, &mut |_| {}, self.watch)?;
        Ok(())
    }

    /// Removes packs. Files that name the packs, such as a multi-pack-index, are removed first.
    fn remove_packs(
        &self,
        redundant: &[BString],
        marks: Option<(ReachableMarks<'_>, Vec<ObjectId>)>,
        _pruning: &Pruning,
    ) -> Result<()> {
        if let Some((mut marks, mut new)) = marks {
            new.extend(marks.look_again()?);
            self.save(new, redundant)?;
        }
        let names: HashSet<BString> = redundant.iter().map(|stem| named(stem, ".idx")).collect();
        multi_pack_index::forget(self.repository, &names)?;
        for stem in redundant {
            let name = named(stem, ".pack");
            let pack = self.directory.join(path::borrow(&name));
            for extension in ["idx", "pack", "rev", "bitmap", "promisor", "mtimes"] {
                let _ = std::fs::remove_file(pack.with_extension(extension));
            }
        }
        Ok(())
    }

    /// Writes the objects as loose objects that are in no remaining pack and not loose yet.
    fn save(&self, mut new: Vec<ObjectId>, redundant: &[BString]) -> Result<()> {
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let names: HashSet<BString> = redundant.iter().map(|stem| named(stem, ".pack")).collect();
        let mut marks = vec![false; new.len()];
        for pack in known_packs(self.repository)? {
            if !(pack.is_own && names.contains(&pack.name())) {
                mark(&pack.index, &new, &mut marks)?;
            }
        }
        let objects = self.directory.parent().unwrap_or(&self.directory);
        let loose: HashSet<ObjectId> = loose_objects(objects)?.into_iter().collect();
        let store = self.repository.objects()?.without_replacements();
        for (id, _) in new.iter().zip(marks).filter(|(_, mark)| !mark) {
            // Objects that may be missing need not be saved.
            if !loose.contains(id) && store.contains(id).map_err(from_odb)? {
                store.loosen(id, SystemTime::now()).map_err(from_odb)?;
            }
        }
        Ok(())
    }
}
