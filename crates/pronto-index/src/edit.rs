//! Changes to an immutable index.

use crate::cached_tree::CachedTree;
use crate::carry;
use crate::entry::{Entry, EntryKey, EntryRef, Flags};
use crate::extension;
use crate::fsmonitor::Fsmonitor;
use crate::index::Index;
use crate::resolve_undo::ResolveUndo;
use crate::stat::Stat;
use crate::untracked::UntrackedCache;
use crate::writer::IndexContent;
use bstr::{BStr, BString};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A set of changes to an index: entries that are set and removed by path and stage, and entries
/// whose stat data are refreshed by position. [`content`](IndexEdit::content) merges the index with the
/// changes, ready to be written.
#[derive(Debug)]
pub struct IndexEdit<'a> {
    base: &'a Index,
    changes: BTreeMap<(BString, u8), Option<Entry>>,
    refreshed: BTreeMap<usize, (Stat, Flags)>,
    tree: TreeChange,
    resolve_undo: Option<Option<ResolveUndo>>,
    untracked: Option<Option<Vec<u8>>>,
    fsmonitor: Option<Option<Vec<u8>>>,
}

#[derive(Debug)]
enum TreeChange {
    Keep,
    Replace(Option<CachedTree>),
}

impl<'a> IndexEdit<'a> {
    /// Returns an empty set of changes to `base`.
    pub fn new(base: &'a Index) -> IndexEdit<'a> {
        IndexEdit {
            base,
            changes: BTreeMap::new(),
            refreshed: BTreeMap::new(),
            tree: TreeChange::Keep,
            resolve_undo: None,
            untracked: None,
            fsmonitor: None,
        }
    }

    /// Returns the index without the changes.
    pub fn base(&self) -> &'a Index {
        self.base
    }

    /// Returns whether there are no changes to write.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.refreshed.is_empty()
            && matches!(self.tree, TreeChange::Keep)
            && self.resolve_undo.is_none()
            && self.untracked.is_none()
            && self.fsmonitor.is_none()
    }

    /// Adds `entry`, or replaces the entry with the same path and stage. Entries of other stages
    /// stay. Invalidates the cached trees above if this changes the path.
    pub fn set(&mut self, entry: Entry) {
        let before = self.get(entry.path.as_ref(), entry.stage());
        let same = before.is_some_and(|before| {
            let intent = |flags: Flags| flags.contains(Flags::INTENT_TO_ADD);
            before.id == entry.id
                && before.mode == entry.mode
                && intent(before.flags) == intent(entry.flags)
        });
        if !same {
            self.invalidate(entry.path.as_ref());
        }
        self.changes
            .insert((entry.path.clone(), entry.stage()), Some(entry));
    }

    /// Removes the entry of `path` at `stage`, if it exists.
    pub fn remove(&mut self, path: &BStr, stage: u8) {
        if self.get(path, stage).is_some() {
            self.invalidate(path);
        }
        let key = (path.to_owned(), stage);
        if self.base.find(path, stage).is_ok() {
            self.changes.insert(key, None);
        } else {
            self.changes.remove(&key);
        }
    }

    /// Removes the entries of `path` at all stages.
    pub fn remove_path(&mut self, path: &BStr) {
        for stage in 0..4 {
            self.remove(path, stage);
        }
    }

    /// Records new stat data and flags for the entry at `position` of the base. The object id
    /// stays.
    pub fn refresh(&mut self, position: usize, stat: Stat, flags: Flags) {
        self.refreshed.insert(position, (stat, flags));
    }

    /// Returns the entry of `path` at `stage`, with the changes applied.
    pub fn get(&self, path: &BStr, stage: u8) -> Option<EntryRef<'_>> {
        match self.changes.get(&(path.to_owned(), stage)) {
            Some(change) => change.as_ref().map(Entry::as_ref),
            None => self
                .base
                .find(path, stage)
                .ok()
                .map(|at| self.base_entry(at)),
        }
    }

    /// Returns the paths and stages of the entries below `directory` (without a trailing slash),
    /// with the changes applied. Linear in the number of results, which are copied.
    pub fn below(&self, directory: &BStr) -> Vec<(BString, u8)> {
        let base = self.base.below(directory).map(|at| self.base.entry(at));
        let mut found: Vec<(BString, u8)> = base
            .map(|entry| (entry.path.to_owned(), entry.stage()))
            .filter(|key| !matches!(self.changes.get(key), Some(None)))
            .collect();
        let mut start = directory.to_owned();
        start.push(b'/');
        let changes = self.changes.range((start.clone(), 0)..);
        let changes = changes.take_while(|((path, _), _)| path.starts_with(&start));
        found.extend(
            changes
                .filter(|(_, change)| change.is_some())
                .map(|(key, _)| key.clone()),
        );
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Replaces the cached trees with `tree`, which includes earlier changes.
    pub fn set_cached_tree(&mut self, tree: Option<CachedTree>) {
        self.tree = TreeChange::Replace(tree);
    }

    /// Replaces the resolve-undo data with `undo`.
    pub fn set_resolve_undo(&mut self, undo: Option<ResolveUndo>) {
        self.resolve_undo = Some(undo);
    }

    /// Replaces the untracked cache with `cache`.
    pub fn set_untracked_cache(&mut self, cache: Option<&UntrackedCache<'_>>) {
        self.untracked = Some(cache.map(|cache| {
            let mut encoded = Vec::new();
            cache.encode(&mut encoded);
            encoded
        }));
    }

    /// Replaces the data of the file system monitor with `fsmonitor`, whose positions refer to the
    /// merged entries.
    pub fn set_fsmonitor(&mut self, fsmonitor: Option<&Fsmonitor>) {
        self.fsmonitor = Some(fsmonitor.map(|fsmonitor| {
            let mut encoded = Vec::new();
            fsmonitor.encode(&mut encoded);
            encoded
        }));
    }

    fn invalidate(&mut self, path: &BStr) {
        if matches!(self.tree, TreeChange::Keep) {
            self.tree = TreeChange::Replace(self.base.cached_tree());
        }
        if let TreeChange::Replace(Some(tree)) = &mut self.tree {
            tree.invalidate(path);
        }
    }

    fn base_entry(&self, position: usize) -> EntryRef<'a> {
        let mut entry = self.base.entry(position);
        if let Some((stat, flags)) = self.refreshed.get(&position) {
            (entry.stat, entry.flags) = (*stat, *flags);
        }
        entry
    }

    /// Merges the index with the changes, and keeps the extensions that are still valid. Linear.
    pub fn content(&self) -> IndexContent<'_> {
        let data = |signature| self.base.extension(signature).map(Cow::Borrowed);
        let entries = self.entries();
        IndexContent {
            kind: self.base.kind(),
            base: Some(self.base),
            version: Some(self.base.version()).filter(|&version| version != 0),
            timestamp: self.base.timestamp(),
            tree: match &self.tree {
                TreeChange::Keep => self.base.cached_tree().map(Cow::Owned),
                TreeChange::Replace(tree) => tree.as_ref().map(Cow::Borrowed),
            },
            resolve_undo: match &self.resolve_undo {
                None => data(extension::RESOLVE_UNDO),
                Some(undo) => undo.as_ref().map(|undo| {
                    let mut encoded = Vec::new();
                    undo.encode(&mut encoded);
                    encoded.into()
                }),
            },
            untracked: match &self.untracked {
                None if self.changes.is_empty() => data(extension::UNTRACKED),
                None => carry::untracked(self.base, &entries),
                Some(cache) => cache.as_deref().map(Cow::Borrowed),
            },
            fsmonitor: match &self.fsmonitor {
                None => carry::fsmonitor(self.base, &entries),
                Some(fsmonitor) => fsmonitor.as_deref().map(Cow::Borrowed),
            },
            sparse: self.base.is_sparse(),
            entries,
        }
    }

    fn entries(&self) -> Vec<EntryRef<'_>> {
        let mut entries = Vec::with_capacity(self.base.len() + self.changes.len());
        let mut refreshed = self.refreshed.iter().peekable();
        let mut changes = self.changes.iter().peekable();
        for (position, mut entry) in self.base.iter().enumerate() {
            if let Some((_, (stat, flags))) = refreshed.next_if(|(at, _)| **at == position) {
                (entry.stat, entry.flags) = (*stat, *flags);
            }
            let mut replaced = false;
            while let Some(((path, stage), _)) = changes.peek() {
                let stage = *stage;
                let order = EntryKey { path, stage }.cmp(&entry.key());
                if order.is_gt() {
                    break;
                }
                replaced = order.is_eq();
                let change = changes.next().and_then(|(_, change)| change.as_ref());
                entries.extend(change.map(Entry::as_ref));
            }
            if !replaced {
                entries.push(entry);
            }
        }
        entries.extend(
            changes
                .filter_map(|(_, change)| change.as_ref())
                .map(Entry::as_ref),
        );
        entries
    }
}
