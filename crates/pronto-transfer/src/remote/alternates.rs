//! The commits that the repositories behind alternates have: what need not be sent again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use pronto_hash::ObjectId;

use crate::remote::from_store;
use crate::{Repository, Result};

/// Returns what the refs of the repositories behind the alternates of `repository` hold, as far as
/// those objects exist. A repository that cannot be read is passed over.
///
/// Costs a look at every ref there.
///
/// # Errors
/// The own object store cannot be read.
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
        // What cannot be read is sent again.
        let _ = other.refs().for_each("refs/", |reference| {
            tips.insert(reference.id);
            Ok(ControlFlow::Continue(()))
        });
    }
    let tips: Vec<ObjectId> = tips.into_iter().collect();
    let found = store.contains_batch(&tips).map_err(from_store)?;
    let present = tips.into_iter().zip(found).filter(|(_, found)| *found);
    Ok(present.map(|(id, _)| id).collect())
}

fn is_objects(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name == "objects")
}
