//! Checks the connectivity of a push: whether all objects reachable from the new values of refs
//! exist.
//!
//! An existing object is no proof that the objects it links to exist, because it may be left over
//! from an interrupted push. Only objects reachable from refs are known to be complete. Most pushes
//! extend the history of the updated ref, so the refs of the commands are tried first. All refs are
//! read only if that fails.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_odb::Store;

use super::advertise::for_each_alternate_tip;
use super::{ReceivedPush, RefCommand};
use crate::Result;
use crate::interrupted;
use crate::objects::from_odb;
use crate::remote::{Cuts, is_connected};
use pronto_object::{CommitLinks, TagRef};

/// The number of walked commits after which all refs are read.
const MOST_COMMITS: usize = 20_000;

/// The objects that are known to be complete, that is, whose reachable objects all exist.
pub(super) struct CompleteObjects {
    /// The current values of the refs in the commands.
    few: HashSet<ObjectId>,
    /// The values of all refs; `None` until they are read.
    all: Option<HashSet<ObjectId>>,
}

impl ReceivedPush<'_> {
    /// Fails the commands from whose new values a missing object is reachable.
    pub(super) fn check_connected(&mut self) -> Result<()> {
        if self.options.trusts_links {
            return Ok(());
        }
        let mut known = self.known()?;
        let cuts: BTreeSet<ObjectId> = self.own_cuts()?;
        let open = |push: &Self| {
            let open = push.commands.iter().enumerate();
            let open = open.filter(|(_, command)| !command.deletes() && command.is_open());
            open.map(|(at, _)| at).collect::<Vec<usize>>()
        };
        let open = open(self);
        let tips: Vec<ObjectId> = open
            .iter()
            .filter_map(|at| self.commands.get(*at).map(|command| command.new))
            .collect();
        if tips.is_empty() || self.is_complete(&tips, &mut known, &cuts)? {
            return Ok(());
        }
        // At least one command is not connected, so each one is checked. Many refs may have the
        // same value.
        let mut judged: HashMap<ObjectId, bool> = HashMap::new();
        for at in open {
            let Some(new) = self.commands.get(at).map(|command| command.new) else {
                continue;
            };
            let is_complete = match judged.get(&new) {
                Some(is_complete) => *is_complete,
                None => self.is_complete(&[new], &mut known, &cuts)?,
            };
            judged.insert(new, is_complete);
            if is_complete {
                continue;
            }
            if self.is_complete_to_cuts(at, &mut known, &cuts)? {
                continue;
            }
            if let Some(command) = self.commands.get_mut(at) {
                command.fail("missing necessary objects");
            }
        }
        Ok(())
    }

    /// Returns the current values of the refs in the commands, and of `HEAD`.
    fn known(&self) -> Result<CompleteObjects> {
        let mut few = HashSet::new();
        let refs = self.repository.refs();
        // A broken `HEAD` is ignored.
        few.extend(refs.id_of("HEAD").ok().flatten());
        for command in &self.commands {
            if !command.creates() {
                let name = self.full_name(command.name.as_ref());
                few.extend(refs.id_of(&name).ok().flatten());
            }
        }
        Ok(CompleteObjects { few, all: None })
    }

    /// Whether all objects reachable from `tips` exist.
    pub(super) fn is_complete(
        &self,
        tips: &[ObjectId],
        known: &mut CompleteObjects,
        cuts: &BTreeSet<ObjectId>,
    ) -> Result<bool> {
        let Some(quarantine) = &self.quarantine else {
            let store = self.repository.objects()?.without_replacements();
            return self.is_complete_in(&store, tips, known, cuts);
        };
        let store = quarantine.store().without_replacements();
        self.is_complete_in(&store, tips, known, cuts)
    }

    fn is_complete_in(
        &self,
        store: &Store,
        tips: &[ObjectId],
        known: &mut CompleteObjects,
        cuts: &BTreeSet<ObjectId>,
    ) -> Result<bool> {
        if let Some(edge) = self.edge(store, tips, &known.few, cuts)? {
            return is_connected(store, tips, &edge, Cuts::unchanged(cuts));
        }
        if known.all.is_none() {
            known.all = Some(self.all_tips(&known.few)?);
        }
        let all = known.all.as_ref().unwrap_or(&known.few);
        if let Some(edge) = self.edge(store, tips, all, cuts)? {
            return is_connected(store, tips, &edge, Cuts::unchanged(cuts));
        }
        let all: Vec<ObjectId> = all.iter().copied().collect();
        is_connected(store, tips, &all, Cuts::unchanged(cuts))
    }

    /// Returns the members of `complete` where the history of `tips` ends. `None` if a path does
    /// not end at such a member, or only after too many commits.
    fn edge(
        &self,
        store: &Store,
        tips: &[ObjectId],
        complete: &HashSet<ObjectId>,
        cuts: &BTreeSet<ObjectId>,
    ) -> Result<Option<Vec<ObjectId>>> {
        let (mut edge, mut seen) = (Vec::new(), HashSet::new());
        let mut waiting: Vec<ObjectId> = tips.to_vec();
        let mut buffer = Vec::new();
        let mut left = MOST_COMMITS;
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            if complete.contains(&id) {
                edge.push(id);
                continue;
            }
            self.interrupt.check().map_err(interrupted)?;
            if left == 0 {
                return Ok(None);
            }
            left -= 1;
            match store.find(&id, &mut buffer).map_err(from_odb)? {
                Some(ObjectKind::Commit) => match CommitLinks::parse(&buffer) {
                    Some(_) if cuts.contains(&id) => {}
                    Some(links) => waiting.extend(links.parents),
                    None => return Ok(None),
                },
                Some(ObjectKind::Tag) => match TagRef::new(&buffer).target() {
                    Some(target) => waiting.push(target),
                    None => return Ok(None),
                },
                // Trees and blobs are checked with all reachable objects.
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Ok(Some(edge))
    }

    /// Whether the old value of a command is an ancestor of its new value. Received commits are
    /// read from the quarantine, up to commits that existed before.
    pub(super) fn leads_back(&self, command: &RefCommand) -> Result<bool> {
        let real = self.repository.objects()?;
        let received = match &self.quarantine {
            Some(quarantine) => quarantine.store(),
            None => real,
        };
        let cuts: BTreeSet<ObjectId> = self.own_cuts()?;
        let (mut waiting, mut seen) = (vec![command.new], HashSet::new());
        let mut buffer = Vec::new();
        while let Some(id) = waiting.pop() {
            if id == command.old {
                return Ok(true);
            }
            if !seen.insert(id) {
                continue;
            }
            self.interrupt.check().map_err(interrupted)?;
            if real.contains(&id).map_err(from_odb)? {
                let header = real.header(&id).map_err(from_odb)?;
                let is_commit = header.is_some_and(|header| header.kind == ObjectKind::Commit);
                if is_commit && self.repository.is_ancestor(&command.old, &id, &cuts)? {
                    return Ok(true);
                }
                continue;
            }
            if received.find(&id, &mut buffer).map_err(from_odb)? == Some(ObjectKind::Commit) {
                waiting.extend(
                    CommitLinks::parse(&buffer)
                        .into_iter()
                        .flat_map(|it| it.parents),
                );
            }
        }
        Ok(false)
    }

    /// Returns the values of all refs, including those of alternates.
    fn all_tips(&self, few: &HashSet<ObjectId>) -> Result<HashSet<ObjectId>> {
        let mut all = few.clone();
        self.repository.refs().for_each("refs/", |reference| {
            all.insert(reference.id);
            Ok(ControlFlow::Continue(()))
        })?;
        for_each_alternate_tip(self.repository, &mut |id| {
            all.insert(id);
            Ok(())
        })?;
        Ok(all)
    }
}
