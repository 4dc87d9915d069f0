//! Handles pushes from and into shallow repositories.

use std::collections::BTreeSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use super::ReceivedPush;
use super::connected::CompleteObjects;
use crate::objects::from_odb;
use crate::{Result, shallow};
use pronto_object::{CommitLinks, TagRef};

impl ReceivedPush<'_> {
    /// Returns the shallow commits of this repository.
    pub(super) fn own_cuts(&self) -> Result<BTreeSet<ObjectId>> {
        Ok(self.repository.shallow_commits()?.iter().copied().collect())
    }

    /// Returns the shallow commits of this repository and of the client.
    pub(super) fn all_cuts(&self) -> Result<BTreeSet<ObjectId>> {
        let mut cuts = self.own_cuts()?;
        cuts.extend(self.shallow.iter().copied());
        Ok(cuts)
    }

    /// Whether all objects exist up to the client's shallow boundary. If new shallow commits are
    /// needed, the command at `at` is refused, or records them (`receive.shallowUpdate`).
    pub(super) fn is_complete_to_cuts(
        &mut self,
        at: usize,
        known: &mut CompleteObjects,
        own: &BTreeSet<ObjectId>,
    ) -> Result<bool> {
        if self.shallow.is_empty() {
            return Ok(false);
        }
        let all = self.all_cuts()?;
        let Some(new) = self.commands.get(at).map(|command| command.new) else {
            return Ok(false);
        };
        if !self.is_complete(&[new], known, &all)? {
            return Ok(false);
        }
        let cuts = self.cuts_of(new, &all, own)?;
        if let Some(command) = self.commands.get_mut(at) {
            match self.settings.shallow_update {
                true => command.cuts = cuts,
                false => command.fail("shallow update not allowed"),
            }
        }
        Ok(true)
    }

    /// Returns the shallow commits in `all`, but not in `own`, at which the history of `tip` ends.
    fn cuts_of(
        &self,
        tip: ObjectId,
        all: &BTreeSet<ObjectId>,
        own: &BTreeSet<ObjectId>,
    ) -> Result<Vec<ObjectId>> {
        let (mut cuts, mut seen) = (Vec::new(), BTreeSet::new());
        let mut waiting = vec![tip];
        let store = match &self.quarantine {
            Some(quarantine) => quarantine.store(),
            None => self.repository.objects()?,
        };
        let mut buffer = Vec::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            if all.contains(&id) {
                if !own.contains(&id) {
                    cuts.push(id);
                }
                continue;
            }
            let found = store.find(&id, &mut buffer).map_err(from_odb)?;
            match found {
                Some(ObjectKind::Commit) => {
                    waiting.extend(
                        CommitLinks::parse(&buffer)
                            .into_iter()
                            .flat_map(|it| it.parents),
                    );
                }
                Some(ObjectKind::Tag) => waiting.extend(TagRef::new(&buffer).target()),
                _ => {}
            }
        }
        Ok(cuts)
    }

    /// Records the shallow commits that the open commands need, before refs change.
    pub(super) fn record_cuts(&self) -> Result<()> {
        let open = self.commands.iter().filter(|command| command.is_open());
        let needed: Vec<ObjectId> = open.flat_map(|command| command.cuts.clone()).collect();
        if needed.is_empty() {
            return Ok(());
        }
        let mut list = shallow::read(self.repository)?;
        list.extend(needed);
        shallow::write(self.repository, &list)
    }
}
