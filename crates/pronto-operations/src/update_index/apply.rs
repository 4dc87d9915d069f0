//! Applies actions one after another.

mod marks;
mod merge;
mod metadata;

use std::collections::VecDeque;
use std::sync::Arc;

use bstr::{BStr, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{Entry, EntryRef, Flags, IndexEdit, ResolveUndo, mode};
use pronto_io::dir::Metadata;
use pronto_io::watch::Watch;
use pronto_worktree::{Protect, recorded};

use self::metadata::{PathMetadata, find};
use super::{AllowedChanges, Event, IndexAction, UpdateRefusal, UpdateStop};
use crate::add::{self, Hashed, Hasher, StagedIndex, StagedPath};
use crate::session::WorktreeSession;
use crate::{Error, Repository, Result, attributes, refresh};

pub(super) struct Apply<'a> {
    pub(super) repository: &'a Repository,
    pub(super) prepared: &'a WorktreeSession<'a>,
    pub(super) stage: StagedIndex<'a>,
    protect: Protect,
    watch: &'a Watch<'a>,
    pub(super) events: Vec<Event>,
    hashed: VecDeque<Hashed>,
    /// The reason why the remaining actions are not carried out.
    stop: Option<UpdateStop>,
}

/// The result of the actions.
pub(super) struct AppliedActions<'a> {
    pub(super) edit: IndexEdit<'a>,
    pub(super) events: Vec<Event>,
    /// The reason why the index must not be written.
    pub(super) stop: Option<UpdateStop>,
}

impl<'a> Apply<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        prepared: &'a WorktreeSession<'a>,
        plain: &'a add::Options,
        watch: &'a Watch<'a>,
    ) -> Result<Self> {
        Ok(Apply {
            repository,
            prepared,
            stage: StagedIndex::new(prepared, repository, plain)?,
            protect: repository.protection()?,
            watch,
            events: Vec::new(),
            hashed: VecDeque::new(),
            stop: None,
        })
    }

    pub(super) fn finish(self) -> Result<AppliedActions<'a>> {
        Ok(AppliedActions {
            edit: self.stage.into_edit()?,
            events: self.events,
            stop: self.stop,
        })
    }

    /// Applies all actions, up to the first that ends the operation.
    pub(super) fn run(&mut self, actions: &[IndexAction]) -> Result<()> {
        // After such an action, the original index does not show which files must be hashed.
        let changes = |action: &IndexAction| {
            matches!(
                action,
                IndexAction::Remove(_) | IndexAction::Entry { .. } | IndexAction::Mark(..)
            )
        };
        let mut is_as_it_was = true;
        let mut looks: Vec<Option<ActionFile>> = Vec::with_capacity(actions.len());
        for action in actions {
            looks.push(self.look(action, is_as_it_was));
            is_as_it_was &= !changes(action);
        }
        self.hash(actions, &looks)?;
        for (action, look) in actions.iter().zip(looks) {
            self.stop = self.act(action, look)?;
            if self.stop.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Examines the file of an action that needs it. The entry is compared if the index
    /// `is_as_it_was`.
    fn look(&self, action: &IndexAction, is_as_it_was: bool) -> Option<ActionFile> {
        let IndexAction::Update(path, allowed) = action else {
            return None;
        };
        let found = find(self.prepared, path.as_bstr());
        let entry = self.entry(path.as_bstr()).filter(|_| is_as_it_was);
        let is_skipped = |entry: &EntryRef<'_>| entry.flags.contains(Flags::SKIP_WORKTREE);
        let wants_content = match &found {
            PathMetadata::There(metadata) => {
                !metadata.is_directory()
                    && !entry.is_some_and(|entry| is_skipped(&entry))
                    && !entry.is_some_and(|entry| self.is_clean(&entry, metadata))
            }
            _ => false,
        };
        Some(ActionFile {
            found,
            hash: wants_content.then_some(!allowed.info_only),
        })
    }

    pub(super) fn entry(&self, path: &BStr) -> Option<EntryRef<'_>> {
        self.stage.get(path, 0)
    }

    /// Whether the file certainly matches the entry.
    fn is_clean(&self, entry: &EntryRef<'_>, metadata: &Metadata) -> bool {
        let rules = self.prepared.rules;
        let is_trusted = entry.flags.contains(Flags::ASSUME_VALID);
        let stat = recorded(metadata);
        let matches = entry.stat.matches(&stat, rules)
            && !entry.stat.is_racy(self.prepared.index.timestamp())
            && self.stage.mode_of(entry.path, metadata) == entry.mode
            && (entry.stat.size_bytes != 0 || entry.id.is_empty_blob())
            && !entry.flags.contains(Flags::INTENT_TO_ADD);
        is_trusted || matches
    }

    /// Hashes the files of all actions. Some of the objects are stored, others are not.
    fn hash(&mut self, actions: &[IndexAction], looks: &[Option<ActionFile>]) -> Result<()> {
        let wanted = |writes: bool| {
            actions
                .iter()
                .zip(looks)
                .filter_map(move |pair| match pair {
                    (IndexAction::Update(path, _), Some(look)) if look.hash == Some(writes) => {
                        Some(StagedPath::new(path.as_bstr()))
                    }
                    _ => None,
                })
        };
        let mut results = [VecDeque::new(), VecDeque::new()];
        for writes in [true, false] {
            let targets: Vec<StagedPath<'_>> = wanted(writes).collect();
            if targets.is_empty() {
                continue;
            }
            let index = &self.prepared.index;
            let hasher = Hasher {
                repository: self.repository,
                prepared: self.prepared,
                attributes: attributes::attributes_of_files(self.repository, index)?,
                settings: Arc::new(self.repository.filter_settings()?),
                renormalize: false,
                intent_to_add: false,
                writes,
                stops: true,
                watch: self.watch,
            };
            results[usize::from(writes)] = hasher.run(&targets)?.into();
        }
        for look in looks.iter().flatten() {
            if let Some(writes) = look.hash {
                self.hashed.extend(results[usize::from(writes)].pop_front());
            }
        }
        Ok(())
    }

    /// Applies one action. `Some` ends the operation.
    fn act(
        &mut self,
        action: &IndexAction,
        look: Option<ActionFile>,
    ) -> Result<Option<UpdateStop>> {
        match action {
            IndexAction::Update(path, allowed) => {
                let path = path.as_bstr();
                let Some(look) = look else {
                    return Ok(None);
                };
                let mode = match &look.found {
                    PathMetadata::There(metadata) if metadata.is_symlink() => mode::SYMLINK,
                    _ => 0,
                };
                let hashed = look.hash.and_then(|_| self.hashed.pop_front());
                match self.is_bad(path, mode) {
                    true => Ok(None),
                    false => Ok(self.updated(path, *allowed, look, hashed)),
                }
            }
            IndexAction::Remove(path) => {
                if !self.is_bad(path.as_bstr(), 0) {
                    self.stage.remove_path(path.as_bstr());
                    self.events.push(Event::Removed(path.clone()));
                }
                Ok(None)
            }
            IndexAction::Mark(path, mark, on) => Ok(self.mark(path, *mark, *on)),
            IndexAction::Executable(path, on) => Ok(self.chmod(path, *on)),
            IndexAction::Entry { path, mode: 0, .. } => {
                if !self.is_bad(path.as_bstr(), 0) {
                    self.stage.remove_path(path.as_bstr());
                }
                Ok(None)
            }
            IndexAction::Entry { .. } => Ok(self.take(action)),
            IndexAction::Refresh(options) => {
                let edit = self.stage.edit_mut();
                let outdated =
                    refresh::refresh(self.repository, self.prepared, edit, options, self.watch)?;
                self.events
                    .extend(outdated.into_iter().map(Event::Outdated));
                Ok(None)
            }
            IndexAction::Again(how, pathspec) => {
                let paths = self.differing(pathspec)?;
                self.run(&merge::again(how, paths))?;
                Ok(self.stop.take())
            }
            IndexAction::Unresolve(paths) => {
                self.unresolve(paths);
                Ok(None)
            }
            // This action is applied at the end, when the positions of entries are known.
            IndexAction::Vouch(path, _) => Ok(match self.entry(path.as_bstr()) {
                Some(_) => None,
                None => Some(UpdateStop::NotMarked(path.clone())),
            }),
            IndexAction::ClearResolveUndo => {
                self.stage.set_resolve_undo(ResolveUndo::default());
                Ok(None)
            }
        }
    }

    /// Updates one path and reports the change. Returns the reason if the path cannot be updated.
    fn updated(
        &mut self,
        path: &BStr,
        allowed: AllowedChanges,
        look: ActionFile,
        hashed: Option<Hashed>,
    ) -> Option<UpdateStop> {
        match self.update(path, allowed, look, hashed) {
            Ok(()) => {
                self.events.push(Event::Added(path.to_owned()));
                None
            }
            Err(UpdateFailure::Operation(error)) => Some(UpdateStop::Failed(error)),
            Err(UpdateFailure::Path(event)) => {
                self.events.push(event);
                Some(UpdateStop::NotUpdated(path.to_owned()))
            }
        }
    }

    fn is_bad(&mut self, path: &BStr, mode: u32) -> bool {
        let is_bad = (self.protect)
            .check_path(path, mode == mode::SYMLINK)
            .is_err();
        if is_bad {
            self.events.push(Event::Skipped(path.to_owned()));
        }
        is_bad
    }

    fn update(
        &mut self,
        path: &BStr,
        allowed: AllowedChanges,
        look: ActionFile,
        hashed: Option<Hashed>,
    ) -> Result<(), UpdateFailure> {
        let metadata = match look.found {
            PathMetadata::BeyondLink => {
                return Err(refused(UpdateRefusal::BeyondLink(path.to_owned())));
            }
            found => found,
        };
        let before = self.entry(path);
        if before.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)) {
            if !allowed.ignore_skip_worktree && allowed.remove {
                self.stage.remove_path(path);
            }
            return Ok(());
        }
        let kind = before.map(|entry| entry.mode & mode::TYPE);
        match metadata {
            PathMetadata::Unknown(error) => {
                Err(refused(UpdateRefusal::Unexamined(path.to_owned(), error)))
            }
            PathMetadata::There(metadata) if metadata.is_directory() => {
                self.directory(path, kind, allowed, &metadata)
            }
            PathMetadata::There(metadata) => {
                let Some(hashed) = hashed else {
                    return Ok(());
                };
                let (warnings, object) = hashed.into_parts();
                self.events
                    .extend(warnings.into_iter().map(Event::Conversion));
                match object {
                    Ok(id) => self.add(path, id, &metadata, allowed),
                    Err(add::StagingStop::Operation { error, .. }) => {
                        Err(UpdateFailure::Operation(error))
                    }
                    Err(add::StagingStop::File(failure)) => {
                        Err(UpdateFailure::Path(Event::Failure(failure)))
                    }
                }
            }
            _ => self.gone(path, allowed),
        }
    }

    fn gone(&mut self, path: &BStr, allowed: AllowedChanges) -> Result<(), UpdateFailure> {
        if !allowed.remove {
            return Err(refused(UpdateRefusal::Missing(path.to_owned())));
        }
        self.stage.remove_path(path);
        Ok(())
    }

    fn directory(
        &mut self,
        path: &BStr,
        kind: Option<u32>,
        allowed: AllowedChanges,
        metadata: &Metadata,
    ) -> Result<(), UpdateFailure> {
        let head = self.repository.submodule_commit(path);
        match (kind, head) {
            (Some(mode::GITLINK), None) => Ok(()),
            (Some(mode::GITLINK), Some(id)) => {
                let same = self.entry(path).is_some_and(|entry| entry.id == id);
                if same {
                    return Ok(());
                }
                self.add(path, id, metadata, allowed)
            }
            (Some(_), _) => self.gone(path, allowed),
            (None, head) => {
                if self.stage.has_below(path) {
                    let path = path.to_owned();
                    return Err(refused(UpdateRefusal::DirectoryWithEntries(path)));
                }
                let Some(id) = head else {
                    return Err(refused(UpdateRefusal::Directory(path.to_owned())));
                };
                self.add(path, id, metadata, allowed)
            }
        }
    }

    fn add(
        &mut self,
        path: &BStr,
        id: ObjectId,
        metadata: &Metadata,
        allowed: AllowedChanges,
    ) -> Result<(), UpdateFailure> {
        let mut entry = Entry {
            path: path.to_owned(),
            id,
            mode: self.stage.mode_of(path, metadata),
            flags: Flags::default(),
            stat: recorded(metadata),
        };
        if metadata.is_file() {
            entry.flags = entry.flags.with(Flags::UP_TO_DATE);
        }
        self.insert(entry, allowed)
    }

    /// Adds an entry to the index, if `allowed` permits that.
    fn insert(&mut self, entry: Entry, allowed: AllowedChanges) -> Result<(), UpdateFailure> {
        let path = entry.path.clone();
        let stage = entry.stage();
        if self.stage.get(path.as_bstr(), stage).is_none() {
            let resolves =
                stage == 0 && (1..4).any(|stage| self.stage.get(path.as_bstr(), stage).is_some());
            if !allowed.add && !resolves {
                return Err(refused(UpdateRefusal::NotAllowed(path)));
            }
            let in_the_way = self.stage.in_the_way(path.as_bstr(), stage);
            if !in_the_way.is_empty() && !allowed.replace {
                let conflict = UpdateRefusal::FileAndDirectory(path.clone());
                self.events.push(Event::Refused(conflict));
                return Err(refused(UpdateRefusal::NotAllowed(path)));
            }
            for other in in_the_way {
                self.stage.remove_stage(other.as_bstr(), stage);
            }
            if stage == 0 {
                for stage in 1..4 {
                    self.stage.remove_stage(path.as_bstr(), stage);
                }
            }
        }
        self.stage.edit_mut().set(entry);
        Ok(())
    }

    /// Adds the given entry of `action`. Returns the reason if the entry cannot be added.
    fn take(&mut self, action: &IndexAction) -> Option<UpdateStop> {
        let IndexAction::Entry {
            path,
            mode,
            id,
            stage,
            allowed,
            from_list,
        } = action
        else {
            return None;
        };
        let stop = || UpdateStop::EntryRefused {
            path: path.clone(),
            from_list: *from_list,
        };
        if *from_list && self.is_bad(path.as_bstr(), *mode) {
            return None;
        }
        if (self.protect)
            .check_path(path.as_bstr(), *mode == mode::SYMLINK)
            .is_err()
        {
            let invalid = UpdateRefusal::InvalidPath(path.clone());
            self.events.push(Event::Refused(invalid));
            return Some(stop());
        }
        let entry = Entry {
            path: path.clone(),
            id: *id,
            mode: normal_mode(*mode),
            flags: Flags::default().with_stage(*stage),
            stat: Default::default(),
        };
        match self.insert(entry, *allowed) {
            Ok(()) => {
                self.events.push(Event::Added(path.clone()));
                None
            }
            Err(UpdateFailure::Operation(error)) => Some(UpdateStop::Failed(error)),
            Err(UpdateFailure::Path(event)) => {
                self.events.push(event);
                Some(stop())
            }
        }
    }
}

/// The examined file of an action.
struct ActionFile {
    found: PathMetadata,
    /// `None` if the file is not hashed; otherwise whether the object is stored.
    hash: Option<bool>,
}

/// The reason why an entry is not updated.
enum UpdateFailure {
    Path(Event),
    Operation(Error),
}

fn refused(refusal: UpdateRefusal) -> UpdateFailure {
    UpdateFailure::Path(Event::Refused(refusal))
}

/// Normalizes a given mode to one that the index allows.
fn normal_mode(given: u32) -> u32 {
    match given & mode::TYPE {
        mode::SYMLINK => mode::SYMLINK,
        mode::GITLINK | mode::TREE => mode::GITLINK,
        _ if given & 0o100 != 0 => mode::EXECUTABLE,
        _ => mode::FILE,
    }
}
