//! Plans the next generation: decides about changes on a base, and creates the manifest.

use std::time::Duration;

use bytes::Bytes;
use pronto_refs::reftable::StackSnapshot;

use crate::backend::{PlantedFault, StoreBackend, has_fault};
use crate::change::{
    Configuration, MergedLayers, MergedTables, PackPush, PackReplacement, StoreChange, Uploaded,
};
use crate::digest::Digest;
use crate::manifest::{Manifest, StoredPack};
use crate::refs::{Overlay, RefDecision};
use crate::repository::{Generation, StoreRepository};
use crate::{Result, tables};

/// The decision about a change.
#[derive(Clone, Debug)]
pub(super) enum ChangeDecision {
    /// The results of the ref updates of a push.
    Refs(Vec<RefDecision>),
    /// The replacement is made.
    Replaced,
    /// The files or the configuration to replace do not exist, or refs have changed.
    Gone,
    /// Objects on which the check of the push relied were deleted.
    Pruned,
}

/// The next generation, and the decisions about the changes.
pub(super) struct GenerationPlan {
    pub(super) decisions: Vec<ChangeDecision>,
    /// Whether a change is refused.
    pub(super) refuses: bool,
    /// The next generation, or `None` if nothing changes.
    pub(super) next: Option<PlannedGeneration>,
    /// The time before the oldest upload.
    pub(super) oldest_upload: Option<Duration>,
}

/// A generation to create.
pub(super) struct PlannedGeneration {
    pub(super) manifest: Manifest,
    pub(super) bytes: Bytes,
    pub(super) refs: StackSnapshot,
    /// A table that must be in the store before the generation is created.
    pub(super) object: Option<(String, Bytes)>,
}

impl PlannedGeneration {
    /// Returns the generation after its creation.
    pub(super) fn generation(&self) -> Generation {
        Generation {
            manifest: self.manifest.clone(),
            digest: Digest::of(&self.bytes),
            refs: self.refs.clone(),
        }
    }
}

impl GenerationPlan {
    /// Decides about `changes` on `base`. The decisions in `decided` are used without a check,
    /// which only the simulation does.
    pub(super) fn make<B: StoreBackend>(
        repository: &StoreRepository<B>,
        base: &Generation,
        changes: &[&StoreChange],
        decided: Option<&[ChangeDecision]>,
    ) -> Result<GenerationPlan> {
        let mut draft = GenerationDraft {
            manifest: base.manifest.clone(),
            overlay: Overlay::new(&base.refs),
            refs: base.refs.clone(),
            uploads: Vec::new(),
            has_changed: false,
            checks_base: !has_fault(&*repository.backend, PlantedFault::NoCheckOfBase),
            checks_refs: !has_fault(&*repository.backend, PlantedFault::PruneUnchecked),
        };
        let mut decisions = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            let known = decided.map(|decided| &decided[at]);
            decisions.push(match (change, known) {
                (StoreChange::Push(push), Some(ChangeDecision::Refs(verdicts))) => {
                    draft.force(push, verdicts)?
                }
                (StoreChange::Push(push), _) => draft.push(push)?,
                (StoreChange::Replace(replacement), _) => draft.replace(replacement)?,
                (StoreChange::Configure(configuration), _) => draft.configure(configuration),
            });
        }
        let refuses = decisions.iter().any(|decision| match decision {
            ChangeDecision::Refs(verdicts) => {
                verdicts.iter().any(|one| *one != RefDecision::Applied)
            }
            ChangeDecision::Replaced => false,
            ChangeDecision::Gone | ChangeDecision::Pruned => true,
        });
        let oldest_upload = draft.uploads.iter().min().copied();
        Ok(GenerationPlan {
            decisions,
            refuses,
            next: draft.finish(repository, base)?,
            oldest_upload,
        })
    }
}

impl GenerationPlan {
    /// Plans the generation that marks the repository as removed.
    pub(super) fn removal<B: StoreBackend>(
        repository: &StoreRepository<B>,
        base: &Generation,
    ) -> Result<GenerationPlan> {
        let mut manifest = Manifest {
            is_removed: true,
            config: Bytes::new(),
            packs: Vec::new(),
            layers: Vec::new(),
            tables: Vec::new(),
            ..base.manifest.clone()
        };
        manifest.follow(base);
        manifest.sign(repository);
        if !has_fault(&*repository.backend, PlantedFault::RemovalUnnoticed) {
            manifest.pruned = manifest.number;
        }
        Ok(GenerationPlan {
            decisions: Vec::new(),
            refuses: false,
            oldest_upload: None,
            next: Some(PlannedGeneration {
                bytes: manifest.encode()?,
                manifest,
                refs: StackSnapshot::default(),
                object: None,
            }),
        })
    }
}

impl Manifest {
    /// Makes this the manifest of the generation after `base`.
    pub(super) fn follow(&mut self, base: &Generation) {
        self.number = base.number() + 1;
        self.replaces = (base.number() > 0).then_some(base.digest);
        self.drop_of(&base.manifest);
    }

    /// Makes this a manifest of `repository`, as this process uses it.
    fn sign<B: StoreBackend>(&mut self, repository: &StoreRepository<B>) {
        self.writer = repository.writer;
        self.nonce = repository.nonce();
        self.time_ms = repository.time_ms();
    }
}

/// The next generation, while changes are added.
struct GenerationDraft<'a> {
    manifest: Manifest,
    overlay: Overlay<'a>,
    /// The tables of the manifest, without the overlay.
    refs: StackSnapshot,
    /// The times of the uploads that the generation references.
    uploads: Vec<Duration>,
    has_changed: bool,
    /// Whether bases are checked. Only the simulation disables this check.
    checks_base: bool,
    checks_refs: bool,
}

impl GenerationDraft<'_> {
    fn push(&mut self, push: &PackPush) -> Result<ChangeDecision> {
        let is_old = |base| base < self.manifest.pruned;
        if self.checks_base && push.base.is_some_and(is_old) {
            return Ok(ChangeDecision::Pruned);
        }
        if let Some(verdict) = self.excess(push)? {
            return Ok(ChangeDecision::Refs(vec![verdict; push.updates.len()]));
        }
        let verdicts = self.overlay.apply(&push.updates, push.is_atomic)?;
        if verdicts.contains(&RefDecision::Applied) {
            self.take(&push.packs);
            self.has_changed = true;
        }
        Ok(ChangeDecision::Refs(verdicts))
    }

    /// Returns the verdict on a push that exceeds its bounds, or `None` if the push fits.
    fn excess(&self, push: &PackPush) -> Result<Option<RefDecision>> {
        if let Some(most) = push.bounds.bytes {
            let known = |uploaded: &&Uploaded| {
                let mut packs = self.manifest.packs.iter();
                !packs.any(|pack| pack.id == uploaded.pack.id)
            };
            let new = push.packs.iter().filter(known);
            let new = new.flat_map(|uploaded| uploaded.pack.objects());
            let sum = |sum: u64, size: u64| sum.saturating_add(size);
            let new = new.map(|object| object.size_bytes).fold(0, sum);
            let now = self.manifest.objects().map(|object| object.size_bytes);
            let now = now.fold(0, sum);
            if new > 0 && sum(now, new) > most {
                return Ok(Some(RefDecision::TooManyBytes(now)));
            }
        }
        if let Some(most) = push.bounds.refs {
            let count = self.overlay.count(&push.updates)?;
            if count.created > 0 && count.now.saturating_add(count.created) > most {
                return Ok(Some(RefDecision::TooManyRefs(count.now)));
            }
        }
        Ok(None)
    }

    /// Applies the updates of `push` that had the given verdicts, without a check.
    fn force(&mut self, push: &PackPush, verdicts: &[RefDecision]) -> Result<ChangeDecision> {
        for (update, verdict) in push.updates.iter().zip(verdicts) {
            if *verdict == RefDecision::Applied {
                let mut update = update.clone();
                update.old = crate::refs::ExpectedRefValue::Any;
                self.overlay.apply(&[update], false)?;
                self.has_changed = true;
            }
        }
        self.take(&push.packs);
        Ok(ChangeDecision::Refs(verdicts.to_vec()))
    }

    fn take(&mut self, packs: &[Uploaded]) {
        for uploaded in packs {
            let is_known = |pack: &StoredPack| pack.id == uploaded.pack.id;
            // The same pack was pushed twice. One copy is sufficient, and the other one is deleted
            // as an orphan.
            if !self.manifest.packs.iter().any(is_known) {
                self.manifest.packs.push(uploaded.pack.clone());
                self.uploads.push(uploaded.begun);
            }
        }
    }

    fn replace(&mut self, replacement: &PackReplacement) -> Result<ChangeDecision> {
        let has_pack = |upload| self.manifest.packs.iter().any(|pack| pack.upload == upload);
        if !replacement.dropped_packs.iter().copied().all(has_pack) {
            return Ok(ChangeDecision::Gone);
        }
        if !self.can_prune(replacement) || !self.has_layers(&replacement.layers) {
            return Ok(ChangeDecision::Gone);
        }
        if let Some(merged) = &replacement.tables
            && !self.merge_tables(merged)?
        {
            return Ok(ChangeDecision::Gone);
        }
        let is_dropped = |pack: &StoredPack| replacement.dropped_packs.contains(&pack.upload);
        self.manifest.packs.retain(|pack| !is_dropped(pack));
        self.take(&replacement.packs);
        for merged in &replacement.layers {
            let layers = &mut self.manifest.layers;
            layers.retain(|layer| layer.kind != merged.kind);
            layers.extend(merged.new.iter().cloned());
            self.uploads.push(merged.begun);
        }
        if replacement.prunes.is_some() {
            self.manifest.pruned = self.manifest.number + 1;
        }
        self.manifest.layers.sort_by_key(|layer| layer.kind);
        self.has_changed = true;
        Ok(ChangeDecision::Replaced)
    }

    fn configure(&mut self, configuration: &Configuration) -> ChangeDecision {
        if self.manifest.config != configuration.old {
            return ChangeDecision::Gone;
        }
        self.has_changed |= configuration.new != configuration.old;
        self.manifest.config = configuration.new.clone();
        ChangeDecision::Replaced
    }

    /// Returns whether the refs are still those from which the deleted objects are unreachable.
    fn can_prune(&self, replacement: &PackReplacement) -> bool {
        let index = self.manifest.next_update_index();
        // Pushes in the same generation get their table only at the end.
        let is_same = |seen| seen == index && self.overlay.len() == 0;
        !self.checks_refs || replacement.prunes.is_none_or(is_same)
    }

    /// Returns whether the replaced layers are the existing ones.
    fn has_layers(&self, merged: &[MergedLayers]) -> bool {
        merged.iter().all(|merged| {
            let layers = self.manifest.layers.iter();
            let here = layers.filter(|layer| layer.kind == merged.kind);
            here.map(|layer| layer.upload)
                .eq(merged.old.iter().copied())
        })
    }

    /// Replaces tables by their merged table, if all of them exist and are adjacent.
    fn merge_tables(&mut self, merged: &MergedTables) -> Result<bool> {
        let tables = &mut self.manifest.tables;
        let len = merged.old.len();
        let is_here = |at: &usize| {
            let here = tables[*at..*at + len].iter().map(|table| table.upload);
            here.eq(merged.old.iter().copied())
        };
        let last = tables.len().checked_sub(len);
        let Some(at) = last.and_then(|last| (0..=last).find(is_here)) else {
            return Ok(false);
        };
        let new = merged.new.as_ref();
        tables.splice(at..at + len, new.map(|(record, _)| record.clone()));
        self.refs = tables::restack(tables, &self.refs, new, self.manifest.hash)?;
        self.uploads.push(merged.begun);
        Ok(true)
    }

    fn finish<B: StoreBackend>(
        mut self,
        repository: &StoreRepository<B>,
        base: &Generation,
    ) -> Result<Option<PlannedGeneration>> {
        if !self.has_changed {
            return Ok(None);
        }
        let mut object = None;
        let mut refs = self.refs;
        if self.overlay.len() > 0 {
            let index = self.manifest.next_update_index();
            let bytes = self.overlay.table(self.manifest.hash, index)?;
            let draw = || repository.upload_id();
            let stack = tables::add(&self.manifest, &refs, bytes, draw)?;
            self.manifest.tables = stack.tables;
            refs = stack.refs;
            object = stack.object;
        }
        let manifest = &mut self.manifest;
        manifest.packs.sort_unstable_by_key(|pack| pack.upload);
        manifest.follow(base);
        manifest.sign(repository);
        Ok(Some(PlannedGeneration {
            bytes: self.manifest.encode()?,
            manifest: self.manifest,
            refs,
            object,
        }))
    }
}
