//! Pushes from repositories whose history is cut off, and into them.

use std::collections::BTreeSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use super::Push;
use super::connected::Known;
use crate::remote::from_store;
use crate::{Result, shallow};
use pronto_object::{CommitLinks, TagRef};

impl Push<'_> {
    /// The commits at which the history of this repository is cut off.
    pub(super) fn own_cuts(&self) -> Result<BTreeSet<ObjectId>> {
        Ok(self.repository.shallow_commits()?.iter().copied().collect())
    }

    /// The cuts of this repository and of the client.
    pub(super) fn all_cuts(&self) -> Result<BTreeSet<ObjectId>> {
        let mut cuts = self.own_cuts()?;
        cuts.extend(self.shallow.iter().copied());
        Ok(cuts)
    }

    /// Whether everything is there up to where the client's history is cut off. The command at
    /// `at` is refused for it, or remembers the cuts that it needs (`receive.shallowUpdate`).
    pub(super) fn is_complete_to_cuts(
        &mut self,
        at: usize,
        known: &mut Known,
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

    /// The members of `all` but not of `own` at which the history of `tip` is cut off.
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
            let found = store.find(&id, &mut buffer).map_err(from_store)?;
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

    /// Records the cuts that the open commands need, before refs change.
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
