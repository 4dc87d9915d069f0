//! Checks the wants of a client of version 0 or 1.

use std::collections::HashSet;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;

use super::settings::AllowedWants;
use super::shown::NamespaceView;
use crate::history::leads_beyond;
use crate::objects::from_odb;
use crate::{ErrorKind, Repository, Result};

/// The tips of the refs that a client may request.
pub(super) struct AllowedTips<'a> {
    repository: &'a Repository,
    allowed: AllowedWants,
    ids: HashSet<ObjectId>,
}

impl<'a> AllowedTips<'a> {
    /// Reads the tips of all refs.
    ///
    /// # Errors
    /// Fails if the refs cannot be read.
    pub(super) fn read(view: &NamespaceView<'a>, allowed: AllowedWants) -> Result<AllowedTips<'a>> {
        let mut ids = HashSet::new();
        let with_hidden = allowed.hidden_refs();
        if let Some(head) = view.head()?
            && (with_hidden || !view.hidden.hides("HEAD".into()))
        {
            ids.extend(head.id);
        }
        view.for_each(b"refs/", &mut |shown, is_hidden| {
            if with_hidden || !is_hidden {
                ids.extend(shown.id);
            }
        })?;
        Ok(AllowedTips {
            repository: view.repository,
            allowed,
            ids,
        })
    }

    /// Returns the first of `wants` that is not allowed.
    ///
    /// With a stateless transport, refs may have changed since they were advertised, so that all
    /// reachable objects are allowed. As in Git, only commits are checked: other objects are
    /// allowed in that case.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Interrupted`] if the walk is interrupted.
    pub(super) fn refused(
        &self,
        wants: &[ObjectId],
        is_stateless: bool,
        interrupt: &Interrupt,
    ) -> Result<Option<ObjectId>> {
        if self.allowed.everything() {
            return Ok(None);
        }
        let others = wants.iter().filter(|id| !self.ids.contains(*id));
        let others: Vec<ObjectId> = others.copied().collect();
        let Some(first) = others.first() else {
            return Ok(None);
        };
        let may_be_reachable = is_stateless || self.allowed.reachable;
        if may_be_reachable && self.leads_to_all(&others, interrupt)? {
            return Ok(None);
        }
        Ok(Some(*first))
    }

    fn leads_to_all(&self, others: &[ObjectId], interrupt: &Interrupt) -> Result<bool> {
        let tips: Vec<ObjectId> = self.ids.iter().copied().collect();
        let walked = self.commits(others).and_then(|others| {
            let tips = self.commits(&tips)?;
            leads_beyond(self.repository, &others, &tips, &Watch::from(interrupt))
        });
        match walked {
            Ok(leads_beyond) => Ok(!leads_beyond),
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            // After an error of the walk, the want is not proved to be reachable.
            Err(_) => Ok(false),
        }
    }

    fn commits(&self, ids: &[ObjectId]) -> Result<Vec<ObjectId>> {
        let store = self.repository.objects()?;
        let mut commits = Vec::new();
        for id in ids {
            let id = self.repository.peel_tag(*id)?.unwrap_or(*id);
            let header = store.header(&id).map_err(from_odb)?;
            if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                commits.push(id);
            }
        }
        Ok(commits)
    }
}
