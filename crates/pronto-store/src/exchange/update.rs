//! Repositories of a store brought up to date with the Git repositories that they were made of.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bstr::BString;
use pronto::Watch;
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;

use super::{Written, check_source, make_pack, unreadable, updates_of};
use crate::blocking::{Store, Stored};
use crate::change::{Change, Push};
use crate::refs::{self, Expected, RefUpdate, Value, Verdict};
use crate::repository::Generation;
use crate::{Error, ErrorKind, Result};

impl Store {
    /// Makes the refs of `target` those of a Git repository. One pack brings the objects that they lead to and that the
    /// refs of `target` do not lead to; one generation has all changes, or none is made if nothing differs. The
    /// configuration of `target` stays. Files are made in `scratch`, and removed.
    ///
    /// Meant for a repository that was [imported](Self::import): refs that came into `target` by a push and are not in
    /// the source are deleted, as `git push --mirror` does.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: there is no such repository. [`ErrorKind::Unsupported`]: the source is shallow, a
    /// partial clone, or has another object format. [`ErrorKind::Conflict`]: another process changed a ref meanwhile.
    /// [`ErrorKind::Repository`]: the source cannot be read. Those of the store.
    pub fn update(
        &self,
        source: &pronto::Repository,
        target: &Stored,
        scratch: &Path,
        watch: &Watch<'_>,
    ) -> Result<Written> {
        check_source(source)?;
        let generation = self.wait(target.latest())?;
        if generation.manifest.hash != source.object_hash() {
            let message = "the repository in the store has another object format";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let updates = differences(&generation, updates_of(source)?)?;
        let mut push = Push {
            base: Some(generation.number()),
            is_atomic: true,
            ..Push::default()
        };
        let mut written = Written {
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
            push.packs.push(self.wait(target.upload(&pack))?);
        }
        push.updates = updates;
        let outcome = self.wait(target.commit(Change::Push(push)))?;
        match outcome
            .verdicts
            .iter()
            .all(|verdict| *verdict == Verdict::Applied)
        {
            true => Ok(written),
            false => {
                let message =
                    "another process changed refs of the repository in the store meanwhile";
                let hint = "let nobody push there before it serves in place of the old one, and repeat this";
                Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
            }
        }
    }
}

/// Returns the changes that make the refs of `generation` those that `wanted` creates.
fn differences(generation: &Generation, wanted: Vec<RefUpdate>) -> Result<Vec<RefUpdate>> {
    let mut old: BTreeMap<BString, Value> = refs::all(&generation.refs)?.into_iter().collect();
    let mut updates = Vec::new();
    for update in wanted {
        let before = old.remove(&update.name);
        if before != update.new {
            let old = before.as_ref().map_or(Expected::Missing, expected);
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

fn expected(value: &Value) -> Expected {
    match value {
        Value::Direct { id, .. } => Expected::Id(*id),
        Value::Symbolic(name) => Expected::Symbolic(name.clone()),
    }
}

/// Returns the targets of the refs of `generation` that the source has: so it has all that they lead to.
fn known(generation: &Generation, source: &pronto::Repository) -> Result<Vec<ObjectId>> {
    let objects = source.objects().map_err(unreadable)?;
    let mut known = Vec::new();
    for (_, value) in refs::all(&generation.refs)? {
        if let Value::Direct { id, .. } = value
            && objects
                .contains(&id)
                .map_err(|error| error.map_kind(|_| ErrorKind::Repository))?
        {
            known.push(id);
        }
    }
    Ok(known)
}
