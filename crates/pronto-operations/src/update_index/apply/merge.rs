//! Paths that are looked up in commits: differences from `HEAD`, and conflicts to be restored.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{Entry, Flags, Index, Splitting, Writer, mode};
use pronto_worktree::diff::{Announced, Difference, tree_and_index};

use super::super::{Action, Said};
use super::Apply;
use crate::Result;
use crate::checkout_tree::tree_of;
use crate::errors::{from_index, from_worktree};
use crate::status::{Pathspec, read_tree};

impl Apply<'_> {
    /// Paths of the index that are not as in `HEAD`, in order.
    pub(super) fn differing(&self, pathspec: &Pathspec) -> Result<Vec<BString>> {
        let repository = self.repository;
        let objects = repository.objects()?;
        let head = repository.head()?.id();
        let tree = head.map(|head| tree_of(objects, head)).transpose()?;
        let made;
        let mut index: &Index = &self.prepared.index;
        if !self.stage.edit().is_empty() {
            // What was done before counts.
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
            (index, cached.as_ref()),
            (pathspec, Announced::Empty),
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

    /// Brings conflicts back that were resolved; says whether that was possible for all `paths`.
    pub(super) fn unresolve(&mut self, paths: &[BString]) -> Result<bool> {
        let repository = self.repository;
        let Some(theirs) = self.commit_of("MERGE_HEAD")? else {
            let text = "Not in the middle of a merge.".to_owned();
            self.said.push(Said::Line(text));
            return Ok(true);
        };
        let Some(ours) = repository.head()?.id() else {
            return Ok(false);
        };
        let objects = repository.objects()?;
        let trees = [tree_of(objects, ours)?, tree_of(objects, theirs)?];
        let mut is_done = true;
        for path in paths {
            is_done &= self.unresolve_one(path.as_bstr(), trees)?;
        }
        Ok(is_done)
    }

    fn commit_of(&self, name: &str) -> Result<Option<ObjectId>> {
        match pronto_io::untrusted::content(self.repository.git_path(name)) {
            Ok(content) => {
                let hex = content.lines().next().unwrap_or_default();
                Ok(ObjectId::from_hex(hex.trim()).ok())
            }
            Err(_) => Ok(None),
        }
    }

    fn unresolve_one(&mut self, path: &BStr, [ours, theirs]: [ObjectId; 2]) -> Result<bool> {
        if self.entry(path).is_some() {
            if self.bring_back(path) {
                return Ok(true);
            }
        } else if (1..4).any(|stage| self.stage.edit().get(path, stage).is_some()) {
            self.said
                .push(Said::Line(format!("{path}: skipping still unmerged path.")));
            return Ok(true);
        }
        let sides = [
            self.blob_in(ours, path, "our")?,
            self.blob_in(theirs, path, "their")?,
        ];
        let [Some(ours), Some(theirs)] = sides else {
            return Ok(false);
        };
        if ours == theirs {
            let text = format!("{path}: identical in both, skipping.");
            self.said.push(Said::Line(text));
            return Ok(true);
        }
        self.put_stages(path, [None, Some(ours), Some(theirs)]);
        Ok(true)
    }

    /// Brings back what the index remembers of the conflict.
    fn bring_back(&mut self, path: &BStr) -> bool {
        let mut undo = self.stage.resolve_undo().clone();
        let Some(at) = undo.paths.iter().position(|known| known.path == path) else {
            return false;
        };
        let known = undo.paths.remove(at);
        self.stage.set_resolve_undo(undo);
        self.put_stages(path, known.stages);
        true
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

    fn blob_in(
        &mut self,
        tree: ObjectId,
        path: &BStr,
        side: &str,
    ) -> Result<Option<(u32, ObjectId)>> {
        let Some((id, mode)) = self.repository.tree_entry(tree, path)? else {
            let text = format!("error: {path}: not in {side} branch.");
            self.said.push(Said::Line(text));
            return Ok(None);
        };
        if mode & mode::TYPE == mode::TREE {
            let text = format!("error: {path}: not a blob in {side} branch.");
            self.said.push(Said::Line(text));
            return Ok(None);
        }
        Ok(Some((mode, id)))
    }
}

/// What is done with each path that differs from `HEAD`.
pub(super) fn again(how: &Action, paths: Vec<BString>) -> Vec<Action> {
    let one = |path: BString| match how {
        Action::Mark(_, mark, on) => Action::Mark(path, *mark, *on),
        Action::Remove(_) => Action::Remove(path),
        Action::Update(_, allowed) => Action::Update(path, *allowed),
        other => other.clone(),
    };
    paths.into_iter().map(one).collect()
}
