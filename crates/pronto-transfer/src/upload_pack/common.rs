//! Determines the common commits of a negotiation.

use std::collections::{HashMap, HashSet};

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use crate::objects::from_odb;
use crate::{Repository, Result};

/// The haves of the client that exist on the server.
#[derive(Debug, Default)]
pub(super) struct CommonHaves {
    /// The haves in the order of the client, without those that are implied by others.
    pub(super) ids: Vec<ObjectId>,
    /// The haves that the client has sent.
    named: HashSet<ObjectId>,
    /// The haves, and the parents of the commits among them.
    known: HashSet<ObjectId>,
    /// The time of the oldest commit among the haves.
    oldest: Option<i64>,
    /// The wanted commits for which it is known whether a have is reachable from them.
    settled: HashMap<ObjectId, bool>,
}

impl CommonHaves {
    /// Records an existing have.
    ///
    /// # Errors
    /// Fails if the object cannot be read.
    pub(super) fn add(&mut self, repository: &Repository, id: ObjectId) -> Result<()> {
        // A client may send the same object a million times.
        if !self.named.insert(id) {
            return Ok(());
        }
        self.settled.retain(|_, leads| *leads);
        let header = repository.objects()?.header(&id).map_err(from_odb)?;
        let is_commit = header.is_some_and(|header| header.kind == ObjectKind::Commit);
        let is_new = self.known.insert(id);
        if !is_commit {
            self.ids.extend(is_new.then_some(id));
            return Ok(());
        }
        let links = repository.commit_links(&id, &mut Vec::new())?;
        self.known.extend(links.parents);
        let oldest = self.oldest.unwrap_or(i64::MAX).min(links.time);
        self.oldest = Some(oldest);
        if is_new {
            self.ids.push(id);
        }
        Ok(())
    }

    /// Whether the negotiation has found enough common commits: a have is reachable from every
    /// want. Walks no further than to the oldest have.
    ///
    /// # Errors
    /// Fails if a commit cannot be read.
    pub(super) fn is_enough(
        &mut self,
        repository: &Repository,
        wants: &[ObjectId],
    ) -> Result<bool> {
        if self.ids.is_empty() {
            return Ok(false);
        }
        for want in wants {
            let id = repository.peel_tag(*want)?.unwrap_or(*want);
            let leads = match self.settled.get(&id) {
                Some(leads) => *leads,
                None => self.leads_to_common(repository, id)?,
            };
            self.settled.insert(id, leads);
            if !leads {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn leads_to_common(&self, repository: &Repository, start: ObjectId) -> Result<bool> {
        let header = repository.objects()?.header(&start).map_err(from_odb)?;
        // Reachability from an object other than a commit cannot be determined.
        if header.is_none_or(|header| header.kind != ObjectKind::Commit) {
            return Ok(true);
        }
        let oldest = self.oldest.unwrap_or(i64::MIN);
        let mut seen = HashSet::from([start]);
        let mut waiting = vec![start];
        let mut buffer = Vec::new();
        while let Some(id) = waiting.pop() {
            if self.known.contains(&id) {
                return Ok(true);
            }
            let links = repository.commit_links(&id, &mut buffer)?;
            if links.time < oldest {
                continue;
            }
            waiting.extend(
                links
                    .parents
                    .into_iter()
                    .filter(|parent| seen.insert(*parent)),
            );
        }
        Ok(false)
    }
}
