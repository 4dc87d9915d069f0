//! The submodules that a range of commits changes.

use pronto_diff::DifferenceSide;
use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_index::mode;
use pronto_io::watch::Watch;

use super::{NameCollision, is_populated, walk};
use crate::diff::{self, TreeDiffDepth};
use crate::gitmodules::Gitmodules;
use crate::objects::from_odb;
use crate::status::IgnoreSubmodules;
use crate::walk::CommitWalk;
use crate::{Error, ErrorKind, Repository, Result};

/// The largest size of a `.gitmodules` blob that is read, as in a worktree.
const LARGEST_BYTES: u64 = 16 << 20;

/// The submodules that commits change.
#[derive(Debug, Default)]
pub(super) struct ChangedSubmodules {
    /// The recorded commits, indexed by the name of the submodule.
    pub(super) modules: BTreeMap<BString, RecordedCommits>,
    /// The submodules whose path collides with the name of another one.
    pub(super) collisions: Vec<NameCollision>,
}

/// The submodule commits that the superproject records.
#[derive(Debug)]
pub(super) struct RecordedCommits {
    /// The newest commit of the superproject that changes the submodule.
    pub(super) by: ObjectId,
    /// The path of the submodule in that commit.
    pub(super) path: BString,
    /// The recorded commits of the submodule.
    pub(super) commits: BTreeSet<ObjectId>,
}

/// Collects the submodules that are changed by commits that are reachable from `tips` and not from
/// the remote-tracking refs of `remote`. As in Git, root commits change no submodules, and merges
/// change the submodules that differ from all parents.
pub(super) fn changed(
    repository: &Repository,
    tips: &[ObjectId],
    remote: &BStr,
    watch: &Watch<'_>,
) -> Result<ChangedSubmodules> {
    let selection = [&b"--remotes="[..], remote].concat();
    let walk = walk(repository, tips, selection.as_slice().into())?;
    collect(repository, walk, watch)
}

/// Collects the submodules that the commits of `walk` change, like [`changed`].
pub(super) fn collect(
    repository: &Repository,
    mut walk: CommitWalk<'_>,
    watch: &Watch<'_>,
) -> Result<ChangedSubmodules> {
    let mut collector = ChangeCollector {
        repository,
        watch,
        known: None,
        found: ChangedSubmodules::default(),
    };
    while let Some(walked) = walk.next(watch)? {
        let commits = walk.commits();
        let mut parents = Vec::new();
        for which in 0..commits.parent_count(walked.number) {
            parents.push(commits.parent_id(walked.number, which)?);
        }
        collector.commit(commits.id(walked.number)?, &parents)?;
    }
    Ok(collector.found)
}

struct ChangeCollector<'a> {
    repository: &'a Repository,
    watch: &'a Watch<'a>,
    /// The `.gitmodules` that was read last.
    known: Option<CommitModules>,
    found: ChangedSubmodules,
}

/// A `.gitmodules` of a commit.
struct CommitModules {
    id: ObjectId,
    modules: Gitmodules,
}

impl ChangeCollector<'_> {
    fn commit(&mut self, id: ObjectId, parents: &[ObjectId]) -> Result<()> {
        let tree = self.tree(id)?;
        let mut changed: Option<BTreeMap<BString, ObjectId>> = None;
        for parent in parents {
            let mut differing = self.compare(self.tree(*parent)?, tree)?;
            if let Some(so_far) = &changed {
                differing.retain(|path, _| so_far.contains_key(path));
            }
            let is_over = differing.is_empty();
            changed = Some(differing);
            if is_over {
                break;
            }
        }
        for (path, recorded) in changed.unwrap_or_default() {
            if let Some(name) = self.name(id, tree, &path)? {
                let modules = &mut self.found.modules;
                let module = modules.entry(name).or_insert_with(|| RecordedCommits {
                    by: id,
                    path,
                    commits: BTreeSet::new(),
                });
                module.commits.insert(recorded);
            }
        }
        Ok(())
    }

    fn tree(&self, commit: ObjectId) -> Result<ObjectId> {
        let tree = self.repository.peel_to(commit, ObjectKind::Tree)?;
        tree.ok_or_else(|| {
            let message = "the commit or its tree is missing";
            Error::new(ErrorKind::MissingObject, message).on_object(commit)
        })
    }

    /// Returns the submodules of `new` that are missing from `old` or recorded at another commit
    /// there.
    fn compare(&self, old: ObjectId, new: ObjectId) -> Result<BTreeMap<BString, ObjectId>> {
        let depth = TreeDiffDepth {
            recursive: true,
            show_trees: false,
        };
        let mut options = diff::Options::default();
        options.ignore_submodules = Some(IgnoreSubmodules::default());
        let (old, new) = (Some(old), Some(new));
        let found = diff::trees(self.repository, old, new, depth, &options, self.watch)?;
        let modules = found.differences.into_iter().filter_map(|difference| {
            let new = difference.new.filter(|new| new.mode == mode::GITLINK)?;
            Some((difference.path, new.id))
        });
        Ok(modules.collect())
    }

    /// Returns the name of the submodule at `path` of the commit `commit`.
    fn name(
        &mut self,
        commit: ObjectId,
        tree: ObjectId,
        path: &BString,
    ) -> Result<Option<BString>> {
        let modules = self.modules(tree)?;
        let names = modules.map(Gitmodules::names).unwrap_or_default();
        let is_here = |name: &&BStr| {
            let place = modules.and_then(|modules| modules.value(name, "path"));
            place == Some(path.as_bstr())
        };
        if let Some(name) = names.iter().copied().rfind(is_here) {
            return Ok(Some(name.to_owned()));
        }
        let collides = names.contains(&path.as_bstr());
        if !is_populated(self.repository, path.as_bstr()) {
            return Ok(None);
        }
        if collides {
            let path = path.clone();
            self.found.collisions.push(NameCollision { commit, path });
            return Ok(None);
        }
        Ok(Some(path.clone()))
    }

    /// Reads `.gitmodules` of `tree`. A malformed file counts as empty.
    fn modules(&mut self, tree: ObjectId) -> Result<Option<&Gitmodules>> {
        let entry = self.repository.tree_entry(tree, ".gitmodules".into())?;
        let Some(DifferenceSide { id, .. }) = entry else {
            return Ok(None);
        };
        if self.known.as_ref().is_none_or(|known| known.id != id) {
            let modules = self.read(id)?;
            self.known = Some(CommitModules { id, modules });
        }
        Ok(self.known.as_ref().map(|known| &known.modules))
    }

    fn read(&self, id: ObjectId) -> Result<Gitmodules> {
        let store = self.repository.objects()?;
        let header = store.header(&id).map_err(from_odb)?;
        let is_readable = header
            .is_some_and(|found| found.kind == ObjectKind::Blob && found.size <= LARGEST_BYTES);
        if !is_readable {
            return Ok(Gitmodules::default());
        }
        let mut content = Vec::new();
        store.find(&id, &mut content).map_err(from_odb)?;
        Ok(Gitmodules::parse(content).unwrap_or_default())
    }
}
