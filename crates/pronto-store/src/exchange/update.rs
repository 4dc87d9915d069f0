//! Updates repositories of a store from the Git repositories from which they were imported.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bstr::BString;
use pronto::Watch;
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;

use super::{CopyCounts, check_source, make_pack, unreadable, updates_of};
use crate::blocking::{BlockingStore, StoredRepository};
use crate::change::{PackPush, StoreChange};
use crate::refs::{self, ExpectedRefValue, RefDecision, RefUpdate, StoredRefValue};
use crate::repository::Generation;
use crate::{Error, ErrorKind, Result};

impl BlockingStore {
    /// Updates the refs of `target` to those of a Git repository. One pack contains the objects
    /// that are reachable from these refs, but not from the refs of `target`. A single generation
    /// contains all changes; if nothing differs, no generation is created. The configuration of
    /// `target` stays. Temporary files are created in `scratch`, and removed.
    ///
    /// The method is intended for a repository that was [imported](Self::import). Refs that a push
    /// has added to `target` and that the source lacks are deleted, as by `git push --mirror`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`] if the repository does not exist.
    /// - [`ErrorKind::Unsupported`] if the source is shallow, a partial clone, or has another
    ///   object format.
    /// - [`ErrorKind::Conflict`] if another process has changed a ref in the meantime.
    /// - [`ErrorKind::Repository`] if the source cannot be read.
    /// - The errors of the store.
    pub fn update(
        &self,
        source: &pronto::Repository,
        target: &StoredRepository,
        scratch: &Path,
        watch: &Watch<'_>,
    ) -> Result<CopyCounts> {
        check_source(source)?;
        let generation = self.wait(target.latest())?;
        if generation.manifest.hash != source.object_hash() {
            let message = "the repository in the store has another object format than the source";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let updates = differences(&generation, updates_of(source)?)?;
        let mut push = PackPush {
            base: Some(generation.number()),
            is_atomic: true,
            ..PackPush::default()
        };
        let mut written = CopyCounts {
            refs: updates.len(),
            objects: 0,
        };
        if updates.is_empty() {
            return Ok(written);
        }
        let directory = scratch.join(format!("pronto-update-{}", target.upload_id()));
        fs::create_dir(&directory).context(ErrorKind::Io, "cannot create", &directory)?;
        let _guard = Guard::new(&directory);
        let known = known(&generation, source)?;
        if let Some(pack) = make_pack(source, &updates, &known, &directory, watch)? {
            written.objects = pack.objects.into();
            push.packs
                .push(self.wait(target.upload_watched(&pack, watch))?);
        }
        push.updates = updates;
        let outcome = self.wait(target.commit(StoreChange::Push(push)))?;
        match outcome
            .verdicts
            .iter()
            .all(|verdict| *verdict == RefDecision::Applied)
        {
            true => Ok(written),
            false => {
                let message = "another process changed refs of the repository in the store";
                let hint =
                    "disable pushes to the repository in the store, and run the command again";
                Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
            }
        }
    }
}

/// Returns the updates that change the refs of `generation` to those that `wanted` creates.
fn differences(generation: &Generation, wanted: Vec<RefUpdate>) -> Result<Vec<RefUpdate>> {
    let mut old: BTreeMap<BString, StoredRefValue> =
        refs::all(&generation.refs)?.into_iter().collect();
    let mut updates = Vec::new();
    for update in wanted {
        let before = old.remove(&update.name);
        if before != update.new {
            let old = before.as_ref().map_or(ExpectedRefValue::Missing, expected);
            updates.push(RefUpdate { old, ..update });
        }
    }
    updates.extend(old.into_iter().map(|(name, value)| RefUpdate {
        name,
        old: expected(&value),
        new: None,
    }));
    Ok(updates)
}

fn expected(value: &StoredRefValue) -> ExpectedRefValue {
    match value {
        StoredRefValue::Direct { id, .. } => ExpectedRefValue::Id(*id),
        StoredRefValue::Symbolic(name) => ExpectedRefValue::Symbolic(name.clone()),
    }
}

/// Returns the targets of the refs of `generation` that exist in the source, together with all
/// objects that are reachable from them.
fn known(generation: &Generation, source: &pronto::Repository) -> Result<Vec<ObjectId>> {
    let objects = source.objects().map_err(unreadable)?;
    let mut known = Vec::new();
    for (_, value) in refs::all(&generation.refs)? {
        if let StoredRefValue::Direct { id, .. } = value
            && objects
                .contains(&id)
                .map_err(|error| error.map_kind(|_| ErrorKind::Repository))?
        {
            known.push(id);
        }
    }
    Ok(known)
}
