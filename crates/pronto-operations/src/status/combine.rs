//! Combines the two comparisons of a status by path.

use super::contents::RenameContents;
use super::{ChangeKind, ConflictStages, Entry, Options, StatusOrigin};
use bstr::{BStr, BString, ByteSlice};
use pronto_diff::{Difference, DifferenceSide, MOST_SIMILAR, renames};
use pronto_index::{EntryRef, Index};
use pronto_worktree::status::{FileChange, Outcome};
use std::collections::{BTreeMap, HashMap};

/// Merges both comparisons by path.
pub(super) struct StatusMerge<'a> {
    index: &'a Index,
    pub(super) entries: BTreeMap<BString, Entry>,
}

impl<'a> StatusMerge<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        let entries = BTreeMap::new();
        StatusMerge { index, entries }
    }

    fn entry(&mut self, path: &BStr) -> &mut Entry {
        if !self.entries.contains_key(path) {
            let entry = Entry {
                path: path.to_owned(),
                ..Entry::default()
            };
            self.entries.insert(path.to_owned(), entry);
        }
        self.entries
            .get_mut(path)
            .unwrap_or_else(|| unreachable!("it was just added"))
    }

    pub(super) fn add_worktree(
        &mut self,
        outcome: &Outcome,
        options: &Options,
        contents: &RenameContents<'_>,
    ) {
        let has = |change| {
            outcome
                .changed
                .iter()
                .any(|changed| changed.change == Some(change))
        };
        let may_rename = has(FileChange::Added) && has(FileChange::Deleted);
        let mut origins = HashMap::new();
        if let Some(renames) = options.renames.filter(|_| may_rename) {
            origins = self.renamed_files(outcome, renames, contents);
        }
        let gone: Vec<BString> = origins.values().map(|origin| origin.path.clone()).collect();
        for changed in &outcome.changed {
            let staged = self.index.entry(changed.position);
            let path = staged.path;
            if changed.change == Some(FileChange::Deleted) && gone.iter().any(|gone| gone == path) {
                continue;
            }
            let is_intent_to_add = changed.change == Some(FileChange::Added);
            let mut in_index = (!is_intent_to_add).then(|| side_of(&staged));
            let origin = origins.remove(path);
            if let Some(origin) = &origin {
                let at = self.index.find(origin.path.as_bstr(), 0);
                let source = at.ok().map(|at| self.index.entry(at));
                in_index = source.map(|source| side_of(&source));
            }
            let entry = self.entry(path);
            entry.worktree = Some(match changed.change {
                None => ChangeKind::Unmerged,
                Some(FileChange::Deleted) => ChangeKind::Deleted,
                Some(FileChange::TypeChanged) => ChangeKind::TypeChanged,
                Some(FileChange::Added) => origin.as_ref().map_or(ChangeKind::Added, |it| it.kind),
                Some(FileChange::Modified) => ChangeKind::Modified,
            });
            entry.file_mode = changed.mode;
            entry.submodule = changed.submodule;
            entry.in_index = in_index;
            entry.origin = origin;
            if changed.change.is_none() {
                self.add_stages(path);
            }
        }
    }

    /// Finds renames in the worktree whose new path is an intent-to-add entry.
    fn renamed_files(
        &self,
        outcome: &Outcome,
        renames: renames::Renames,
        contents: &RenameContents<'_>,
    ) -> HashMap<BString, StatusOrigin> {
        let kind = self.index.kind();
        let differences = outcome.changed.iter().filter_map(|changed| {
            let staged = self.index.entry(changed.position);
            let old = Some(side_of(&staged));
            let (old, new) = match changed.change? {
                FileChange::Deleted => (old, None),
                FileChange::Added => {
                    let id = contents.id(staged.path, kind);
                    (
                        None,
                        Some(DifferenceSide {
                            mode: changed.mode,
                            id,
                        }),
                    )
                }
                _ => (
                    old,
                    Some(DifferenceSide {
                        mode: changed.mode,
                        id: kind.null(),
                    }),
                ),
            };
            let path = staged.path.to_owned();
            Some(Difference {
                path,
                old,
                new,
                origin: None,
                unmerged: false,
            })
        });
        let mut read = |path: &BStr, side: &DifferenceSide| contents.read(path, side);
        renames::detect(differences.collect(), renames, &mut read)
            .into_iter()
            .filter_map(|found| {
                let kind = found.kind();
                let origin = found.origin?;
                let percent = origin.score * 100 / MOST_SIMILAR;
                Some((
                    found.path,
                    StatusOrigin {
                        path: origin.path,
                        kind,
                        percent,
                        in_worktree: true,
                    },
                ))
            })
            .collect()
    }

    fn add_stages(&mut self, path: &BStr) {
        let mut stages = ConflictStages::default();
        for at in self.index.stages(path) {
            let entry = self.index.entry(at);
            let stage = match entry.stage() {
                1 => &mut stages.base,
                2 => &mut stages.ours,
                3 => &mut stages.theirs,
                _ => continue,
            };
            *stage = Some(side_of(&entry));
        }
        self.entry(path).stages = Some(stages);
    }

    pub(super) fn add_staged(&mut self, differences: Vec<Difference>) {
        for difference in differences {
            let kind = difference.kind();
            let path = difference.path.as_bstr();
            if difference.unmerged {
                self.entry(path).index = Some(ChangeKind::Unmerged);
                self.add_stages(path);
                continue;
            }
            let entry = self.entry(path);
            entry.index = Some(kind);
            entry.in_head = difference.old;
            if difference.new.is_some() {
                entry.in_index = difference.new;
            }
            if let Some(origin) = difference.origin {
                let percent = origin.score * 100 / MOST_SIMILAR;
                entry.origin = Some(StatusOrigin {
                    path: origin.path,
                    kind,
                    percent,
                    in_worktree: false,
                });
            }
        }
    }
}

fn side_of(entry: &EntryRef<'_>) -> DifferenceSide {
    DifferenceSide {
        mode: entry.mode,
        id: entry.id.to_owned(),
    }
}
