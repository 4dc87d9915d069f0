//! Actions that compare with commits: differences from `HEAD` (`--again`), and restored conflicts
//! (`--unresolve`).

use bstr::{BStr, BString, ByteSlice};
use pronto_diff::Difference;
use pronto_hash::{ObjectId, oid};
use pronto_index::{Entry, Flags, Index, Splitting, Writer};
use pronto_worktree::diff::{IntentToAdd, tree_and_index};

use super::super::IndexAction;
use super::Apply;
use crate::Result;
use crate::checkout_tree::tree_of;
use crate::errors::{from_index, from_worktree};
use crate::status::{Pathspec, read_tree};

impl Apply<'_> {
    /// Returns the paths that differ between the index and `HEAD`, in order.
    pub(super) fn differing(&self, pathspec: &Pathspec) -> Result<Vec<BString>> {
        let repository = self.repository;
        let objects = repository.objects()?;
        let head = repository.head()?.id();
        let tree = head.map(|head| tree_of(objects, head)).transpose()?;
        let made;
        let mut index: &Index = &self.prepared.index;
        if !self.stage.edit().is_empty() {
            // The previous actions are part of the compared index.
            let writer = Writer {
                skip_hash: true,
                splitting: Splitting::Join,
                ..Writer::default()
            };
            let bytes = writer
                .encode(&self.stage.edit().content())
                .map_err(from_index)?;
            made = index.successor(bytes).map_err(from_index)?;
            index = &made;
        }
        let cached = index.cached_tree();
        let mut read = |id: &oid, content: &mut Vec<u8>| read_tree(objects, id, content);
        let found = tree_and_index(
            tree.as_deref(),
            index,
            cached.as_ref(),
            pathspec,
            IntentToAdd::Empty,
            &mut read,
        );
        let differences = found.map_err(from_worktree)?.differences;
        let is_there = |one: &Difference| !one.unmerged && one.new.is_some();
        Ok(differences
            .into_iter()
            .filter(is_there)
            .map(|difference| difference.path)
            .collect())
    }

    /// Restores the unmerged entries of `paths` from the resolve-undo data. Other paths are
    /// unchanged.
    pub(super) fn unresolve(&mut self, paths: &[BString]) {
        for path in paths {
            let path = path.as_bstr();
            let is_unmerged = (1..4).any(|stage| self.stage.edit().get(path, stage).is_some());
            if !is_unmerged {
                self.bring_back(path);
            }
        }
    }

    /// Restores the unmerged entries of one path.
    fn bring_back(&mut self, path: &BStr) {
        let mut undo = self.stage.resolve_undo().clone();
        let Some(at) = undo.paths.iter().position(|known| known.path == path) else {
            return;
        };
        let known = undo.paths.remove(at);
        self.stage.set_resolve_undo(undo);
        self.put_stages(path, known.stages);
    }

    fn put_stages(&mut self, path: &BStr, stages: [Option<(u32, ObjectId)>; 3]) {
        let edit = self.stage.edit_mut();
        edit.remove_path(path);
        for (stage, side) in (1u8..).zip(stages) {
            if let Some((mode, id)) = side {
                edit.set(Entry {
                    path: path.to_owned(),
                    id,
                    mode,
                    flags: Flags::default().with_stage(stage),
                    stat: Default::default(),
                });
            }
        }
    }
}

/// Returns the action for each of the paths that differ from `HEAD`.
pub(super) fn again(how: &IndexAction, paths: Vec<BString>) -> Vec<IndexAction> {
    let one = |path: BString| match how {
        IndexAction::Mark(_, mark, on) => IndexAction::Mark(path, *mark, *on),
        IndexAction::Remove(_) => IndexAction::Remove(path),
        IndexAction::Update(_, allowed) => IndexAction::Update(path, *allowed),
        other => other.clone(),
    };
    paths.into_iter().map(one).collect()
}
