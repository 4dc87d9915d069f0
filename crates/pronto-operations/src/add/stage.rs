//! Enters hashed files into the index, and removes conflicting entries.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Entry, EntryRef, Flags, IndexEdit, ResolveUndo, Unmerged, mode};
use pronto_io::dir::Metadata;
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::{Protect, recorded};

use super::hash::{Hashed, Outcome};
use super::{AddSelection, Event, Options, Report, StagingFailure};
use crate::errors::{from_index, from_worktree};
use crate::session::WorktreeSession;
use crate::{Repository, Result};

/// A new index: the old one with pending changes.
pub(crate) struct StagedIndex<'a> {
    edit: IndexEdit<'a>,
    options: &'a Options,
    trusts_file_mode: bool,
    has_symlinks: bool,
    protect: Protect,
    undo: ResolveUndo,
    undo_changed: bool,
    /// The directory that was checked last for conflicts with its parent directories.
    clear_directory: Option<BString>,
}

impl<'a> StagedIndex<'a> {
    pub(crate) fn new(
        prepared: &'a WorktreeSession<'a>,
        repository: &Repository,
        options: &'a Options,
    ) -> Result<Self> {
        let undo = prepared.index.resolve_undo().map_err(from_index)?;
        Ok(StagedIndex {
            edit: IndexEdit::new(&prepared.index),
            options,
            trusts_file_mode: repository.trusts_file_mode()?,
            has_symlinks: prepared.options.symlinks,
            protect: repository.protection()?,
            undo: undo.unwrap_or_default(),
            undo_changed: false,
            clear_directory: None,
        })
    }

    /// Returns the completed changes.
    pub(crate) fn into_edit(mut self) -> Result<IndexEdit<'a>> {
        if self.undo_changed {
            let undo = (!self.undo.paths.is_empty()).then_some(self.undo);
            self.edit.set_resolve_undo(undo);
        }
        Ok(self.edit)
    }

    fn is_verbose(&self) -> bool {
        self.options.verbose || self.options.dry_run
    }

    /// Removes the entry of `path`, and reports the removal.
    pub(super) fn remove(&mut self, path: &BStr, report: &mut Report) {
        if !self.options.dry_run {
            self.remove_path(path);
        }
        if self.is_verbose() {
            report.events.push(Event::Removed(path.to_owned()));
        }
    }

    /// Adds `path`. Returns false if the path cannot be added.
    pub(super) fn add(&mut self, path: &BStr, hashed: Option<Hashed>, report: &mut Report) -> bool {
        let Some(hashed) = hashed else {
            return false;
        };
        let warnings = hashed.warnings.into_iter();
        report.events.extend(warnings.map(Event::Conversion));
        match hashed.outcome {
            Outcome::Object { id, metadata } => self.put(path, id, &metadata, report),
            Outcome::Failed(failure) => {
                report.events.push(Event::Failure(failure));
                report.failed = true;
                false
            }
            Outcome::Fatal(error) => {
                report.fatal = Some(error);
                true
            }
        }
    }

    fn put(
        &mut self,
        shown: &BStr,
        id: ObjectId,
        metadata: &Metadata,
        report: &mut Report,
    ) -> bool {
        let path = shown.strip_suffix(b"/").unwrap_or(shown).as_bstr();
        let mode = self.mode_of(path, metadata);
        let is_link = mode == mode::SYMLINK;
        if let Err(error) = self.protect.check_path(path, is_link) {
            let kind = error.kind();
            let error = from_worktree(error.without_context(kind));
            let path = path.to_owned();
            let failure = StagingFailure::HostilePath { path, error };
            report.events.push(Event::Failure(failure));
            report.failed = true;
            return false;
        }
        let before = self.edit.get(path, 0);
        // A renormalized file is reported as changed.
        let was_same = self.options.selection != AddSelection::Renormalize
            && before.is_some_and(|before| before.id == id && before.mode == mode);
        let mut entry = Entry {
            path: path.to_owned(),
            id,
            mode,
            flags: Flags::default(),
            stat: Default::default(),
        };
        if self.options.intent_to_add {
            entry.flags = Flags::INTENT_TO_ADD;
        } else {
            entry.stat = recorded(metadata);
        }
        let is_news = before.is_none_or(|before| {
            let (stat, flags) = (before.stat, before.flags);
            !(self.options.intent_to_add || was_same && stat == entry.stat && flags == entry.flags)
        });
        if !self.options.dry_run && is_news {
            if before.is_none() {
                self.make_room(path);
            }
            if metadata.is_file() && !self.options.intent_to_add {
                entry.flags = entry.flags.with(Flags::UP_TO_DATE);
            }
            self.edit.set(entry);
        }
        if self.is_verbose() && !was_same {
            report.events.push(Event::Added(shown.to_owned()));
        }
        true
    }

    /// Returns the mode with which the file is staged.
    pub(crate) fn mode_of(&self, path: &BStr, metadata: &Metadata) -> u32 {
        if metadata.is_symlink() {
            return mode::SYMLINK;
        }
        if metadata.is_directory() {
            return mode::GITLINK;
        }
        let before = || {
            let stages = [0, 2, 1, 3].into_iter();
            let mut found = stages.filter_map(|stage| self.edit.get(path, stage));
            found.next().map(|entry| entry.mode)
        };
        let kind = |mode: u32| mode & mode::TYPE;
        if !self.has_symlinks
            && let Some(mode) = before().filter(|mode| kind(*mode) == mode::SYMLINK)
        {
            return mode;
        }
        if !self.trusts_file_mode {
            let file = before().filter(|mode| kind(*mode) == kind(mode::FILE));
            return file.unwrap_or(mode::FILE);
        }
        match metadata.is_executable() {
            true => mode::EXECUTABLE,
            false => mode::FILE,
        }
    }

    /// Inserts `entry` and removes the entries that conflict with it.
    pub(crate) fn replace(&mut self, entry: Entry) {
        self.make_room(entry.path.as_bstr());
        self.edit.set(entry);
    }

    /// Removes the entries that conflict with a new entry of `path`.
    fn make_room(&mut self, path: &BStr) {
        let index = self.edit.base();
        if index.is_empty() {
            return;
        }
        for stage in 1..4 {
            self.remove_stage(path, stage);
        }
        for position in index.below(path) {
            self.remove_path(index.path(position));
        }
        let directory = path
            .rfind_byte(b'/')
            .map_or(b"".as_bstr(), |slash| path[..slash].as_bstr());
        if self
            .clear_directory
            .as_ref()
            .is_some_and(|clear| clear == directory)
        {
            return;
        }
        for slash in path.find_iter("/") {
            let parent = path[..slash].as_bstr();
            if !index.stages(parent).is_empty() {
                self.remove_path(parent);
            }
        }
        self.clear_directory = Some(directory.to_owned());
    }

    /// Returns the entry of `path` at `stage`, with the pending changes applied.
    pub(crate) fn get(&self, path: &BStr, stage: u8) -> Option<EntryRef<'_>> {
        self.edit.get(path, stage)
    }

    /// Returns the pending changes.
    pub(crate) fn edit_mut(&mut self) -> &mut IndexEdit<'a> {
        &mut self.edit
    }

    /// Replaces the resolve-undo data by `undo`.
    pub(crate) fn set_resolve_undo(&mut self, undo: ResolveUndo) {
        self.undo_changed |= self.undo != undo;
        self.undo = undo;
    }

    /// Returns the resolve-undo data.
    pub(crate) fn resolve_undo(&self) -> &ResolveUndo {
        &self.undo
    }

    /// Returns the pending changes, without the resolve-undo data.
    pub(crate) fn edit(&self) -> &IndexEdit<'a> {
        &self.edit
    }

    /// Whether there are entries below `path`.
    pub(crate) fn has_below(&self, path: &BStr) -> bool {
        !self.edit.below(path).is_empty()
    }

    /// Returns the paths that conflict with an entry of `path` at `stage`: paths below `path`, and
    /// entries at its leading directories.
    pub(crate) fn in_the_way(&self, path: &BStr, stage: u8) -> Vec<BString> {
        let below = self.edit.below(path).into_iter();
        let mut found: Vec<BString> = below
            .filter(|(_, other)| *other == stage)
            .map(|(path, _)| path)
            .collect();
        let parents = path.find_iter("/").map(|slash| path[..slash].as_bstr());
        let parents = parents.filter(|parent| self.edit.get(parent, stage).is_some());
        found.extend(parents.map(ToOwned::to_owned));
        found
    }

    /// Removes the entries of `path` at all stages.
    pub(crate) fn remove_path(&mut self, path: &BStr) {
        for stage in 0..4 {
            self.remove_stage(path, stage);
        }
    }

    /// Removes an entry. An unmerged entry is recorded in the resolve-undo data, for
    /// `update-index --unresolve`.
    pub(crate) fn remove_stage(&mut self, path: &BStr, stage: u8) {
        let Some(entry) = self.edit.get(path, stage) else {
            return;
        };
        if stage != 0 {
            let side = (entry.mode, entry.id.to_owned());
            let place = (self.undo.paths).binary_search_by(|one| one.path.as_bstr().cmp(path));
            let at = place.unwrap_or_else(|at| {
                let (path, stages) = (path.to_owned(), [None; 3]);
                self.undo.paths.insert(at, Unmerged { path, stages });
                at
            });
            self.undo.paths[at].stages[usize::from(stage) - 1] = Some(side);
            self.undo_changed = true;
        }
        self.edit.remove(path, stage);
    }

    /// Returns the paths of all entries that `pathspec` matches, with the pending changes applied.
    pub(super) fn matching(&self, pathspec: &Pathspec) -> Vec<BString> {
        let entries = self.edit.content().entries;
        let matching = entries
            .iter()
            .filter(|entry| pathspec.matches(entry.path, false));
        matching.map(|entry| entry.path.to_owned()).collect()
    }

    /// Whether the entry of the path has the skip-worktree bit.
    pub(super) fn skips(&self, path: &BString) -> bool {
        let entry = self.edit.get(path.as_bstr(), 0);
        entry.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE))
    }

    /// Sets or clears the executable bit of the entry of `path`. Returns false if the entry is not
    /// a file.
    pub(crate) fn chmod(&mut self, path: &BStr, executable: bool, dry_run: bool) -> bool {
        let entries = (0..4).filter_map(|stage| self.edit.get(path, stage));
        let entries: Vec<Entry> = entries
            .map(|entry: EntryRef<'_>| entry.to_owned())
            .collect();
        let mut all_files = true;
        for mut entry in entries {
            if entry.mode & mode::TYPE != mode::FILE & mode::TYPE {
                all_files = false;
                continue;
            }
            let mode = match executable {
                true => mode::EXECUTABLE,
                false => mode::FILE,
            };
            if !dry_run && entry.mode != mode {
                entry.mode = mode;
                self.edit.set(entry);
            }
        }
        all_files
    }
}
