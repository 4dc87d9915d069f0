//! Finds the tips of the refs of alternates, whose objects need not be fetched again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use pronto_hash::ObjectId;

use crate::objects::from_odb;
use crate::{Repository, Result};

/// Returns the objects of the refs of all alternates of `repository`, if they exist. An alternate
/// that cannot be read is skipped.
///
/// Costs reading every ref of the alternates.
///
/// # Errors
/// Fails if the repository's own object store cannot be read.
pub fn alternate_tips(repository: &Repository) -> Result<Vec<ObjectId>> {
    let store = repository.objects()?;
    let mut tips = BTreeSet::new();
    for directory in store.alternates() {
        let Some(git_dir) = directory.parent().filter(|_| is_objects(directory)) else {
            continue;
        };
        let Ok(other) = Repository::open(git_dir, repository.environment()) else {
            continue;
        };
        if other.object_hash() != repository.object_hash() {
            continue;
        }
        // Objects of unreadable refs are fetched again.
        let _ = other.refs().for_each("refs/", |reference| {
            tips.insert(reference.id);
            Ok(ControlFlow::Continue(()))
        });
    }
    let tips: Vec<ObjectId> = tips.into_iter().collect();
    let found = store.contains_batch(&tips).map_err(from_odb)?;
    let present = tips.into_iter().zip(found).filter(|(_, found)| *found);
    Ok(present.map(|(id, _)| id).collect())
}

fn is_objects(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name == "objects")
}
